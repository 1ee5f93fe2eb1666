// Goal: all brokers come to one secret, whoever dies or stands still at whichever step, and it is
// never another one later. Method: the volume in memory, which drops what was not synced.
#include "security/cluster_secret.h"

#include "base/bytes.h"
#include "security/error.h"
#include "storage/memory_volume.h"
#include "storage/testing_volume.h"
#include "storage/volume.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

namespace kaas::security {
namespace {

using storage::MemoryVolume;
using storage::Operation;

std::string secret_of(storage::Volume& volume) {
    auto secret = cluster_secret(volume);
    EXPECT_TRUE(secret) << secret.error().context;
    return secret.value_or("");
}

/// Lets `work` have its turn just before the first `operation` on `path`.
template <class Work>
void at(MemoryVolume& volume, Operation operation, const std::string& path, Work work) {
    volume.set_hook([&volume, operation, path,
                     work](const MemoryVolume::Step& step) -> std::optional<storage::Fault> {
        if (step.operation != operation || step.path != path) return std::nullopt;
        volume.set_hook({});
        work();
        return std::nullopt;
    });
}

TEST(ClusterSecret, IsTheSameForAllAndForEver) {
    MemoryVolume volume;
    const std::string secret = secret_of(volume);
    EXPECT_EQ(secret.size(), 44U);
    EXPECT_EQ(secret_of(volume), secret);
    volume.crash();
    EXPECT_EQ(secret_of(volume), secret);
    MemoryVolume other;
    EXPECT_NE(secret_of(other), secret);
}

TEST(ClusterSecret, ATornOneIsVoid) {
    for (const char* torn : {"", "{\"secret\":\"ab", "{\"secret\":\"abc\",\"crc\":\"00000000\"}\n",
                             "{\"secret\":\"\"}\n", "[]\n"}) {
        MemoryVolume volume;
        ASSERT_TRUE(volume.make_directory("__cluster"));
        storage::testing::make_file(volume, "__cluster/secret-1", torn);
        const std::string secret = secret_of(volume);
        EXPECT_EQ(secret.size(), 44U) << torn;
        EXPECT_EQ(secret_of(volume), secret);
        EXPECT_EQ(storage::testing::read_text(volume, "__cluster/secret-1"), torn);
    }
}

TEST(ClusterSecret, ASlowWriterGoesByWhatTheOthersDecided) {
    MemoryVolume volume;
    std::string others;
    at(volume, Operation::kWrite, "__cluster/secret-1", [&] { others = secret_of(volume); });
    EXPECT_EQ(secret_of(volume), others);
    EXPECT_EQ(secret_of(volume), others);
}

TEST(ClusterSecret, WhoFoundOneTornTakesItWhenItIsFinishedFirst) {
    MemoryVolume volume;
    ASSERT_TRUE(volume.make_directory("__cluster"));
    auto file = volume.create_private("__cluster/secret-1");
    ASSERT_TRUE(file);
    at(volume, Operation::kCreate, "__cluster/secret-2", [&] {
        const std::string line = "{\"secret\":\"theirs\"}\n";
        const auto bytes = base::as_bytes(line);
        ASSERT_TRUE((*file)->write_at(0, {&bytes, 1}));
        EXPECT_EQ(secret_of(volume), "theirs");
    });
    EXPECT_EQ(secret_of(volume), "theirs");
}

TEST(ClusterSecret, SurvivesADeathAtEveryStep) {
    bool finished = false;
    for (std::uint64_t step = 0; !finished; ++step) {
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
            MemoryVolume volume;
            volume.halt_at(step);
            const auto first = cluster_secret(volume);
            volume.crash({.seed = seed > 0 ? std::optional(seed) : std::nullopt, .holes = true});
            const std::string secret = secret_of(volume);
            EXPECT_EQ(secret_of(volume), secret) << "step " << step << ", seed " << seed;
            if (first) EXPECT_EQ(secret, *first) << "seed " << seed;
            finished = first.has_value();
        }
    }
}

TEST(ClusterSecret, LosingWhatCountedIsForAPerson) {
    MemoryVolume volume;
    ASSERT_TRUE(volume.make_directory("__cluster"));
    storage::testing::make_file(volume, "__cluster/secret-1", "");
    ASSERT_TRUE(volume.make_directory("__cluster/secret-2"));
    EXPECT_EQ(cluster_secret(volume).error().code, ErrorCode::kDamaged);
}

TEST(ClusterSecret, AVolumeThatFailsIsAnError) {
    MemoryVolume volume;
    volume.fail_nth(Operation::kSync, 1, {});
    EXPECT_EQ(cluster_secret(volume).error().code, ErrorCode::kStorage);
}

}  // namespace
}  // namespace kaas::security
