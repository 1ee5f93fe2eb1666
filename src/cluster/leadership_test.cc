// Goal: who dies or leaves is followed by one that can serve, where the data is, evenly, and nobody
// else loses anything. Method: rows of small clusters, and clusters by printed seed with properties
// that hold after each death and return.

#include "cluster/leadership.h"

#include "base/ids.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/testing_members.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace kaas::cluster {
namespace {

class Leadership : public ::testing::Test {
protected:
    void place() {
        const auto assignments = place_homeless(world_.image());
        if (!assignments.empty()) world_.apply(catalog::Assigned{assignments});
    }
    /// Its leader gives the partition up, and the next one gets it.
    void release(base::TopicId topic, int index) {
        const base::TopicPartition id{topic, base::PartitionId(index)};
        const auto next = LeaderChoice(world_.image()).after_release(id);
        world_.apply(catalog::Released{{{id, world_.at(topic, index).leader_epoch}}});
        if (next) world_.apply(catalog::Assigned{{*next}});
    }
    void ask_back(base::TopicId topic, int index) {
        const base::TopicPartition id{topic, base::PartitionId(index)};
        world_.apply(catalog::AskedBack{{{id, world_.at(topic, index).leader_epoch}}});
    }
    std::vector<base::BrokerId> replicas(base::TopicId topic, int index) {
        return world_.at(topic, index).replicas;
    }

