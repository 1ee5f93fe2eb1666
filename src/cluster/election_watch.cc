#include "cluster/election_watch.h"

#include "base/clock.h"
#include "base/result.h"
#include "cluster/election.h"
#include "cluster/error.h"
#include "storage/volume.h"

#include <chrono>
#include <utility>

namespace kaas::cluster {

Result<ElectionWatch::Sight> ElectionWatch::look(base::Clock::Steady now) {
    KAAS_TRY_ASSIGN(newest, newest_election(volume_));
    if (newest == base::ControllerEpoch(0)) return Sight{};
    if (held_ == nullptr || newest != epoch_) {
        auto held = volume_.hold(election_path(newest));
        if (!held) return failed(std::move(held).error());
        held_ = std::move(*held);
        epoch_ = newest;
        changed_ = now;
        auto beat = held_->last_beat();
        if (!beat) return failed(std::move(beat).error());
        counter_ = *beat;
    } else {
        auto beat = held_->last_beat();
        if (!beat) return failed(std::move(beat).error());
        if (std::exchange(counter_, *beat) != *beat) changed_ = now;
    }
    auto seen = held_->look();
    if (!seen) return failed(std::move(seen).error());
    return Sight{newest, std::chrono::duration_cast<std::chrono::milliseconds>(now - changed_),
                 *seen == storage::Liveness::kMarked};
}

}  // namespace kaas::cluster
