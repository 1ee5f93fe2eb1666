#include "telemetry/tick_watch.h"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::telemetry {

void TickWatch::watch(std::string thread, std::function<std::uint64_t()> ticks) {
    std::uint64_t now = ticks();
    watched_.push_back({std::move(thread), std::move(ticks), now, clock_.now()});
}

std::vector<std::string> TickWatch::stale() {
    std::vector<std::string> stale;
    auto now = clock_.now();
    for (Watched& watched : watched_) {
        if (std::uint64_t ticks = watched.ticks(); ticks != watched.seen) {
            watched.seen = ticks;
            watched.since = now;
        } else if (now - watched.since >= kStaleAfter) {
            stale.push_back(watched.thread);
        }
    }
    return stale;
}

}  // namespace kaas::telemetry
