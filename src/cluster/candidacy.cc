#include "cluster/candidacy.h"

#include "base/clock.h"
#include "base/ids.h"
#include "cluster/error.h"
#include "cluster/reign.h"
#include "storage/volume.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

namespace kaas::cluster {

Candidacy::Candidacy(storage::Volume& volume, base::BrokerId self, std::string cluster_id)
    : volume_(volume), self_(self), cluster_id_(std::move(cluster_id)) {}

Result<Reign> Candidacy::stand(base::Clock::Steady now, std::optional<base::ControllerEpoch> over) {
    due_ = now + kFirstPause;
    auto well = storage::probe_writes(volume_, fmt::format("kaas.probe.{}.control", self_));
    if (!well) return failed(std::move(well).error());
    if (last_ && now - *last_ >= kForgotten) pauses_.reset();
    last_ = now;
    due_ = now + pauses_.next();
    return begin_reign(volume_, self_, cluster_id_, Founding::kRefused, over);
}

}  // namespace kaas::cluster
