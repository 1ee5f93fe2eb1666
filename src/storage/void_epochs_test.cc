// Goal: records of an epoch that has lost its manifest are told of when a log opens without them,
// and nothing else is. Method: lives of brokers on one volume in memory; a manifest is removed or
// emptied in between.

#include "base/metrics.h"
#include "storage/epoch_reader.h"
#include "storage/log_dir.h"
#include "storage/partition_log_fixture.h"
#include "storage/testing_log.h"
#include "storage/testing_session.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kaas::storage {
namespace {

using testing::read_values;

class VoidEpochs : public testing::PartitionLogTest {
protected:
    static constexpr auto kDirectory = "topic.AAAAAAAAAAAAAAAAAAAAAA/0";

    /// Opens a log as one who tells what he meets.
    void expect(std::int32_t epoch, const std::vector<std::string>& values, std::uint64_t strays) {
        const auto log = PartitionLog::open({.log_dir = &log_dir_,
                                             .directory = kDirectory,
                                             .epoch = base::LeaderEpoch{epoch},
                                             .earlier = candidates_below(volume_, epoch, 0, false),
                                             .config = {}});
        ASSERT_TRUE(log) << log.error().context;
        EXPECT_EQ(*read_values(**log), values);
        EXPECT_EQ(registry_.counter("kaas_storage_stray_epochs_total", "", {{"log_dir", "default"}})
                      .value(),
                  strays);
    }
    void release(std::int32_t epoch, const std::string& value) {
        auto log = open(epoch);
        append_durably(*log, {.value = value});
        ASSERT_TRUE(log->release(std::chrono::seconds(1)));
        restart();
    }
    [[nodiscard]] static std::string manifest(std::int32_t epoch) {
        return EpochLogPath{.directory = kDirectory, .kind = "manifest"}.file(epoch, 1);
    }

    TestingSession session_;
    base::InlineExecutor pool_;
    base::metrics::Registry registry_;
    LogDir log_dir_{{.volume = &volume_,
                     .session = &session_,
                     .io_pool = &pool_,
                     .clock = &clock_,
                     .owner = {.broker = base::BrokerId{2}, .incarnation = {}},
                     .metrics = &registry_}};
};

TEST_F(VoidEpochs, ALostManifestOfTheFirstEpochIsToldOf) {
    release(0, "lost");
    ASSERT_TRUE(volume_.unlink(manifest(0)));
    expect(1, {}, 1);
}

TEST_F(VoidEpochs, AnEmptiedManifestOfALaterEpochIsToldOf) {
    release(0, "kept");
    release(1, "lost");
    ASSERT_TRUE(volume_.unlink(manifest(1)));
    ASSERT_TRUE(volume_.create(manifest(1)));
    expect(2, {"kept"}, 1);
}

TEST_F(VoidEpochs, TheCopyOfATakerThatDiedIsNothing) {
    auto log = open(0);
    append_durably(*log, {.value = "kept"});
    restart();
    volume_.set_hook([&](const MemoryVolume::Step& step) -> std::optional<Fault> {
        if (step.path == manifest(1)) return Fault{};
        return std::nullopt;
    });
    ASSERT_FALSE(broker_->open(1));
    volume_.set_hook({});
    ASSERT_FALSE(volume_.list(std::string(kDirectory) + "/00000001")->empty());
    restart();
    expect(2, {"kept"}, 0);
}

TEST_F(VoidEpochs, WhatAnOlderEpochHoldsIsSealed) {
    release(0, "kept");
    release(1, "too");
    ASSERT_TRUE(volume_.unlink(manifest(0)));
    expect(2, {"kept", "too"}, 0);
}

}  // namespace
}  // namespace kaas::storage
