// Goal: brokers come, drain, lose a volume and die, and each time what they lead is assigned in the
// same step, to one that can serve, and to nobody while an earlier holder may write. Method: a
// controller on a volume in memory, told what a cluster of several brokers would tell it.

#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/uuid.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/admin.h"
#include "cluster/controller.h"
#include "cluster/error.h"
#include "cluster/reign.h"
#include "storage/memory_volume.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kaas::cluster {
namespace {

class ControllerMembers : public ::testing::Test {
protected:
    ControllerMembers() {
        EXPECT_TRUE(prepare_cluster(volume_));
        take_office();
    }
    void take_office() {
        controller_ = std::make_unique<Controller>(ControllerOptions{
            .clock = &clock_, .config = {.balance = balance_}, .push = [this](const Push& push) {
                image_ = push.image;
                changes_ = push.changes;
                ++pushes_;
            }});
        auto reign = begin_reign(volume_, base::BrokerId(9), "cluster");
        ASSERT_TRUE(reign) << reign.error().context;
        image_ = reign->image;
        controller_->begin(std::move(*reign));
    }
    Reply<std::monostate> good() {
        return {&here_, [](Result<std::monostate> result) { EXPECT_TRUE(result); }};
    }
    void join(int id, const std::vector<std::string>& volumes = {"main"}) {
        catalog::Broker broker{.id = base::BrokerId(id)};
        for (const auto& volume : volumes) {
            broker.sessions.emplace(volume, base::Incarnation{base::Uuid::random()});
        }
        controller_->register_broker(broker, good());
        controller_->step();
    }
    base::TopicId create(const std::string& name, std::vector<std::vector<int>> assignments) {
        CreateTopics request;
        request.topics = {{.name = name}};
        for (const auto& row : assignments) {
            auto& one = request.topics[0].assignments.emplace_back();
            one.index = static_cast<int>(request.topics[0].assignments.size()) - 1;
            one.brokers = {row.begin(), row.end()};
        }
        controller_->create_topics(request, {&here_, [](const auto&) {}});
        controller_->step();
        EXPECT_NE(image_->topic(name), nullptr);
        return image_->topic(name)->id;
    }
    const catalog::Partition& at(base::TopicId topic, int index) {
        return *image_->partition({topic, base::PartitionId(index)});
    }
    int leader(base::TopicId topic, int index) { return image_->leader(at(topic, index)).value(); }
    catalog::PartitionEpoch held(base::TopicId topic, int index) {
        return {{topic, base::PartitionId(index)}, at(topic, index).leader_epoch};
    }
    Sessions sessions(int id) { return image_->broker(base::BrokerId(id))->sessions; }

    /// Asked back and not yet released.
    std::vector<catalog::PartitionEpoch> asked_back() {
        std::vector<catalog::PartitionEpoch> epochs;
        image_->for_each_topic([&](const catalog::Topic& topic) {
            for (std::size_t i = 0; i < topic.partitions.size(); ++i) {
                if (!topic.partitions[i].asked_back) continue;
                epochs.push_back(held(topic.id, static_cast<int>(i)));
            }
        });
        return epochs;
    }
    std::map<int, int> leads(base::TopicId topic) {
        std::map<int, int> counts;
        for (const auto& partition : image_->topic(topic)->partitions) {
            ++counts[image_->leader(partition).value()];
        }
        return counts;
    }

