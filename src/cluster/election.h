#pragma once

#include "base/ids.h"
#include "cluster/error.h"
#include "cluster/session.h"
#include "storage/volume.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace kaas::cluster {

inline constexpr std::string_view kElectionDirectory = "__cluster/election";

/// A controller's epoch, held from its exclusive creation on (DESIGN 10). It is the controller's
/// session: each act of the reign is checked against it.
///
/// `__cluster/election/<epoch:08x>` are empty directories, numbered without gaps, never removed. An
/// epoch is ended by taking its mode away. Thread: any that may block.
class ElectedEpoch final : public storage::SessionCheck {
public:
    /// Makes the next epoch and ends every lower one, down to `first`: those below it are known to
    /// be ended. On return no lower controller's check will ever be good again, so their logs may
    /// be read. `over`: the epoch that is seen to be over, where that is the reason to stand; a
    /// newer one may be alive and well. Errors: kSuperseded when another candidate took the number,
    /// or there is a newer epoch than `over`: look again whether to stand at all; kStorage.
    [[nodiscard]] static Result<std::unique_ptr<ElectedEpoch>> stand(
        storage::Volume& volume, base::ControllerEpoch first = base::ControllerEpoch(1),
        std::optional<base::ControllerEpoch> over = std::nullopt);

    [[nodiscard]] storage::Result<void> confirm() override { return check_.confirm(); }
    [[nodiscard]] base::ControllerEpoch number() const { return number_; }

    /// The reign is over: marks its own epoch, so that nobody has to wait until it stands still.
    /// Errors: kStorage, then watchers wait.
    [[nodiscard]] Result<void> end();
    /// Shows watchers that the reign goes on: checks, then counts up. Errors: kFenced, kStorage.
    [[nodiscard]] Result<void> beat();

private:
    ElectedEpoch(storage::Volume& volume, base::ControllerEpoch number,
                 std::unique_ptr<storage::DirectoryHandle> held);

    storage::Volume& volume_;
    base::ControllerEpoch number_;
    std::int64_t counter_ = 0;
    SharedCheck check_;
};

[[nodiscard]] std::string election_path(base::ControllerEpoch epoch);

/// Finds the newest election epoch: 0 when there is none. Listing is only a hint, creation is the
/// proof (DESIGN rule 5): so the number may be old, never one that was not made.
[[nodiscard]] Result<base::ControllerEpoch> newest_election(storage::Volume& volume);

}  // namespace kaas::cluster
