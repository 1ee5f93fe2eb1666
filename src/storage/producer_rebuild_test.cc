// Goal: what a log knows of its producers is the same after a restart, whether it was told whole
// (a release), read from the batches and markers (a crash), or both (a crash behind a checkpoint).
// Method: random histories from a seed, each lived three times.

#include "storage/partition_log.h"
#include "storage/testing_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

using testing::Answer;
using testing::Broker;
using testing::make_batch;
using testing::to_append;
using testing::verify;

enum class End { kRelease, kCrash };

struct Outcome {
    std::vector<ProducerImage> before;
    std::vector<ProducerImage> after;
};

class Life {
public:
    Life(std::uint64_t seed, std::uint64_t checkpoint_bytes)
        : random_(seed), checkpoint_bytes_(checkpoint_bytes) {}

    [[nodiscard]] Outcome run(End end) {
        LogConfig config;
        config.segment_bytes = 1500;
        auto broker = std::make_unique<Broker>(volume_, clock_, checkpoint_bytes_);
        auto log = *broker->open(0, config);
        for (auto turns = pick(1, 80); turns > 0; --turns) act(*broker, *log);
        Outcome outcome{.before = in_order(log->producers()), .after = {}};
        if (end == End::kRelease) {
            EXPECT_TRUE(log->release(std::chrono::seconds(1)));
        } else {
            volume_.crash({});
        }
        broker = std::make_unique<Broker>(volume_, clock_, checkpoint_bytes_);
        log = *broker->open(1, config);
        outcome.after = in_order(log->producers());
        return outcome;
    }

private:
    struct Producer {
        std::int16_t epoch = 0;
        std::int32_t next = 0;
        std::int32_t last_count = 0;
    };

    [[nodiscard]] std::int64_t pick(std::int64_t low, std::int64_t high) {
        return low +
               static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
    }

    [[nodiscard]] static bool transactional(std::int64_t id) { return id >= 2; }

    void act(Broker& broker, PartitionLog& log) {
        const auto id = pick(0, 3);
        if (transactional(id) && pick(1, 4) == 1) {
            end_transaction(broker, log, id);
        } else {
            send(broker, log, id);
        }
    }

    /// Under the same epoch, or a new one.
    void end_transaction(Broker& broker, PartitionLog& log, std::int64_t id) {
        auto& producer = producers_[id];
        if (pick(1, 2) == 1) producer = {.epoch = static_cast<std::int16_t>(producer.epoch + 1)};
        Answer answer;
        ASSERT_TRUE(log.append_marker(
            {.producer = base::ProducerId{id},
             .epoch = base::ProducerEpoch{producer.epoch},
             .coordinator_epoch = coordinator_epoch_ += static_cast<std::int32_t>(pick(0, 1)),
             .commit = pick(1, 2) == 1},
            broker.executor, answer.receiver()));
        broker.commit_all();
        ASSERT_TRUE(answer.good());
    }

    /// A batch of one of a few producers: its next, its last once more, or the first of a new
    /// epoch.
    void send(Broker& broker, PartitionLog& log, std::int64_t id) {
        auto& producer = producers_[id];
        auto count = static_cast<std::int32_t>(pick(1, 4));
        auto sequence = producer.next;
        const auto kind = pick(1, 10);
        const bool repeats = kind == 2 && producer.last_count > 0;
        if (kind == 1) {
            ++producer.epoch;
            sequence = 0;
        } else if (repeats) {
            count = producer.last_count;
            sequence = producer.next - count;
        }
        producer.next = sequence + count;
        producer.last_count = count;
        Answer answer;
        const testing::BatchOptions batch{.records = count,
                                          .timestamp_ms = clock_.wall_ms() + pick(-100, 100),
                                          .producer_id = id,
                                          .producer_epoch = producer.epoch,
                                          .sequence = sequence,
                                          .transactional = transactional(id)};
        auto request = to_append(make_batch(batch), Acks::kAll, broker.executor, answer.receiver());
        if (batch.transactional && !repeats) request.verification = *verify(log, batch);
        ASSERT_TRUE(log.append(std::move(request)));
        broker.commit_all();
        ASSERT_TRUE(answer.good());
    }

    [[nodiscard]] static std::vector<ProducerImage> in_order(std::vector<ProducerImage> images) {
        std::ranges::sort(images, {}, &ProducerImage::id);
        return images;
    }

    std::mt19937_64 random_;
    const std::uint64_t checkpoint_bytes_;
    MemoryVolume volume_;
    base::ManualClock clock_;  // stands still: a batch does not tell when it came
    Producer producers_[4];
    std::int32_t coordinator_epoch_ = 0;
};

TEST(ProducerRebuildTest, SnapshotReplayAndBothGiveTheSameProducers) {
    for (std::uint64_t seed = 0; seed < 150 && !::testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE(seed);
        const auto told = Life(seed, std::uint64_t{1} << 30).run(End::kRelease);
        const auto replayed = Life(seed, std::uint64_t{1} << 30).run(End::kCrash);
        const auto both = Life(seed, 700).run(End::kCrash);
        EXPECT_FALSE(told.before.empty());
        EXPECT_EQ(told.after, told.before);
        EXPECT_EQ(replayed.after, told.before);
        EXPECT_EQ(both.after, told.before);
    }
}

}  // namespace
}  // namespace kaas::storage
