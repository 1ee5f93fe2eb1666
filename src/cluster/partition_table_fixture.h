#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/uuid.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/admin.h"
#include "cluster/partition_table.h"
#include "cluster/reign.h"
#include "storage/commit_cycle.h"
#include "storage/log_config.h"
#include "storage/memory_volume.h"
#include "storage/partition_log.h"
#include "storage/testing_log.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace kaas::cluster {

/// A table whose images are made by hand, on a volume in memory; the test moves clock and pool.
class PartitionTableTest : public ::testing::Test {
protected:
    PartitionTableTest() {
        EXPECT_TRUE(prepare_volume(volume_));
        make_table(pool_);
        catalog::Broker self{.id = base::BrokerId(1)};
        self.sessions.emplace("main", incarnation_);
        change(catalog::BrokerRegistered{self});
        topic_.name = "orders";
        topic_.id = {base::Uuid::random()};
        catalog::Partition partition;
        partition.replicas = {base::BrokerId(1)};
        partition.leader = mine();
        partition.runs = {{base::LeaderEpoch(0), "main"}};
        topic_.partitions = {partition};
    }

    void make_table(base::Executor& pool) {
        PartitionTable::Options options{
            .self = base::BrokerId(1),
            .places = {{"main", {&volume_, &broker_.log_dir, incarnation_}}},
            .io_pool = &pool,
            .clock = &clock_,
            .log_config =
                [](const catalog::ConfigMap& configs) {
                    storage::LogConfig config;
                    if (configs.contains("max.message.bytes")) config.max_message_bytes = 7;
                    config.retention_ms = 60'000;
                    config.file_delete_delay_ms = 5'000;
                    return config;
                },
            .on_image =
                [this](const catalog::ImagePtr& next) { announced_.push_back(next->version()); },
            .reports = {},
            .upkeep = {.first = std::chrono::seconds(10),
                       .segments = std::chrono::seconds(20),
                       .producers = std::chrono::seconds(30)},
            .release_patience = std::chrono::milliseconds(0)};
        options.reports.applied = [this](catalog::ImageVersion version) {
            applied_.push_back(version);
        };
        options.reports.opened = [this](std::vector<catalog::OpenedEpoch> epochs) {
            opened_.insert(opened_.end(), epochs.begin(), epochs.end());
        };
        options.reports.released = [this](std::vector<catalog::PartitionEpoch> epochs) {
            released_.insert(released_.end(), epochs.begin(), epochs.end());
            if (on_released) on_released(epochs);
        };
        options.reports.moved = [this](std::vector<MovedEpoch> epochs) {
            moved_.insert(moved_.end(), epochs.begin(), epochs.end());
        };
        options.reports.reclaimed = [this](base::TopicId topic) { reclaimed_.push_back(topic); };
        table_ = std::make_unique<PartitionTable>(std::move(options));
    }

    [[nodiscard]] catalog::Holder mine() const { return {base::BrokerId(1), incarnation_}; }
    [[nodiscard]] base::TopicPartition first() const { return {topic_.id, base::PartitionId(0)}; }

    void change(const catalog::Change& change) {
        catalog::ImageEditor editor(*image_);
        auto applied = editor.apply(change);
        ASSERT_TRUE(applied) << applied.error().context;
        image_ = std::move(editor).finish();
    }
    /// The table gets the image, but its pool stands still.
    void push() { table_->apply(image_); }
    void give(const catalog::Change& what) {
        change(what);
        push();
        pool_.run_all();
    }
    void assign(int epoch, catalog::Holder to) {
        give(catalog::Assigned{
            {{first(), {base::BrokerId(1)}, to, base::LeaderEpoch(epoch), "main"}}});
    }
    /// Work that is queued keeps its table alive.
    void TearDown() override { pool_.run_all(); }

    void tick(std::chrono::milliseconds later) {
        clock_.advance(later);
        table_->tick();
        pool_.run_all();
    }
    Hosted find() { return new_reader().find(topic_.id, base::PartitionId(0)); }
    PartitionReader new_reader() { return table_->reader(); }
    storage::testing::Answer& append(storage::PartitionLog& log) {
        auto& answer = answers_.emplace_back();
        auto offset = log.append(storage::testing::to_append(storage::testing::make_batch({}),
                                                             storage::Acks::kAll, broker_.executor,
                                                             answer.receiver()));
        EXPECT_TRUE(offset);
        broker_.commit_all();
        return answer;
    }
    /// A new topic whose first batch is written and not yet synced.
    std::unique_ptr<storage::CommitCycle> write_half_a_cycle(storage::testing::Answer& answer) {
        give(catalog::TopicCreated{topic_});
        EXPECT_TRUE(find().log->append(
            storage::testing::to_append(storage::testing::make_batch({}), storage::Acks::kAll,
                                        broker_.executor, answer.receiver())));
        auto cycle = broker_.log_dir.next_cycle();
        cycle->write();
        return cycle;
    }

    /// The controller, for a test that has one.
    std::function<void(const std::vector<catalog::PartitionEpoch>&)> on_released;

    storage::MemoryVolume volume_;
    base::ManualClock clock_;
    storage::testing::Broker broker_{volume_, clock_};
    storage::testing::HeldExecutor pool_;
    base::Incarnation incarnation_{base::Uuid::random()};
    catalog::ImagePtr image_ = catalog::ImageEditor("c").finish();
    catalog::Topic topic_;
    std::deque<storage::testing::Answer> answers_;

    std::vector<catalog::ImageVersion> announced_;
    std::vector<catalog::ImageVersion> applied_;
    std::vector<catalog::OpenedEpoch> opened_;
    std::vector<catalog::PartitionEpoch> released_;
    std::vector<MovedEpoch> moved_;
    std::vector<base::TopicId> reclaimed_;
    std::unique_ptr<PartitionTable> table_;
};

}  // namespace kaas::cluster
