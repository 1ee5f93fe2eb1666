#include "cluster/reign.h"

#include "base/ids.h"
#include "base/result.h"
#include "catalog/change.h"
#include "catalog/control_log.h"
#include "catalog/error.h"
#include "catalog/slot.h"
#include "cluster/controller_address.h"
#include "cluster/election.h"
#include "cluster/error.h"
#include "cluster/session.h"
#include "cluster/topic_reclaimer.h"
#include "storage/error.h"
#include "storage/volume.h"

#include <fmt/format.h>

#include <algorithm>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace kaas::cluster {
namespace {

Result<void> make(storage::Volume& volume, std::string_view path) {
    auto made = storage::make_directory_if_missing(volume, std::string(path));
    if (!made) return failed(std::move(made).error());
    return {};
}

Result<void> sync(storage::Volume& volume, std::string_view path) {
    auto done = volume.sync_directory(std::string(path));
    if (!done) return failed(std::move(done).error());
    return {};
}

Result<catalog::ImageEditor> successor_of(std::optional<catalog::TakenControl> taken,
                                          const std::optional<std::string>& cluster_id) {
    if (!taken) {
        return catalog::ImageEditor(cluster_id.value_or(base::Uuid::random().to_string()));
    }
    const auto& found = taken->image->cluster_id();
    if (cluster_id && *cluster_id != found) {
        return fail(ErrorCode::kWrongCluster,
                    "this is the volume of cluster '" + found + "', not of '" + *cluster_id + "'");
    }
    return catalog::ImageEditor(*taken->image);
}

}  // namespace

Result<void> prepare_volume(storage::Volume& volume) {
    KAAS_TRY(make(volume, kSessionsDirectory));
    KAAS_TRY(make(volume, kDeletedDirectory));
    return sync(volume, "");
}

Result<void> prepare_cluster(storage::Volume& volume) {
    KAAS_TRY(make(volume, "__cluster"));
    KAAS_TRY(make(volume, kElectionDirectory));
    KAAS_TRY(make(volume, catalog::kControlDirectory));
    KAAS_TRY(make(volume, kAddressDirectory));
    for (const auto kind : catalog::kSlotKinds)
        KAAS_TRY(make(volume, catalog::slots_directory(kind)));
    // Those that were there may have been made by somebody who died before this.
    KAAS_TRY(sync(volume, "__cluster"));
    return sync(volume, "");
}

Result<Reign> begin_reign(storage::Volume& volume, base::BrokerId self,
                          const std::optional<std::string>& cluster_id, Founding founding,
                          std::optional<base::ControllerEpoch> over) {
    KAAS_TRY_ASSIGN(newest, newest_election(volume));
    auto last = catalog::newest_begun(volume, newest);
    if (!last) return failed(std::move(last).error());
    KAAS_TRY_ASSIGN(session,
                    ElectedEpoch::stand(volume, std::max(*last, base::ControllerEpoch(1)), over));
    const auto epoch = session->number();
    auto taken = catalog::take_over_control(volume, epoch);
    if (!taken) return failed(std::move(taken).error());
    if (!*taken && founding == Founding::kRefused) {
        return fail(ErrorCode::kWrongCluster,
                    fmt::format("{}/{} holds no control log, and cluster '{}' had one: it is lost, "
                                "or its files are empty; bring them back from a copy",
                                volume.root(), catalog::kControlDirectory,
                                cluster_id.value_or("of this volume")));
    }
    KAAS_TRY_ASSIGN(editor, successor_of(std::move(*taken), cluster_id));
    editor.begin_epoch(epoch, self);
    auto image = std::move(editor).finish();
    auto log = catalog::ControlLog::create(volume, epoch, *image);
    if (!log) return failed(std::move(log).error());
    if (auto alive = session->confirm(); !alive) return failed(std::move(alive).error());
    return Reign{std::move(session), std::move(*log), std::move(image)};
}

}  // namespace kaas::cluster
