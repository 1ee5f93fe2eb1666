#pragma once

#include "base/ids.h"
#include "catalog/model.h"

#include <set>

namespace kaas::cluster {

/// What a broker has been given and cannot lead: these sessions of its own were ended, or their
/// volumes do not answer it. Others lead it, or will; the image that says otherwise is an old one.
/// Thread: immutable.
struct Away {
    std::set<base::Incarnation> lives;
    /// No controller is heard either, so the image stays old, and who leads now is not known here.
    bool cut_off = false;

    [[nodiscard]] bool has(const catalog::Partition& partition) const {
        return lives.contains(partition.leader.incarnation);
    }
};

}  // namespace kaas::cluster
