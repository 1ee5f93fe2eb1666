#include "broker/handlers/cluster_view.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace kaas::broker {
namespace {

std::vector<std::int32_t> numbers(const std::vector<base::BrokerId>& ids) {
    std::vector<std::int32_t> out;
    out.reserve(ids.size());
    for (auto id : ids) out.push_back(id.value());
    return out;
}

}  // namespace

PartitionView view_of(const catalog::Image& image, const catalog::Partition& partition,
                      std::string_view listener, const cluster::Away& away) {
    PartitionView view;
    view.leader = away.has(partition) ? catalog::kNoBroker : image.leader(partition);
    view.leader_epoch = partition.leader_epoch;
    view.replicas = numbers(partition.replicas);
    view.in_sync = numbers(image.living_replicas(partition));
    for (auto id : view.replicas) {
        if (std::ranges::find(view.in_sync, id) == view.in_sync.end()) view.offline.push_back(id);
    }
    const catalog::Broker* broker = image.broker(view.leader);
    if (broker == nullptr) {
        view.error = wire::ErrorCode::kLeaderNotAvailable;
    } else if (broker->endpoint(listener) == nullptr) {
        view.error = wire::ErrorCode::kListenerNotFound;
        view.leader = catalog::kNoBroker;
    }
    return view;
}

std::vector<BrokerView> brokers_on(const catalog::Image& image, std::string_view listener) {
    std::vector<BrokerView> out;
    for (const auto& [id, broker] : image.brokers()) {
        const catalog::Endpoint* endpoint = broker->endpoint(listener);
        if (broker->living() && endpoint != nullptr) out.push_back({broker.get(), endpoint});
    }
    return out;
}

}  // namespace kaas::broker
