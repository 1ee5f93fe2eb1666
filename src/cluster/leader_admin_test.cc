// Goal: elections, reassignments and unregistrations get Apache's answers, and do to the image what
// its tools look for afterwards. Method: rows against small clusters; what Apache says was read
// from `ReplicationControlManager` 4.4.0 and compared in `tests/same_request`.

#include "cluster/leader_admin.h"

#include "base/ids.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/admin.h"
#include "cluster/draft.h"
#include "cluster/error.h"
#include "cluster/testing_members.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kaas::cluster {
namespace {

class LeaderAdmin : public ::testing::Test {
protected:
    LeaderAdmin() {
        topic_ = world_.create(
            "t", {led_by(world_.image(), 2, {1, 2}), led_by(world_.image(), 1, {1, 2}),
                  led_by(world_.image(), 1, {4, 1})});
    }
    /// Does what was planned.
    template <class Plan>
    auto act(Plan plan) {
        Draft draft(world_.image());
        auto answer = plan(draft);
        for (const auto& change : draft.changes()) world_.apply(change);
        return answer;
    }
    static std::string shown(const Result<void>& outcome) {
        return outcome ? "good" : outcome.error().context;
    }
    std::string elect(const std::string& topic, int index, int type = 0) {
        const auto answer = act([&](Draft& draft) {
            return plan(ElectLeaders{static_cast<std::int8_t>(type), {{{topic, {index}}}}}, draft);
        });
        if (!answer) return answer.error().context;
        return shown(answer->at(0).partitions.at(0).outcome);
    }
    Result<void> reassign(const std::string& topic, int index,
                          std::optional<std::vector<int>> replicas, bool factor_change = true) {
        ReassignPartition one{index, std::nullopt};
        if (replicas) one.replicas = ids(*replicas);
        return act([&](Draft& draft) {
                   return plan(AlterReassignments{{{topic, {one}}}, factor_change}, draft);
               })
            .at(0)
            .partitions.at(0)
            .outcome;
    }
    std::vector<OngoingReassignments> ongoing(ListReassignments request = {}) {
        return list(request, world_.image());
    }

    World world_{{{.id = 1}, {.id = 2}, {.id = 3}, {.id = 4, .volumes = {"other"}}}};
    base::TopicId topic_;
};

TEST_F(LeaderAdmin, ElectionsAreAnsweredAsByApache) {
    EXPECT_EQ(elect("t", 1), "Leader election not needed for topic partition.");
    EXPECT_EQ(elect("t", 2), "The preferred leader was not available.") << "it has not the volume";
    EXPECT_EQ(elect("t", 9), "No such partition as t-9");
    EXPECT_EQ(elect("t", -1), "No such partition as t--1");
    EXPECT_EQ(elect("x", 0), "No such topic as x");
    EXPECT_EQ(elect("t", 0, 1), "Leader election not needed for topic partition.");
    EXPECT_EQ(elect("t", 0, 2), "Unknown election type 2");
    EXPECT_FALSE(world_.at(topic_, 0).asked_back);
    EXPECT_EQ(elect("t", 0), "good");
    EXPECT_TRUE(world_.at(topic_, 0).asked_back);
    EXPECT_EQ(elect("t", 0), "good") << "it is on its way";
    for (const int id : {1, 2, 3}) world_.leave(id);
    EXPECT_EQ(elect("t", 0), "The preferred leader was not available.");
    EXPECT_EQ(elect("t", 0, 1), "Eligible topic partition leaders are not available.");
}

TEST_F(LeaderAdmin, ElectionOfAllLeavesOutWhoNeedsNone) {
    world_.create("u", {{1, 2}});
    const auto answer = act([&](Draft& draft) { return plan(ElectLeaders{}, draft); });
    ASSERT_TRUE(answer);
    ASSERT_EQ(answer->size(), 2U);
    EXPECT_EQ((*answer)[0].partitions.size(), 2U);
    EXPECT_TRUE((*answer)[1].partitions.empty());
}

TEST_F(LeaderAdmin, ReassignmentWithTheLeaderIsDoneAtOnce) {
    EXPECT_TRUE(reassign("t", 0, {{3, 2}}));
    EXPECT_EQ(world_.at(topic_, 0).replicas, ids({3, 2}));
    EXPECT_TRUE(ongoing().empty());
    EXPECT_EQ(world_.leader(topic_, 0), 2);
}

TEST_F(LeaderAdmin, ReassignmentAwayFromTheLeaderIsOngoingUntilItIsCalledOff) {
    EXPECT_TRUE(reassign("t", 0, {{3, 1}}));
    const auto all = ongoing();
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].topic, "t");
    ASSERT_EQ(all[0].partitions.size(), 1U);
    EXPECT_EQ(all[0].partitions[0].replicas, ids({3, 1, 2}));
    EXPECT_EQ(all[0].partitions[0].adding, ids({3}));
    EXPECT_EQ(all[0].partitions[0].removing, ids({2}));
    EXPECT_EQ(ongoing({{{{"x", {0}}, {"t", {1, 2, 9}}}}}).size(), 0U);
    EXPECT_EQ(ongoing({{{{"t", {0}}}}}).size(), 1U);

    EXPECT_TRUE(reassign("t", 0, std::nullopt));
    EXPECT_TRUE(ongoing().empty());
    EXPECT_EQ(world_.at(topic_, 0).replicas, ids({1, 2}));
    const auto again = reassign("t", 0, std::nullopt);
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, ErrorCode::kNoReassignmentInProgress);
}

