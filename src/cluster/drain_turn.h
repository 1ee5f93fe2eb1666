#pragma once

#include "cluster/tenancy.h"

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace kaas::cluster {

/// One look of a drain at all that its table has: which of them to give back now. A batch of each
/// volume is on its way at a time, so that one that hangs holds up its own alone; the next one
/// follows once the assignment shows that the last has gone, so that what nobody can take over yet
/// is served meanwhile. Thread: passive; its table's lock.
template <class HostedPtr>
class DrainTurn {
public:
    explicit DrainTurn(std::size_t width) : width_(width) {}

    void see(const HostedPtr& hosted, const Tenancy& tenancy) {
        is_over_ = is_over_ && !tenancy.is_led() && !tenancy.is_handed_back();
        if (tenancy.is_handed_back()) {
            lanes_[tenancy.volume()].is_busy = true;
        } else if (tenancy.is_led()) {
            auto& next = lanes_[tenancy.volume()].next;
            if (next.size() < width_) next.push_back(hosted);
        }
    }

    /// True when nothing is led any more, and the assignment says so.
    [[nodiscard]] bool is_over() const { return is_over_; }
    [[nodiscard]] std::vector<HostedPtr> to_give_back() const {
        std::vector<HostedPtr> all;
        for (const auto& [volume, lane] : lanes_) {
            if (!lane.is_busy) all.insert(all.end(), lane.next.begin(), lane.next.end());
        }
        return all;
    }

private:
    struct Lane {
        bool is_busy = false;
        std::vector<HostedPtr> next;
    };
    const std::size_t width_;
    bool is_over_ = true;
    std::map<std::string, Lane> lanes_;  ///< by volume
};

}  // namespace kaas::cluster