    World world_{{{.id = 1}, {.id = 2}, {.id = 3}}};
};

TEST_F(Leadership, LivingLeadersKeepWhatTheyLead) {
    const auto t = world_.create("t", {{1, 2, 3}, {2, 3, 1}, {3, 1, 2}});
    EXPECT_TRUE(place_homeless(world_.image()).empty());
    world_.leave(1);
    const auto assignments = place_homeless(world_.image());
    ASSERT_EQ(assignments.size(), 1U);
    EXPECT_EQ(assignments[0].partition, (base::TopicPartition{t, base::PartitionId(0)}));
    EXPECT_EQ(assignments[0].leader_epoch, base::LeaderEpoch(1));
    EXPECT_EQ(assignments[0].volume, "main");
}

TEST_F(Leadership, DeadLeadersPartitionsAreSharedAmongTheOtherReplicas) {
    const auto t = world_.create("t", {{1, 2, 3}, {1, 2, 3}, {1, 2, 3}, {1, 2, 3}});
    world_.leave(1);
    place();
    std::map<int, int> leads;
    for (int i = 0; i < 4; ++i) {
        ++leads[world_.leader(t, i)];
        EXPECT_EQ(replicas(t, i), ids({1, 2, 3}));
    }
    EXPECT_EQ(leads, (std::map<int, int>{{2, 2}, {3, 2}}));
}

TEST_F(Leadership, FewestOfTheTopicComesBeforeFewestOfAll) {
    world_.create("other", {{2}, {2}, {2}});
    const auto t = world_.create("t", {{3}, {1, 3, 2}});
    world_.leave(1);
    place();
    EXPECT_EQ(world_.leader(t, 1), 2);
    const auto u = world_.create("u", {{1, 2, 3}});
    place();
    EXPECT_EQ(world_.leader(u, 0), 3) << "3 leads fewer in all";
}

TEST_F(Leadership, PreferredLeaderLeadsAgainOnceItCan) {
    const auto t = world_.create("t", std::vector{led_by(world_.image(), 3, {2, 3, 1})});
    world_.leave(3);
    place();
    EXPECT_EQ(world_.leader(t, 0), 2);
}

TEST_F(Leadership, WithoutALivingReplicaAnotherTakesItsPlace) {
    const auto t = world_.create("t", {{1}, {1, 2}, {3}});
    world_.leave(1);
    world_.leave(2);
    place();
    EXPECT_EQ(world_.leader(t, 0), 3);
    EXPECT_EQ(replicas(t, 0), ids({3}));
    EXPECT_EQ(world_.leader(t, 1), 3);
    EXPECT_EQ(replicas(t, 1), ids({1, 3})) << "the preferred leader stays preferred";
}

TEST_F(Leadership, OnlyWhereTheDataIs) {
    world_.join({.id = 4, .volumes = {"main", "fast"}});
    world_.join({.id = 5, .volumes = {"fast"}});
    const auto t = world_.create("t", std::vector{led_by(world_.image(), 4, {4, 1, 2}, "fast")});
    world_.leave(4);
    place();
    EXPECT_EQ(world_.leader(t, 0), 5) << "1 and 2 have no session on that volume";
    EXPECT_EQ(replicas(t, 0), ids({4, 1, 5}));
    world_.leave(5);
    place();
    EXPECT_EQ(world_.leader(t, 0), -1);
    world_.join({.id = 6, .volumes = {"fast"}});
    place();
    EXPECT_EQ(world_.leader(t, 0), 6);
}

TEST_F(Leadership, WhoDrainsGetsNothing) {
    world_.join({.id = 2, .draining = true});
    const auto t = world_.create("t", {{1, 2}, {1, 2, 3}});
    world_.leave(1);
    place();
    EXPECT_EQ(world_.leader(t, 0), 3);
    EXPECT_EQ(replicas(t, 0), ids({1, 3}));
    EXPECT_EQ(world_.leader(t, 1), 3);
    world_.leave(3);
    place();
    EXPECT_EQ(world_.leader(t, 0), -1) << "2 is about to leave, too";
}

TEST_F(Leadership, DrainedPartitionsGoToTheLeastLoaded) {
    const auto t = world_.create("t", {{1}, {1}, {1, 2, 3}, {1, 2, 3}, {2}});
    world_.apply(catalog::BrokerDraining{base::BrokerId(1)});
    for (int i = 0; i < 4; ++i) release(t, i);
    std::map<int, int> leads;
    for (int i = 0; i < 5; ++i) ++leads[world_.leader(t, i)];
    EXPECT_EQ(leads[1], 0);
    EXPECT_LE(std::max(leads[2], leads[3]), 3);
    EXPECT_EQ(replicas(t, 2), ids({1, 2, 3}));
}

TEST_F(Leadership, FailedLogStaysWithItsBroker) {
    const auto t = world_.create("t", std::vector{led_by(world_.image(), 3, {2, 3, 1})});
    release(t, 0);
    EXPECT_EQ(world_.leader(t, 0), 3);
    EXPECT_EQ(world_.at(t, 0).leader_epoch, base::LeaderEpoch(1));
}

TEST_F(Leadership, AskedBackGoesToThePreferredLeader) {
    const auto t = world_.create("t", std::vector{led_by(world_.image(), 3, {2, 3, 1})});
    ask_back(t, 0);
    release(t, 0);
    EXPECT_EQ(world_.leader(t, 0), 2);
    EXPECT_EQ(replicas(t, 0), ids({2, 3, 1}));
}

TEST_F(Leadership, AskedBackForATargetGoesThereOrStaysWaiting) {
    const auto t = world_.create("t", {{1, 2}});
    const base::TopicPartition id{t, base::PartitionId(0)};
    world_.apply(catalog::ReplicasChanged{{{id, ids({3})}}});
    ask_back(t, 0);
    world_.leave(3);
    release(t, 0);
    EXPECT_EQ(world_.leader(t, 0), 1);
    EXPECT_EQ(replicas(t, 0), ids({1, 2}));
    EXPECT_EQ(world_.at(t, 0).target, ids({3}));
    world_.join({.id = 3});
    ask_back(t, 0);
    release(t, 0);
    EXPECT_EQ(world_.leader(t, 0), 3);
    EXPECT_EQ(replicas(t, 0), ids({3}));
    EXPECT_TRUE(world_.at(t, 0).target.empty());
}

TEST_F(Leadership, ReleaseThatASuccessorReadsIsPlacedForItsTarget) {
    const auto t = world_.create("t", {{1}});
    const base::TopicPartition id{t, base::PartitionId(0)};
    world_.apply(catalog::ReplicasChanged{{{id, ids({3})}}});
    ask_back(t, 0);
    world_.apply(catalog::Released{{{id, base::LeaderEpoch(0)}}});
    place();
    EXPECT_EQ(world_.leader(t, 0), 3);
}

TEST_F(Leadership, NewReplicaTakesThePlaceOfTheForgottenOrOfItsRack) {
    const auto racks =
        World({{.id = 1, .rack = "a"}, {.id = 2, .rack = "b"}, {.id = 3, .rack = "a"}, {.id = 4}});
    const auto with = [&](int id, ReplicaPlace place = ReplicaPlace::kFirst) {
        return with_replica(racks.image(), ids({1, 2}), base::BrokerId(id), place);
    };
    EXPECT_EQ(with(3), ids({3, 2}));
    EXPECT_EQ(with(4), ids({4, 1}));
    EXPECT_EQ(with(2), ids({2, 1}));
    EXPECT_EQ(with(3, ReplicaPlace::kLast), ids({2, 3}));
    EXPECT_EQ(with_replica(racks.image(), ids({9, 2}), base::BrokerId(3), ReplicaPlace::kFirst),
              ids({3, 2}));
}

/// A cluster in which brokers die and come back.
class Fates {
public:
    explicit Fates(unsigned seed) : random_(seed), world_(members(2 + below(5))) {
        for (int t = 0; t < 6; ++t) {
            std::vector<std::vector<int>> lists;
            for (int p = 1 + below(9); p > 0; --p) lists.push_back(some_brokers());
            topics_.push_back(world_.create("t" + std::to_string(t), lists));
        }
    }

