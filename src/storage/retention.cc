#include "storage/retention.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace kaas::storage {
namespace {

using Segments = std::span<const SegmentFacts>;

/// The first `from` segments go already; how many go when those below `log_start` do as well. The
/// last one never does: the log would lose its end.
[[nodiscard]] std::size_t below_start(Segments segments, std::size_t from, base::Offset log_start) {
    while (from + 1 < segments.size() && segments[from + 1].base <= log_start) ++from;
    return from;
}

[[nodiscard]] std::size_t too_much(Segments segments, std::size_t from, std::int64_t limit_bytes) {
    std::int64_t excess = -limit_bytes;
    for (const auto& facts : segments.subspan(from))
        excess += static_cast<std::int64_t>(facts.bytes);
    while (from < segments.size()) {
        excess -= static_cast<std::int64_t>(segments[from].bytes);
        if (excess < 0) break;
        ++from;
    }
    return from;
}

[[nodiscard]] std::int64_t newest_ms(const SegmentFacts& facts) {
    return facts.max_timestamp_ms >= 0 ? facts.max_timestamp_ms : facts.appended_ms;
}

[[nodiscard]] std::size_t too_old(Segments segments, std::size_t from, std::int64_t now_ms,
                                  std::int64_t limit_ms) {
    while (from < segments.size() && now_ms - newest_ms(segments[from]) > limit_ms) ++from;
    return from;
}

}  // namespace

RetentionPlan plan_retention(Segments segments, base::Offset log_start, std::int64_t now_ms,
                             const LogConfig& config) {
    auto going = below_start(segments, 0, log_start);
    if (config.deletes) {
        if (config.retention_bytes >= 0) going = too_much(segments, going, config.retention_bytes);
        if (config.retention_ms >= 0) going = too_old(segments, going, now_ms, config.retention_ms);
    }
    if (going < segments.size()) return {.segments = going};
    if (segments.empty()) return {};
    // An empty last segment is what is left of a log anyway.
    return {.segments = segments.size() - 1, .last = segments.back().bytes > 0};
}

}  // namespace kaas::storage
