#include "cluster/write_trials.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "storage/volume.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace kaas::cluster {

std::optional<base::Clock::Steady> WriteTrials::well_since(const std::string& volume) const {
    base::MutexLock lock(mutex_);
    const auto trial = trials_.find(volume);
    return trial == trials_.end() ? std::nullopt : trial->second.well_since;
}

bool WriteTrials::begin(const std::string& volume) {
    constexpr std::chrono::seconds kPause{1};
    base::MutexLock lock(mutex_);
    auto& trial = trials_[volume];
    const auto now = clock_.now();
    if (trial.running || now < trial.next) return false;
    trial.running = true;
    trial.next = now + kPause;
    return true;
}

bool WriteTrials::run(const std::string& name, storage::Volume& volume) {
    const auto began = clock_.now();
    const auto well = storage::probe_writes(volume, name_);
    const auto why = well ? std::string() : well.error().context;
    bool news = false;
    {
        base::MutexLock lock(mutex_);
        auto& trial = trials_[name];
        trial.running = false;
        news = std::exchange(trial.said, why) != why;
        if (well) trial.well_since = began;
    }
    if (news && well) base::log::info("cluster", "volume '{}' takes writes again", name);
    if (news && !well) {
        base::log::warn("cluster", "volume '{}' takes no writes, its failed logs wait: {}", name,
                        why);
    }
    return well.has_value();
}

}  // namespace kaas::cluster
