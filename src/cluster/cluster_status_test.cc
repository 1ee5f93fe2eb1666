// Goal: what a person is told of a cluster is what stands on its volume. Method: a controller and
// sessions on volumes in memory; brokers die, drain and give up partitions.

#include "cluster/cluster_status.h"

#include "base/executor.h"
#include "base/ids.h"
#include "catalog/model.h"
#include "cluster/admin.h"
#include "cluster/controller.h"
#include "cluster/controller_address.h"
#include "cluster/error.h"
#include "cluster/identity.h"
#include "cluster/reign.h"
#include "cluster/session.h"
#include "storage/memory_volume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kaas::cluster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using MemberState = ClusterStatus::MemberState;
using SessionState = ClusterStatus::SessionState;

class ClusterStatusTest : public ::testing::Test {
protected:
    ClusterStatusTest() {
        EXPECT_TRUE(prepare_cluster(volume_));
        EXPECT_TRUE(prepare_volume(volume_));
        EXPECT_TRUE(write_identity(volume_, {.cluster_id = "c", .volume = "v", .shared = true}));
        reign();
    }
    void reign(int broker = 1) {
        auto begun = begin_reign(volume_, base::BrokerId(broker), "c");
        ASSERT_TRUE(begun) << begun.error().context;
        const auto epoch = begun->image->version().epoch;
        controller_ = std::make_unique<Controller>(
            ControllerOptions{.config = {}, .push = [this](const Push& push) {
                                  for (const auto id : join_)
                                      controller_->applied(id, push.image->version(), true);
                              }});
        controller_->begin(std::move(*begun));
        tell_address(volume_, {.epoch = epoch,
                               .broker = base::BrokerId(broker),
                               .host = "h",
                               .port = 9094,
                               .cluster_id = "c"});
    }
    void join(int id, std::optional<std::string> rack = std::nullopt) {
        const base::BrokerId broker(id);
        auto session = Session::open(volume_, broker);
        ASSERT_TRUE(session);
        catalog::Broker self{.id = broker, .rack = std::move(rack)};
        self.sessions.emplace("v", (*session)->incarnation());
        self.volumes.emplace("v", catalog::BrokerVolume{.path = "/mnt/v"});
        sessions_[broker] = std::move(*session);
        join_.insert(broker);
        controller_->register_broker(self, {&here_, [](const auto& done) { EXPECT_TRUE(done); }});
        controller_->step();
    }
    void create(const std::string& name, std::vector<std::vector<base::BrokerId>> replicas) {
        CreateTopics request;
        auto& topic = request.topics.emplace_back();
        topic.name = name;
        for (std::size_t i = 0; i < replicas.size(); ++i) {
            topic.assignments.push_back({static_cast<std::int32_t>(i), std::move(replicas[i])});
        }
        controller_->create_topics(std::move(request),
                                   {&here_, [](const auto& done) { EXPECT_TRUE(done); }});
        controller_->step();
        controller_->step();
    }
    void end_session(int id) {
        const base::BrokerId broker(id);
        EXPECT_TRUE(mark_session(volume_, broker, sessions_.at(broker)->incarnation()));
    }
    ClusterStatus status() {
        auto read = read_cluster_status({&volume_});
        EXPECT_TRUE(read) << read.error().context;
        return read ? *read : ClusterStatus{};
    }

    storage::MemoryVolume volume_;
    base::InlineExecutor here_;
    std::set<base::BrokerId> join_;
    std::map<base::BrokerId, std::unique_ptr<Session>> sessions_;
    std::unique_ptr<Controller> controller_;
};