    void run() {
        for (int turn = 0; turn < 12; ++turn) {
            const int id = 1 + below(static_cast<int>(world_.image().brokers().size()));
            if (world_.image().broker(base::BrokerId(id))->living()) {
                world_.leave(id);
            } else {
                world_.join({.id = id});
                world_.apply(catalog::LeadershipRenewed{base::BrokerId(id)});
            }
            place();
        }
    }

private:
    static std::vector<Member> members(int count) {
        std::vector<Member> all;
        for (int id = 1; id <= count; ++id) all.push_back({.id = id});
        return all;
    }
    int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
    std::vector<int> some_brokers() {
        std::vector<int> all;
        for (const auto& [id, broker] : world_.image().brokers()) all.push_back(id.value());
        std::ranges::shuffle(all, random_);
        all.resize(static_cast<std::size_t>(below(static_cast<int>(all.size()))) + 1);
        return all;
    }
    void place() {
        const World before = world_;
        const auto assignments = place_homeless(world_.image());
        std::set<base::TopicPartition> given;
        for (const auto& one : assignments) {
            ASSERT_TRUE(given.insert(one.partition).second) << "two leaders for one";
            ASSERT_FALSE(world_.image().led(*world_.image().partition(one.partition)));
        }
        if (!assignments.empty()) world_.apply(catalog::Assigned{assignments});
        const bool anybody = std::ranges::any_of(
            world_.image().brokers(), [](const auto& entry) { return entry.second->living(); });
        for (const auto& topic : topics_) {
            const auto& partitions = world_.image().topic(topic)->partitions;
            for (int i = 0; i < static_cast<int>(partitions.size()); ++i) {
                const auto& now = world_.at(topic, i);
                const auto& was = before.at(topic, i);
                ASSERT_EQ(world_.image().led(now), anybody);
                ASSERT_EQ(now.replicas.size(), was.replicas.size());
                if (!anybody) continue;
                ASSERT_TRUE(std::ranges::count(now.replicas, now.leader.broker) == 1);
                if (before.image().led(was)) ASSERT_EQ(now.leader, was.leader);
            }
        }
        ASSERT_TRUE(place_homeless(world_.image()).empty());
    }

    std::mt19937 random_;
    World world_;
    std::vector<base::TopicId> topics_;
};

TEST(LeadershipFates, HoldAfterEachDeathAndReturn) {
    for (unsigned seed = 1; seed <= 60; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Fates(seed).run();
        if (::testing::Test::HasFatalFailure()) return;
    }
}

}  // namespace
}  // namespace kaas::cluster
