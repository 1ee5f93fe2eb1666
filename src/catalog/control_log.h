#pragma once

#include "base/ids.h"
#include "catalog/change.h"
#include "catalog/error.h"
#include "catalog/image.h"
#include "storage/epoch_log.h"
#include "storage/session_check.h"
#include "storage/volume.h"

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace kaas::catalog {

inline constexpr std::string_view kControlDirectory = "__cluster/control";
/// Where its epoch log lies on the cluster's volume.
[[nodiscard]] storage::EpochLogPath control_path();

/// The one store of metadata: an epoch log of pictures and changes, written by the controller of
/// its epoch. Thread: passive; one call at a time, on a thread that may block.
class ControlLog {
public:
    /// Opens the epoch with `image` as its picture, durable on return.
    /// Errors: kSuperseded when a newer controller has closed the epoch; kStorage.
    [[nodiscard]] static Result<ControlLog> create(storage::Volume& volume,
                                                   base::ControllerEpoch epoch, const Image& image);

    /// Makes `changes` durable with one fsync. Nothing may build on them before a session check.
    /// Errors: kStorage, which ends the log.
    [[nodiscard]] Result<void> commit(std::span<const Change> changes);
    /// Starts a new file with a picture once the changes outweigh the last one; `image` holds all
    /// that was committed. True when it did. Errors: kStorage, which ends the log and undoes no
    /// commit.
    [[nodiscard]] Result<bool> compact(const Image& image);

    /// Vouches, when idle, that all above is durable: a successor then need not doubt it.
    [[nodiscard]] Result<void> settle();
    /// The last line; the log takes nothing afterwards.
    [[nodiscard]] Result<void> release();
    /// Unlinks what the newest picture has made useless: older files of this epoch, older epochs.
    /// The session is checked before each unlink (rule 7); what fails is left for the next call and
    /// harms nobody.
    void remove_superseded(storage::SessionCheck& session);

private:
    ControlLog(storage::Volume& volume, storage::EpochLog log)
        : volume_(&volume), log_(std::move(log)) {}

    storage::Volume* volume_;
    storage::EpochLog log_;
};

/// Where a new controller begins: what its predecessors' log says.
struct TakenControl {
    base::ControllerEpoch epoch{0};  ///< whose log it was
    ImagePtr image;
};

/// The newest epoch, up to `from`, in whose control log its owner has written anything; 0 when
/// there is none. Before that, the owner had ended every lower election epoch: so it was, however
/// old the sight is and whatever became of the bytes. Closes nothing. Errors: kStorage.
[[nodiscard]] Result<base::ControllerEpoch> newest_begun(storage::Volume& volume,
                                                         base::ControllerEpoch from);

/// What the log of `epoch` says by now, closing nothing: old before it is read, for who needs a
/// first idea and will be told the truth. Empty when its owner has written no picture yet. Errors:
/// as `take_over_control`.
[[nodiscard]] Result<ImagePtr> glimpse_control(storage::Volume& volume,
                                               base::ControllerEpoch epoch);

/// Closes every control log below `own`, newest first, until it finds a picture, and reads that log
/// to its end. Empty when the cluster is new. What was read counts once it stands in the caller's
/// own picture. Requires: every lower election epoch is marked. Errors: kMalformed and kNewerFormat
/// name the file; kStorage.
[[nodiscard]] Result<std::optional<TakenControl>> take_over_control(storage::Volume& volume,
                                                                    base::ControllerEpoch own);

}  // namespace kaas::catalog
