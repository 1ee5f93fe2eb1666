#pragma once

#include "base/ids.h"
#include "catalog/image.h"
#include "cluster/away.h"
#include "wire/error_code.h"

#include <cstdint>
#include <string_view>
#include <vector>

/// How the cluster looks to a client that came in on one listener: shared by Metadata,
/// DescribeCluster and DescribeTopicPartitions.
namespace kaas::broker {

/// What KIP-430 answers to whom everything is allowed; without an authorizer, to everyone. Bits are
/// Apache `AclOperation` codes.
inline constexpr std::int32_t kAllClusterOperations = 8096;
inline constexpr std::int32_t kAllTopicOperations = 3576;

/// A partition as clients see it.
struct PartitionView {
    wire::ErrorCode error = wire::ErrorCode::kNone;
    base::BrokerId leader;
    base::LeaderEpoch leader_epoch;
    std::vector<std::int32_t> replicas;
    std::vector<std::int32_t> in_sync;  ///< the living ones, which all see the same volume
    std::vector<std::int32_t> offline;
};

/// A partition without a leader, or whose leader has no such listener, says so in `error`; so does
/// one that this broker would lead if it were not `away`, and the client asks somebody else.
[[nodiscard]] PartitionView view_of(const catalog::Image& image,
                                    const catalog::Partition& partition, std::string_view listener,
                                    const cluster::Away& away);

struct BrokerView {
    const catalog::Broker* broker;
    const catalog::Endpoint* endpoint;
};

/// Living brokers that have that listener, by id.
[[nodiscard]] std::vector<BrokerView> brokers_on(const catalog::Image& image,
                                                 std::string_view listener);

}  // namespace kaas::broker
