#include "catalog/model.h"

#include "base/ids.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

namespace kaas::catalog {

const std::string& Partition::volume_of(base::LeaderEpoch epoch) const {
    auto after = std::ranges::upper_bound(runs, epoch, {}, &EpochRun::first);
    return after == runs.begin() ? runs.front().volume : std::prev(after)->volume;
}

std::vector<WalkedEpoch> epochs_to_walk(const Partition& partition) {
    std::vector<WalkedEpoch> walk;
    const auto written = partition.written_epoch;
    const auto lowest = std::max({partition.opened_epoch, written, base::LeaderEpoch(0)});
    for (auto epoch = partition.leader_epoch - 1; epoch >= lowest; epoch = epoch - 1) {
        walk.push_back({epoch, partition.volume_of(epoch), epoch == written});
    }
    if (written >= base::LeaderEpoch(0) && written < lowest) {
        walk.push_back({written, partition.volume_of(written), true});
    }
    return walk;
}

bool same_registration(const Broker& registered, const Broker& again) {
    return registered.id == again.id && registered.sessions == again.sessions &&
           registered.volumes == again.volumes && registered.endpoints == again.endpoints &&
           registered.rack == again.rack && registered.draining == again.draining;
}

}  // namespace kaas::catalog
