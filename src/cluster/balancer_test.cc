// Goal: new partitions are spread evenly, over living brokers that stay, alike on every controller.
// Method: properties over many clusters, and rows for each way to have no leader.

#include "cluster/balancer.h"

#include "base/ids.h"
#include "base/uuid.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "catalog/slot.h"
#include "cluster/testing_members.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kaas::cluster {
namespace {

std::vector<Placement> spread(const catalog::Image& image, std::size_t count, std::size_t factor) {
    return place(image, count, factor, VolumeUse(image));
}

TEST(Balancer, SpreadsEvenlyAndWithoutRepetition) {
    for (int brokers = 1; brokers <= 7; ++brokers) {
        std::vector<Member> members;
        for (int id = 0; id < brokers; ++id) members.push_back({.id = id});
        const auto image = cluster(members);
        for (std::size_t factor = 1; factor <= 9; ++factor) {
            const std::size_t count = 23;
            const auto places = spread(*image, count, factor);
            ASSERT_EQ(places.size(), count);
            std::map<base::BrokerId, int> leads;
            std::map<base::BrokerId, int> holds;
            for (const auto& one : places) {
                EXPECT_EQ(one.replicas.size(), std::min<std::size_t>(factor, brokers));
                EXPECT_EQ(one.leader.broker, one.replicas.front());
                const std::set<base::BrokerId> distinct(one.replicas.begin(), one.replicas.end());
                EXPECT_EQ(distinct.size(), one.replicas.size());
                ++leads[one.leader.broker];
                for (auto id : one.replicas) ++holds[id];
            }
            const auto even = [](const auto& counts) {
                const auto [least, most] = std::ranges::minmax_element(
                    counts, {}, [](const auto& entry) { return entry.second; });
                return most->second - least->second;
            };
            EXPECT_LE(even(leads), 1);
            EXPECT_LE(even(holds), static_cast<int>(factor));
        }
    }
}

TEST(Balancer, EachRackHasAReplicaBeforeOneHasTwo) {
    // Racks of unequal size, and brokers that name none, which count as one.
    const auto image = cluster({{.id = 1, .rack = "a"},
                                {.id = 2, .rack = "a"},
                                {.id = 3, .rack = "a"},
                                {.id = 4, .rack = "b"},
                                {.id = 5},
                                {.id = 6}});
    for (std::size_t factor = 1; factor <= 6; ++factor) {
        std::map<base::BrokerId, int> leads;
        for (const auto& one : spread(*image, 60, factor)) {
            std::map<std::optional<std::string>, std::size_t> racks;
            for (auto id : one.replicas) ++racks[image->broker(id)->rack];
            EXPECT_EQ(racks.size(), std::min<std::size_t>(factor, 3));
            if (factor == 4) EXPECT_LE(std::max(racks["a"], racks[std::nullopt]), 2U);
            const std::set<base::BrokerId> distinct(one.replicas.begin(), one.replicas.end());
            EXPECT_EQ(distinct.size(), factor);
            ++leads[one.leader.broker];
        }
        for (const auto& [id, count] : leads) EXPECT_EQ(count, 10) << "broker " << id.value();
    }
}

TEST(Balancer, DecidesAlikeForTheSameImage) {
    const auto image = cluster({{.id = 4}, {.id = 2}, {.id = 9}});
    const auto once = spread(*image, 5, 2);
    const auto again = spread(*image, 5, 2);
    for (std::size_t i = 0; i < once.size(); ++i) {
        EXPECT_EQ(once[i].replicas, again[i].replicas);
        EXPECT_EQ(once[i].volume, again[i].volume);
    }
}

TEST(Balancer, VolumesOfABrokerTakeTurns) {
    const auto image = cluster({{.id = 1, .volumes = {"a", "b"}}});
    std::map<std::string, int> used;
    for (const auto& one : spread(*image, 10, 1)) ++used[one.volume];
    EXPECT_EQ(used, (std::map<std::string, int>{{"a", 5}, {"b", 5}}));
}

TEST(Balancer, LeastUsedVolumeThatMayTakesAPartition) {
    catalog::ImageEditor editor("c");
    catalog::Broker broker{.id = base::BrokerId(1)};
    for (const auto* name : {"a", "b", "c", "d"}) {
        broker.sessions.emplace(name, base::Incarnation{base::Uuid::random()});
        broker.volumes.emplace(name, catalog::BrokerVolume{.path = std::string("/") + name});
    }
    broker.volumes["c"].default_eligible = false;
    broker.volumes["d"].cordoned = true;
    ASSERT_TRUE(editor.apply(catalog::BrokerRegistered{broker}));
    catalog::Topic topic{.name = "t", .id = {base::Uuid::random()}, .partitions = {}};
    for (int i = 0; i < 3; ++i) {
        topic.partitions.push_back(
            new_partition({{base::BrokerId(1)}, {base::BrokerId(1), broker.sessions["a"]}, "a"}));
    }
    ASSERT_TRUE(editor.apply(catalog::TopicCreated{topic}));
    const auto used = [&] {
        std::map<std::string, int> count;
        for (const auto& one : spread(editor.image(), 5, 1)) ++count[one.volume];
        return count;
    };
    using Count = std::map<std::string, int>;
    EXPECT_EQ(used(), (Count{{"a", 1}, {"b", 4}}));

    const auto cordon = [&](const std::string& paths) {
        ASSERT_TRUE(editor.apply(
            catalog::ConfigsChanged{base::BrokerId(1), {{"cordoned.log.dirs", paths}}}));
    };
    cordon("/b,/a");  // a dynamic list counts alone: /d is open now
    EXPECT_EQ(used(), (Count{{"d", 5}}));
    cordon("*");
    EXPECT_TRUE(used().empty());
    EXPECT_TRUE(candidates(editor.image(), VolumeUse(editor.image())).empty());
    cordon("");
    EXPECT_EQ(used(), (Count{{"b", 3}, {"d", 2}}));
}

/// A broker whose volume "own" has the cluster's own files and no partitions.
catalog::ImageEditor cluster_with_slots(const std::string& slot_volume) {
    catalog::ImageEditor editor("c");
    catalog::Broker broker{.id = base::BrokerId(1)};
    for (const auto* name : {"a", "b", "own"}) {
        broker.sessions.emplace(name, base::Incarnation{base::Uuid::random()});
        broker.volumes.emplace(name, catalog::BrokerVolume{.path = std::string("/") + name});
    }
    broker.volumes["own"].takes_partitions = false;
    EXPECT_TRUE(editor.apply(catalog::BrokerRegistered{broker}));
    catalog::Topic slots{.name = std::string(catalog::slot_topic(catalog::SlotKind::kGroup)),
                         .id = {base::Uuid::random()},
                         .partitions = {}};
    for (const auto& one : place(editor.image(), 50, 3, VolumeUse(editor.image(), slot_volume))) {
        slots.partitions.push_back(new_partition(one));
    }
    EXPECT_TRUE(editor.apply(catalog::TopicCreated{slots}));
    return editor;
}

TEST(Balancer, SlotsLieOnTheirVolumeWhateverElseItTakes) {
    for (const auto* volume : {"a", "own"}) {
        auto editor = cluster_with_slots(volume);
        const auto* slots = editor.image().topic("__consumer_offsets");
        ASSERT_EQ(slots->partitions.size(), 50U);
        for (const auto& slot : slots->partitions) {
            EXPECT_EQ(slot.volume(), volume);
            EXPECT_TRUE(editor.image().led(slot));
        }
        ASSERT_TRUE(
            editor.apply(catalog::ConfigsChanged{base::BrokerId(1), {{"cordoned.log.dirs", "*"}}}));
        EXPECT_EQ(place(editor.image(), 1, 1, VolumeUse(editor.image(), volume)).size(), 1U);
    }
}

TEST(Balancer, SlotsDoNotCountAsPartitionsOfTheirVolume) {
    const auto editor = cluster_with_slots("a");
    std::map<std::string, int> used;
    for (const auto& one : spread(editor.image(), 10, 1)) ++used[one.volume];
    EXPECT_EQ(used, (std::map<std::string, int>{{"a", 5}, {"b", 5}}));
}

TEST(Balancer, AllIsCordonedThoughTheClustersOwnFilesNeverAre) {
    auto editor = cluster_with_slots("own");
    EXPECT_FALSE(all_cordoned(editor.image(), *editor.image().broker(base::BrokerId(1))));
    ASSERT_TRUE(
        editor.apply(catalog::ConfigsChanged{base::BrokerId(1), {{"cordoned.log.dirs", "/a,/b"}}}));
    EXPECT_TRUE(all_cordoned(editor.image(), *editor.image().broker(base::BrokerId(1))));
    EXPECT_TRUE(spread(editor.image(), 1, 1).empty());
}

TEST(Balancer, DrainingBrokersGetNothingWhileOthersStay) {
    const auto image = cluster({{.id = 1, .draining = true}, {.id = 2}});
    for (const auto& one : spread(*image, 4, 3)) {
        EXPECT_EQ(one.replicas, std::vector{base::BrokerId(2)});
    }
    const auto leaving = cluster({{.id = 1, .draining = true}});
    EXPECT_EQ(candidates(*leaving, VolumeUse(*leaving)), std::vector{base::BrokerId(1)});
}

TEST(Balancer, NobodyLivingMeansNoPlace) {
    EXPECT_TRUE(spread(*cluster({}), 3, 1).empty());
    EXPECT_TRUE(spread(*cluster({{.id = 1, .volumes = {}}}), 3, 1).empty());
}

TEST(Balancer, FirstLivingReplicaLeads) {
    const auto image = cluster({{.id = 1, .volumes = {}}, {.id = 2}});
    const std::vector replicas = {base::BrokerId(7), base::BrokerId(1), base::BrokerId(2)};
    VolumeUse use(*image);
    const auto led = lead(*image, replicas, use);
    ASSERT_TRUE(led);
    EXPECT_EQ(led->leader.broker, base::BrokerId(2));
    EXPECT_EQ(led->replicas, replicas);
    EXPECT_FALSE(lead(*image, {base::BrokerId(1)}, use));
}

}  // namespace
}  // namespace kaas::cluster
