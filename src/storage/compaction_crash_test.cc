// Goal: a machine that dies at any step of a compaction comes back with every segment old or new,
// whole: no record lost, none changed, no index beside another's log, and nothing left behind for
// ever. Method: the same compaction on a fresh volume in memory, dying one step later each time,
// with what was not synced lost, or kept by chance.
#include "base/log.h"
#include "storage/compaction.h"
#include "storage/testing_compaction.h"
#include "storage/testing_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

using testing::Answer;
using testing::Broker;
using testing::look_at;
using testing::make_keyed_batch;
using testing::SeenRecord;
using testing::TestCleaner;

constexpr const char* kDirectory = "topic.AAAAAAAAAAAAAAAAAAAAAA/0";

/// One machine with one compacted log of several groups of segments, half of it compacted before.
class Machine {
public:
    Machine() {
        config_.compacted = true;
        config_.segment_bytes = 700;
        config_.index_interval_bytes = 100;
        start(1);
        fill();
        commit();
        std::ignore = cleaner_.run(*log_);
        fill();
        commit();
        clock_.advance(std::chrono::minutes(2));
        log_->reclaim();
        before_ = look_at(*log_).records;
    }

    [[nodiscard]] std::uint64_t steps() const { return volume_.steps(); }
    [[nodiscard]] const std::vector<SeenRecord>& before() const { return before_; }

    [[nodiscard]] bool compact() { return cleaner_.run(*log_).value_or(false); }

    void die(CrashFate fate) {
        log_.reset();
        broker_.reset();
        volume_.crash(fate);
        start(next_epoch_);
    }

    void expect_old_or_new() {
        const auto seen = look_at(*log_).records;
        std::set<std::string> keys;
        for (const auto& record : before_) keys.insert(record.key);
        std::set<std::string> seen_keys;
        for (const auto& record : seen) seen_keys.insert(record.key);
        EXPECT_EQ(seen_keys, keys);
        EXPECT_TRUE(
            std::ranges::includes(before_, seen, {}, &SeenRecord::offset, &SeenRecord::offset));
        for (const auto& key : keys) {
            const auto is_of = [&](const SeenRecord& record) { return record.key == key; };
            const auto last = std::find_if(before_.rbegin(), before_.rend(), is_of);
            const auto still = std::find_if(seen.rbegin(), seen.rend(), is_of);
            ASSERT_NE(still, seen.rend());
            EXPECT_EQ(*still, *last);
        }
        expect_good_indexes(seen);
    }

    /// Afterwards the next compaction ends well, and no file is there that nobody names.
    void expect_nothing_left_behind() {
        fill();
        commit();
        ASSERT_TRUE(compact());
        ASSERT_FALSE(log_->has_unfinished_compactions());
        clock_.advance(std::chrono::minutes(2));
        log_->reclaim();
        std::set<std::string> named;
        const auto name = [&](const SegmentSpan& span) { named.insert(span.segment->path()); };
        const auto view = log_->view();
        std::ranges::for_each(*view.sealed, name);
        name(view.last);
        EXPECT_EQ(log_files(kDirectory), named);
    }

private:
    void start(std::int32_t epoch) {
        broker_ = std::make_unique<Broker>(volume_, clock_);
        auto opened = broker_->open(epoch, config_);
        ASSERT_TRUE(opened.has_value()) << opened.error().context;
        log_ = std::move(*opened);
        next_epoch_ = epoch + 1;
    }
    void commit() { broker_->commit_all(); }

    void fill() {
        for (int i = 0; i < 16; ++i) {
            const auto text = std::to_string(++produced_);
            const auto bytes =
                make_keyed_batch({.records = {{"key-" + std::to_string(produced_ % 7), text},
                                              {"once-" + text, std::string(20, 'x')}},
                                  .timestamp_ms = clock_.wall_ms(),
                                  .compression = wire::Compression(produced_ % 2 == 0 ? 0 : 4)});
            Answer answer;
            auto appended =
                log_->append(testing::to_append(bytes, Acks::kAll, home_, answer.receiver()));
            ASSERT_TRUE(appended.has_value()) << appended.error().context;
            commit();
            ASSERT_TRUE(answer.good());
        }
    }

    /// Every record is found from its own offset, and by its time.
    void expect_good_indexes(const std::vector<SeenRecord>& seen) {
        for (const auto& record : seen) {
            const auto read = log_->read({.from = base::Offset{record.offset}, .max_bytes = 1},
                                         Patience::kMayBlock);
            ASSERT_TRUE(read.has_value()) << read.error().context;
            std::vector<std::byte> bytes(read->records.length);
            ASSERT_TRUE(read_exactly(*read->records.file, read->records.offset, bytes,
                                     Patience::kMayBlock));
            const auto found = look_at(bytes).records;
            EXPECT_TRUE(std::ranges::find(found, record) != found.end()) << record.offset;
            const auto timed =
                log_->first_at_or_after(record.timestamp_ms, Isolation::kReadUncommitted);
            ASSERT_TRUE(timed.has_value() && *timed);
            EXPECT_LE((*timed)->offset.value(), record.offset);
        }
    }

    [[nodiscard]] std::set<std::string> log_files(const std::string& directory) {
        std::set<std::string> files;
        for (const auto& name : volume_.list(directory).value()) {
            const auto path = directory + "/" + name;
            if (volume_.list(path)) {
                files.merge(log_files(path));
            } else if (name.ends_with(".log")) {
                files.insert(path);
            }
        }
        return files;
    }

    base::ManualClock clock_;
    base::InlineExecutor home_;
    LogConfig config_;
    std::unique_ptr<Broker> broker_;
    std::shared_ptr<PartitionLog> log_;
    TestCleaner cleaner_{clock_};
    std::int32_t next_epoch_ = 1;
    int produced_ = 0;
    std::vector<SeenRecord> before_;

public:
    MemoryVolume volume_;
};

class CompactionCrashTest : public ::testing::TestWithParam<int> {
protected:
    void SetUp() override { base::log::configure({.level = base::log::Level::kError}); }
    void TearDown() override { base::log::configure({}); }
};

TEST_P(CompactionCrashTest, EverySegmentIsOldOrNewWhole) {
    Machine whole;
    const auto first = whole.steps();
    ASSERT_TRUE(whole.compact());
    const auto count = whole.steps() - first;
    ASSERT_GT(count, 50u) << "the compaction has too few steps to test anything";
    for (std::uint64_t step = 0; step <= count && !HasFatalFailure(); ++step) {
        SCOPED_TRACE("dies at step " + std::to_string(step) + " of " + std::to_string(count));
        Machine machine;
        machine.volume_.halt_at(machine.steps() + step);
        (void)machine.compact();
        CrashFate fate;
        if (GetParam() > 0) fate.seed = step * 100 + static_cast<std::uint64_t>(GetParam());
        machine.die(fate);
        machine.expect_old_or_new();
        machine.expect_nothing_left_behind();
        if (HasNonfatalFailure()) return;
    }
}

INSTANTIATE_TEST_SUITE_P(Fates, CompactionCrashTest, ::testing::Range(0, 3), [](const auto& info) {
    return info.param == 0 ? std::string("AllUnsyncedLost")
                           : "ByChance" + std::to_string(info.param);
});

}  // namespace
}  // namespace kaas::storage
