// Goal: clients are told of a leader only if it can be one, and never of a broker that has lost
// what its last image says it leads. Method: pictures of a cluster of two brokers.

#include "broker/handlers/cluster_view.h"

#include "base/ids.h"
#include "base/uuid.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/away.h"
#include "wire/error_code.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using wire::ErrorCode;

constexpr base::BrokerId kSelf{1};
constexpr base::BrokerId kOther{2};

const base::Incarnation kLife{base::Uuid::random()};
const base::Incarnation kLifeOnExtra{base::Uuid::random()};
const base::Incarnation kOtherLife{base::Uuid::random()};

/// A topic of three partitions: two led here, on a volume each, and one elsewhere.
catalog::ImagePtr picture() {
    struct Led {
        catalog::Holder leader;
        std::string volume;
    };
    const Led led[] = {
        {{kSelf, kLife}, "main"}, {{kSelf, kLifeOnExtra}, "extra"}, {{kOther, kOtherLife}, "main"}};
    catalog::ImageEditor editor("c");
    for (const auto id : {kSelf, kOther}) {
        catalog::Broker broker{.id = id};
        for (const auto& [leader, volume] : led) {
            if (leader.broker == id) broker.sessions.emplace(volume, leader.incarnation);
        }
        broker.endpoints = {{"PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092}};
        EXPECT_TRUE(editor.apply(catalog::BrokerRegistered{broker}));
    }
    std::vector<catalog::Partition> partitions;
    for (const auto& [leader, volume] : led) {
        catalog::Partition partition;
        partition.replicas = {kSelf, kOther};
        partition.leader = leader;
        partition.runs = {{base::LeaderEpoch(0), volume}};
        partitions.push_back(std::move(partition));
    }
    EXPECT_TRUE(editor.apply(catalog::TopicCreated{{.name = "orders",
                                                    .id = {base::Uuid::random()},
                                                    .partitions = std::move(partitions),
                                                    .configs = {}}}));
    return std::move(editor).finish();
}

PartitionView look(const catalog::Image& image, std::int32_t partition, const cluster::Away& away) {
    return view_of(image, *image.topic("orders")->partition(base::PartitionId(partition)),
                   "PLAINTEXT", away);
}

TEST(ClusterView, OnlyWhatABrokerHasLostItselfHasNoLeader) {
    const auto image = picture();
    const cluster::Away nothing{};
    const cluster::Away main{.lives = {kLife}};

    EXPECT_EQ(look(*image, 0, nothing).leader, kSelf);
    const auto lost = look(*image, 0, main);
    EXPECT_EQ(lost.leader, catalog::kNoBroker);
    EXPECT_EQ(lost.error, ErrorCode::kLeaderNotAvailable) << "a client must ask again";
    EXPECT_EQ(look(*image, 1, main).leader, kSelf) << "another volume";
    EXPECT_EQ(look(*image, 1, main).error, ErrorCode::kNone);
    EXPECT_EQ(look(*image, 2, main).leader, kOther) << "its own volume may answer it";
}

}  // namespace
}  // namespace kaas::broker