    BalanceConfig balance_;
    base::ManualClock clock_;
    base::InlineExecutor here_;
    storage::MemoryVolume volume_;
    catalog::ImagePtr image_;
    std::vector<catalog::Change> changes_;
    std::size_t pushes_ = 0;
    std::unique_ptr<Controller> controller_;
};

TEST_F(ControllerMembers, DeadBrokersPartitionsAreAssignedInOneStep) {
    for (const int id : {1, 2, 3}) join(id);
    const auto t = create("t", {{1, 2}, {1, 3}, {2, 1}, {3, 2}});
    const auto pushes = pushes_;
    controller_->remove_broker(base::BrokerId(1), good());
    controller_->step();
    EXPECT_EQ(pushes_, pushes + 1);
    EXPECT_EQ(changes_.size(), 2U) << "one line says who is gone, one who leads";
    EXPECT_EQ(leader(t, 0), 2);
    EXPECT_EQ(leader(t, 1), 3);
    EXPECT_EQ(at(t, 2).leader_epoch, base::LeaderEpoch(0)) << "2 has kept it";
}

TEST_F(ControllerMembers, WhatNobodyCanTakeWaitsForOneThatCan) {
    join(1);
    const auto t = create("t", {{1}});
    controller_->remove_broker(base::BrokerId(1), good());
    controller_->step();
    EXPECT_EQ(leader(t, 0), -1);
    join(2, {"other"});
    EXPECT_EQ(leader(t, 0), -1);
    join(3);
    EXPECT_EQ(leader(t, 0), 3);
    join(1);
    EXPECT_EQ(at(t, 0).leader_epoch, base::LeaderEpoch(1)) << "3 lives, and keeps it";
}

TEST_F(ControllerMembers, LossOfOneVolumeCostsOnlyWhatIsThere) {
    join(1, {"a", "b"});
    join(2, {"a", "b"});
    const auto t = create("t", {{1}, {1}});
    ASSERT_NE(at(t, 0).volume(), at(t, 1).volume());
    const auto lost = at(t, 0).volume();
    controller_->remove_sessions(base::BrokerId(1), {{lost, sessions(1).at(lost)}}, good());
    controller_->step();
    EXPECT_EQ(leader(t, 0), 2);
    EXPECT_EQ(leader(t, 1), 1);
    EXPECT_TRUE(image_->broker(base::BrokerId(1))->living());
    controller_->remove_broker(base::BrokerId(2), good());
    controller_->step();
    EXPECT_EQ(leader(t, 0), -1) << "1 has no session there";
    join(1, {"a", "b"});
    EXPECT_EQ(leader(t, 0), 1);
}

TEST_F(ControllerMembers, MarkOfAnEarlierSessionEndsNoLaterOne) {
    join(1);
    join(2);
    const auto t = create("t", {{1}});
    const auto marked = sessions(1);
    join(1);  // came back while it was being marked
    const auto pushes = pushes_;
    controller_->remove_sessions(base::BrokerId(1), marked, good());
    controller_->remove_sessions(base::BrokerId(7), marked, good());
    controller_->step();
    EXPECT_EQ(pushes_, pushes);
    EXPECT_EQ(leader(t, 0), 1);
}

TEST_F(ControllerMembers, DrainedEpochsAreHandedOnInTheStepThatHearsOfThem) {
    for (const int id : {1, 2, 3}) join(id);
    const auto t = create("t", {{1}, {1}});
    const auto u = create("u", {{1, 2}, {1, 3}});
    controller_->drain_broker(base::BrokerId(1), good());
    controller_->step();
    EXPECT_TRUE(image_->broker(base::BrokerId(1))->draining);
    EXPECT_EQ(leader(t, 0), 1) << "it serves until it has released";
    controller_->released({held(t, 0), held(t, 1), held(u, 0), held(u, 1)});
    controller_->step();
    EXPECT_NE(leader(t, 0), leader(t, 1));
    EXPECT_EQ(leader(u, 0), 2);
    EXPECT_EQ(leader(u, 1), 3);
    const auto pushes = pushes_;
    controller_->drain_broker(base::BrokerId(1), good());
    controller_->drain_broker(base::BrokerId(7), good());
    controller_->step();
    EXPECT_EQ(pushes_, pushes);
}

TEST_F(ControllerMembers, LastBrokerToDrainGetsNothingBack) {
    join(1);
    const auto t = create("t", {{1}});
    controller_->drain_broker(base::BrokerId(1), good());
    controller_->released({held(t, 0)});
    controller_->step();
    EXPECT_EQ(leader(t, 0), -1);
    join(1);
    EXPECT_EQ(leader(t, 0), 1);
}

TEST_F(ControllerMembers, ReleaseWhoseAssignmentWasLostIsPlacedByTheNextReign) {
    join(1);
    join(2);
    const auto t = create("t", {{1, 2}});
    controller_->drain_broker(base::BrokerId(1), good());
    controller_->step();
    // The holder's release gets into the log, and the line after it does not.
    auto reign = begin_reign(volume_, base::BrokerId(9), "cluster");
    ASSERT_TRUE(reign);
    const std::vector<catalog::Change> lines = {catalog::Released{{held(t, 0)}}};
    ASSERT_TRUE(reign->log.commit(lines));
    take_office();
    ASSERT_EQ(leader(t, 0), -1);
    controller_->step();
    EXPECT_EQ(leader(t, 0), 2);
}

using Leads = std::map<int, int>;

TEST_F(ControllerMembers, NewcomerGetsItsShareAFewAtATime) {
    balance_.moves_under_way = 2;
    take_office();
    join(1);
    join(2);
    const auto t = create("t", std::vector<std::vector<int>>(12, {1}));
    join(2);  // a restart is as good a reason as any
    join(3);
    EXPECT_EQ(asked_back().size(), 2U);
    EXPECT_EQ(leads(t), (Leads{{1, 12}})) << "they serve until they have released";
    for (int turn = 0; turn < 4; ++turn) {
        const auto epochs = asked_back();
        ASSERT_EQ(epochs.size(), 2U) << turn;
        controller_->released({epochs[0]});
        controller_->step();
        ASSERT_EQ(asked_back().size(), turn < 3 ? 2U : 1U) << "the next one is asked for at once";
        controller_->released({epochs[1]});
        controller_->step();
    }
    EXPECT_TRUE(asked_back().empty());
    EXPECT_EQ(leads(t), (Leads{{1, 4}, {2, 4}, {3, 4}}));
    const auto pushes = pushes_;
    join(3);
    EXPECT_EQ(leads(t), (Leads{{1, 4}, {2, 4}, {3, 4}}));
    EXPECT_EQ(pushes_, pushes + 1);
    EXPECT_TRUE(asked_back().empty());
}

TEST_F(ControllerMembers, SuccessorGoesOnWithTheMovesOfItsPredecessor) {
    balance_.moves_under_way = 3;
    take_office();
    join(1);
    const auto t = create("t", std::vector<std::vector<int>>(10, {1}));
    join(2);
    const auto epochs = asked_back();
    ASSERT_EQ(epochs.size(), 3U);
    volume_.crash();
    take_office();
    controller_->released(epochs);
    controller_->step();
    EXPECT_EQ(leads(t), (Leads{{1, 7}, {2, 3}})) << "they arrive where they were meant for";
    EXPECT_TRUE(asked_back().empty()) << "who has died with the predecessor may look alive yet";
    const auto next = controller_->step();
    EXPECT_LE(next, clock_.now() + std::chrono::seconds(10));
    clock_.advance(std::chrono::seconds(10));
    controller_->step();
    EXPECT_EQ(asked_back().size(), 2U);
    controller_->released(asked_back());
    controller_->step();
    EXPECT_EQ(leads(t), (Leads{{1, 5}, {2, 5}}));
}

TEST_F(ControllerMembers, DeadNewcomersShareStaysWhereItIs) {
    balance_.moves_under_way = 1;
    take_office();
    join(1);
    const auto t = create("t", std::vector<std::vector<int>>(4, {1}));
    join(2);
    const auto epochs = asked_back();
    controller_->remove_broker(base::BrokerId(2), good());
    controller_->step();
    controller_->released(epochs);
    controller_->step();
    EXPECT_EQ(leads(t), (Leads{{1, 4}}));
    EXPECT_TRUE(asked_back().empty());
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(at(t, i).target.empty()) << "2 may never come back";
}

TEST_F(ControllerMembers, ReassignedPartitionsAreAskedBackAndPreferredLeadersRepaired) {
    for (const int id : {1, 2}) join(id);
    const auto t = create("t", {{1}, {2}});
    const auto reassign = [&](int index, std::vector<int> replicas) {
        ReassignPartition one{index, std::nullopt};
        one.replicas.emplace(replicas.begin(), replicas.end());
        controller_->alter_reassignments({{{"t", {one}}}}, {&here_, [](const auto&) {}});
        controller_->step();
    };
    reassign(0, {2});
    EXPECT_EQ(asked_back().size(), 1U);
    controller_->released(asked_back());
    controller_->step();
    EXPECT_EQ(leads(t), (Leads{{2, 2}})) << "as it was asked for, though it is not even";
    EXPECT_EQ(at(t, 0).replicas, std::vector{base::BrokerId(2)});

    reassign(0, {1, 2});
    EXPECT_TRUE(asked_back().empty()) << "the leader is in the list";
    clock_.advance(std::chrono::seconds(299));
    controller_->step();
    EXPECT_TRUE(asked_back().empty());
    clock_.advance(std::chrono::seconds(1));
    controller_->step();
    controller_->released(asked_back());
    controller_->step();
    EXPECT_EQ(leader(t, 0), 1);
}

}  // namespace
}  // namespace kaas::cluster
