// Goal: a volume's sign comes back as it was put up, and one that was changed since is refused by
// file and place, never taken for an empty volume. Method: each byte of the file is changed in
// turn.

#include "cluster/identity.h"

#include "cluster/error.h"
#include "storage/memory_volume.h"
#include "storage/testing_volume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace kaas::cluster {
namespace {

using storage::testing::make_file;
using storage::testing::read_text;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kFile = "kaas.json";

class IdentityTest : public ::testing::Test {
protected:
    void put(const std::string& text) {
        ASSERT_TRUE(storage::unless(storage::ErrorCode::kNotFound, volume_.unlink(kFile)));
        make_file(volume_, kFile, text);
    }

    storage::MemoryVolume volume_{"/a"};
};

TEST_F(IdentityTest, EveryFlipIsToldByFileOrMeansNothing) {
    ASSERT_TRUE(write_identity(volume_, {.cluster_id = "c1",
                                         .volume = "default",
                                         .cluster_volume = "default",
                                         .broker = base::BrokerId(7)}));
    const auto text = read_text(volume_, kFile);
    int told = 0;
    for (std::size_t at = 0; at + 1 < text.size(); ++at) {
        for (const char mask : {'\x01', '\x04', '\x10', '\x20'}) {
            auto damaged = text;
            damaged[at] = static_cast<char>(damaged[at] ^ mask);
            put(damaged);
            const auto read = read_identity(volume_);
            if (read) {  // the name of the checksum's member
                ASSERT_TRUE(*read) << at;
                EXPECT_EQ((*read)->cluster_id, "c1") << damaged;
                EXPECT_EQ((*read)->volume, "default") << damaged;
                EXPECT_EQ((*read)->broker, base::BrokerId(7)) << damaged;
                continue;
            }
            ++told;
            EXPECT_EQ(read.error().code, ErrorCode::kStorage);
            EXPECT_THAT(read.error().context, AllOf(HasSubstr("/a/kaas.json at byte ")));
        }
    }
    EXPECT_GT(told, static_cast<int>(text.size()) * 3);
}

TEST_F(IdentityTest, OneWhoseWriterDiedIsNone) {
    for (const auto* text : {"", "{\"format\":1,\"clus"}) {
        put(text);
        const auto read = read_identity(volume_);
        ASSERT_TRUE(read);
        EXPECT_FALSE(*read);
        ASSERT_TRUE(write_identity(volume_, {.cluster_id = "c2"}));
        EXPECT_EQ((*read_identity(volume_))->cluster_id, "c2");
    }
}

TEST_F(IdentityTest, OneThatAPersonMendedCountsWithoutItsChecksum) {
    put("{\"format\":1,\"cluster\":\"c3\"}\n");
    EXPECT_EQ((*read_identity(volume_))->cluster_id, "c3");
}

}  // namespace
}  // namespace kaas::cluster
