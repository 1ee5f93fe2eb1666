#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/uuid.h"
#include "storage/log_dir.h"
#include "storage/slot_log.h"
#include "storage/testing_session.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::storage::testing {

/// A coordinator whose state is a list of values, and the log of its slot.
struct TestingSlot {
    using Values = std::vector<std::string>;

    std::shared_ptr<SlotLog> log;
    Values values;

    /// Opens the log and replays what it inherits; offers no picture yet.
    [[nodiscard]] static Result<TestingSlot> open(SlotLogOptions options) {
        KAAS_TRY_ASSIGN(opened, SlotLog::open(std::move(options)));
        TestingSlot slot{.log = std::move(opened.log), .values = {}};
        if (!opened.inherited) return slot;
        for (const auto& value : opened.inherited->picture.at("values").as_array())
            slot.values.emplace_back(value.as_string());
        for (const auto& change : opened.inherited->changes)
            slot.values.emplace_back(change.at("add").as_string());
        return slot;
    }

    [[nodiscard]] boost::json::object picture() const {
        return {{"values", boost::json::array(values.begin(), values.end())}};
    }
    void offer_picture() const {
        if (log->wants_picture()) log->begin_file(picture());
    }
    void add(const std::string& value) {
        values.push_back(value);
        log->append(boost::json::serialize(boost::json::object{{"add", value}}));
        offer_picture();
    }
};

/// The internal topic whose partitions the slots are.
[[nodiscard]] inline base::TopicId slots_topic() {
    base::TopicId topic;
    topic.uuid.bytes.back() = 1;
    return topic;
}

/// The slot of a group coordinator that all tests share.
[[nodiscard]] inline SlotLogOptions slot_options(LogDir& log_dir, std::int32_t slot,
                                                 std::int32_t epoch,
                                                 std::vector<EpochCandidate> earlier) {
    return {.log_dir = &log_dir,
            .directory = "__cluster/groups/" + std::to_string(slot),
            .partition = {.topic = slots_topic(), .partition = base::PartitionId{slot}},
            .epoch = base::LeaderEpoch{epoch},
            .earlier = std::move(earlier),
            .roll_floor_bytes = 300};
}

/// One life of a broker that has slots on a volume; its work is done inline.
struct SlotLife {
    explicit SlotLife(Volume& volume, base::Clock& clock, bool journal = false)
        : log_dir({.volume = &volume,
                   .session = &session,
                   .io_pool = &executor,
                   .io_width = 1,
                   .clock = &clock,
                   .owner = {.broker = base::BrokerId{1}, .incarnation = {base::Uuid::random()}},
                   .journal = journal,
                   .journal_file_bytes = 64 * 1024}) {}

    [[nodiscard]] Result<TestingSlot> open(std::int32_t slot, std::int32_t epoch,
                                           std::int32_t lowest = 0, bool lowest_written = false) {
        return TestingSlot::open(
            slot_options(log_dir, slot, epoch,
                         candidates_below(log_dir.volume(), epoch, lowest, lowest_written)));
    }
    void run() {
        while (log_dir.run_cycle()) {
        }
    }
    /// Whether all that was appended is durable now.
    [[nodiscard]] bool settles(const TestingSlot& slot) {
        std::optional<Result<void>> answer;
        slot.log->settle(executor, [&](Result<void> outcome) { answer = std::move(outcome); });
        run();
        return answer && *answer;
    }

    TestingSession session;
    base::InlineExecutor executor;
    LogDir log_dir;
};

/// What `prepare_cluster` makes.
inline void make_slots_parent(Volume& volume) {
    EXPECT_TRUE(volume.make_directory("__cluster"));
    EXPECT_TRUE(volume.make_directory("__cluster/groups"));
    EXPECT_TRUE(volume.sync_directory(""));
    EXPECT_TRUE(volume.sync_directory("__cluster"));
}

}  // namespace kaas::storage::testing
