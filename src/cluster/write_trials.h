#pragma once

#include "base/clock.h"
#include "base/mutex.h"

#include <map>
#include <optional>
#include <string>

namespace kaas::storage {
class Volume;
}  // namespace kaas::storage

namespace kaas::cluster {

/// Whether volumes take writes again, for whoever has a log on one that has failed it: asked by
/// writing a file, not by spending an epoch. Thread: any.
class WriteTrials {
public:
    /// `name` is of the file that a trial makes and removes: nobody else's.
    WriteTrials(std::string name, base::Clock& clock) : name_(std::move(name)), clock_(clock) {}

    /// When the last good trial of the volume began.
    [[nodiscard]] std::optional<base::Clock::Steady> well_since(const std::string& volume) const
        KAAS_EXCLUDES(mutex_);
    /// True when the caller should `run` one; false while one runs, or has just ended.
    [[nodiscard]] bool begin(const std::string& volume) KAAS_EXCLUDES(mutex_);
    /// Blocks. True when the volume takes writes.
    bool run(const std::string& name, storage::Volume& volume) KAAS_EXCLUDES(mutex_);

private:
    struct Trial {
        std::optional<base::Clock::Steady> well_since;
        bool running = false;
        base::Clock::Steady next{};
        std::string said;  ///< why not: told once, not with each trial
    };

    const std::string name_;
    base::Clock& clock_;
    mutable base::Mutex mutex_;
    std::map<std::string, Trial> trials_ KAAS_GUARDED_BY(mutex_);  ///< by volume name
};

}  // namespace kaas::cluster