TEST_F(LeaderAdmin, ReassignmentsAreRefusedAsByApache) {
    const auto why = [&](const std::string& topic, int index, std::vector<int> replicas,
                         bool factor_change = true) {
        return shown(reassign(topic, index, replicas, factor_change));
    };
    EXPECT_EQ(why("x", 0, {1}), "Unable to find a topic named x.");
    EXPECT_EQ(why("t", 9, {1}), "Unable to find partition t:9.");
    EXPECT_EQ(why("t", 0, {}), "The manual partition assignment includes an empty replica list.");
    EXPECT_EQ(why("t", 0, {9}),
              "The manual partition assignment includes broker 9, but no such broker is "
              "registered.");
    EXPECT_EQ(why("t", 0, {1, 1}),
              "The manual partition assignment includes the broker 1 more than once.");
    EXPECT_EQ(why("t", 0, {1}, false), "The replication factor is changed from 2 to 1");
    EXPECT_EQ(world_.at(topic_, 0).replicas, ids({1, 2}));
    EXPECT_EQ(why("t", 0, {3}), "good");
    EXPECT_EQ(why("t", 0, {1, 3}, false), "The replication factor is changed from 1 to 2");
}

TEST_F(LeaderAdmin, ReassignmentOfALeaderlessPartitionFindsItALeader) {
    const auto u = world_.create("u", std::vector{led_by(world_.image(), 4, {4}, "other")});
    world_.leave(4);
    EXPECT_EQ(world_.leader(u, 0), -1);
    world_.join({.id = 5, .volumes = {"other"}});
    EXPECT_TRUE(reassign("u", 0, {{5, 1}}));
    EXPECT_EQ(world_.leader(u, 0), 5);
    EXPECT_EQ(world_.at(u, 0).replicas, ids({5, 1}));
}

TEST_F(LeaderAdmin, UnregisteredBrokerIsForgottenOnceItIsGone) {
    const auto unregistered = [&](int id) {
        return act([&](Draft& draft) { return unregister(base::BrokerId(id), draft); });
    };
    const auto unknown = unregistered(9);
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code, ErrorCode::kBrokerIdNotRegistered);
    EXPECT_EQ(unknown.error().context, "Broker ID 9 is not currently registered");
    EXPECT_TRUE(unregistered(3));
    EXPECT_TRUE(world_.image().broker(base::BrokerId(3))->draining);
    EXPECT_TRUE(unregistered(3));
    world_.leave(3);
    EXPECT_TRUE(unregistered(3));
    EXPECT_EQ(world_.image().broker(base::BrokerId(3)), nullptr);
    EXPECT_FALSE(unregistered(3));
}

}  // namespace
}  // namespace kaas::cluster