TEST_F(ClusterStatusTest, TellsWhoLivesAndWhoReigns) {
    join(1, "a");
    join(2);
    create("t", {{base::BrokerId(1)}, {base::BrokerId(2)}, {base::BrokerId(2)}});
    const auto now = status();
    EXPECT_EQ(now.cluster_id, "c");
    EXPECT_EQ(now.controller, base::BrokerId(1));
    EXPECT_EQ(now.epoch, base::ControllerEpoch(1));
    EXPECT_TRUE(now.reigns);
    ASSERT_TRUE(now.address);
    EXPECT_EQ(now.address->port, 9094);
    EXPECT_EQ(now.partitions, 3U);
    ASSERT_THAT(now.members, SizeIs(2));
    EXPECT_EQ(now.members[0].state, MemberState::kLiving);
    EXPECT_EQ(now.members[0].rack, "a");
    EXPECT_EQ(now.members[1].state, MemberState::kLiving);
    ASSERT_THAT(now.members[1].sessions, SizeIs(1));
    EXPECT_EQ(now.members[1].sessions[0].state, SessionState::kAlive);
    EXPECT_EQ(now.members[1].sessions[0].leads, 2U);
    EXPECT_EQ(now.members[1].sessions[0].path, "/mnt/v");
    EXPECT_THAT(now.moves, IsEmpty());
    EXPECT_THAT(now.offline, IsEmpty());
}

TEST_F(ClusterStatusTest, AMarkedSessionCountsBeforeTheControllerHasActed) {
    join(1);
    join(2);
    create("t", {{base::BrokerId(1)}, {base::BrokerId(2)}});
    end_session(2);
    const auto now = status();
    EXPECT_EQ(now.members[1].state, MemberState::kFenced);
    EXPECT_EQ(now.members[1].sessions[0].state, SessionState::kEnded);
    ASSERT_THAT(now.offline, SizeIs(1));
    EXPECT_EQ(now.offline[0].partition, base::PartitionId(1));
    EXPECT_THAT(now.offline[0].why, AllOf(HasSubstr("broker 2"), HasSubstr("was ended")));
}

TEST_F(ClusterStatusTest, WhatNobodyElseMayLeadIsOfflineWithItsBroker) {
    join(2);
    create("t", {{base::BrokerId(2)}});
    end_session(2);
    controller_->remove_broker(base::BrokerId(2), {&here_, [](const auto&) {}});
    controller_->step();
    const auto now = status();
    EXPECT_EQ(now.members.back().state, MemberState::kGone);
    ASSERT_THAT(now.offline, SizeIs(1));
    EXPECT_THAT(now.offline[0].why, HasSubstr("broker 2 is gone"));
}

TEST_F(ClusterStatusTest, DrainingIsSaid) {
    join(1);
    join(2);
    controller_->drain_broker(base::BrokerId(2), {&here_, [](const auto&) {}});
    controller_->step();
    EXPECT_EQ(status().members[1].state, MemberState::kDraining);
}

TEST_F(ClusterStatusTest, AMoveIsShownUntilItIsDone) {
    join(1);
    join(2);
    create("t", {{base::BrokerId(1)}});
    AlterReassignments request;
    auto& topic = request.topics.emplace_back();
    topic.name = "t";
    topic.partitions.push_back({0, std::vector{base::BrokerId(2)}});
    controller_->alter_reassignments(std::move(request), {&here_, [](const auto&) {}});
    controller_->step();
    const auto now = status();
    ASSERT_THAT(now.moves, SizeIs(1));
    EXPECT_EQ(now.moves[0].topic, "t");
    EXPECT_EQ(now.moves[0].from, base::BrokerId(1));
    EXPECT_EQ(now.moves[0].to, std::vector{base::BrokerId(2)});
}

TEST_F(ClusterStatusTest, AnEndedReignIsNone) {
    join(1);
    EXPECT_TRUE(volume_.mark("__cluster/election/00000001", storage::MarkKind::kKeep));
    EXPECT_FALSE(status().reigns);
    reign(2);
    EXPECT_TRUE(status().reigns);
    EXPECT_EQ(status().newest_epoch, base::ControllerEpoch(2));
}

TEST_F(ClusterStatusTest, AVolumeThatWasNotGivenIsNotJudged) {
    join(1);
    storage::MemoryVolume other;
    EXPECT_TRUE(prepare_volume(other));
    EXPECT_TRUE(write_identity(other, {.cluster_id = "c", .volume = "w", .shared = true}));
    EXPECT_TRUE(read_cluster_status({&other, &volume_}));
    const auto without = read_cluster_status({&other});
    ASSERT_FALSE(without);
    EXPECT_THAT(without.error().context, HasSubstr("__cluster"));
    storage::MemoryVolume empty;
    EXPECT_THAT(read_cluster_status({&empty}).error().context, HasSubstr("no volume of kaas"));
}

}  // namespace
}  // namespace kaas::cluster
