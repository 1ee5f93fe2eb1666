#pragma once

#include "base/back_off.h"
#include "base/clock.h"
#include "base/ids.h"
#include "cluster/error.h"
#include "cluster/reign.h"
#include "storage/volume.h"

#include <chrono>
#include <optional>
#include <string>

namespace kaas::cluster {

/// Brings a node back into office after its volume has failed it, as often as that is worth it.
///
/// An election epoch is spent with every attempt and its directory stays for ever: so the volume is
/// asked once a second whether it takes writes, and only one that does sees an attempt; where
/// attempts or short reigns follow each other all the same, each waits twice as long as the last.
/// A broker that is alone on its cluster's volume, by its lock, asks nobody whether somebody else
/// reigns; among others, `over` is the epoch that is seen to be over. Thread: passive; one that may
/// block.
class Candidacy {
public:
    Candidacy(storage::Volume& volume, base::BrokerId self, std::string cluster_id);

    /// Not before this time.
    [[nodiscard]] base::Clock::Steady due() const { return due_; }
    /// Errors: as `begin_reign`; kStorage also when the volume was only asked.
    [[nodiscard]] Result<Reign> stand(base::Clock::Steady now,
                                      std::optional<base::ControllerEpoch> over = std::nullopt);

private:
    static constexpr std::chrono::seconds kFirstPause{1};
    static constexpr std::chrono::seconds kLastPause{30};
    /// What came this long after the last attempt is no consequence of it.
    static constexpr std::chrono::seconds kForgotten{60};

    storage::Volume& volume_;
    const base::BrokerId self_;
    const std::optional<std::string> cluster_id_;
    base::Clock::Steady due_{};
    std::optional<base::Clock::Steady> last_;
    base::BackOff pauses_{kFirstPause, kLastPause};
};

}  // namespace kaas::cluster
