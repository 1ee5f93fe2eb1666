#pragma once

#include "base/clock.h"
#include "base/ids.h"
#include "cluster/error.h"
#include "storage/volume.h"

#include <chrono>
#include <cstdint>
#include <memory>

namespace kaas::cluster {

/// Looks whether the newest controller still counts up, or has ended its epoch (DESIGN 10): for
/// change only, and on the watcher's own clock. Thread: passive; one that may block.
class ElectionWatch {
public:
    explicit ElectionWatch(storage::Volume& volume) : volume_(volume) {}

    struct Sight {
        base::ControllerEpoch newest{0};  ///< 0: nobody ever stood
        /// For so long nobody has seen it change; it may have begun before the first look.
        std::chrono::milliseconds still{0};
        bool over = false;  ///< marked: by its own controller, as nobody has made a newer one
    };
    /// Errors: kStorage.
    [[nodiscard]] Result<Sight> look(base::Clock::Steady now);

private:
    storage::Volume& volume_;
    base::ControllerEpoch epoch_{0};
    std::unique_ptr<storage::DirectoryHandle> held_;
    std::int64_t counter_ = 0;
    base::Clock::Steady changed_{};
};

}  // namespace kaas::cluster
