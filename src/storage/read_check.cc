#include "storage/read_check.h"

#include "storage/batch_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

constexpr std::uint64_t kReadBytes = std::uint64_t{1} << 20;

}  // namespace

std::optional<std::string> misplaced(const wire::BatchHeader& header, const SegmentFacts& facts,
                                     const LeaderEpochs& epochs, base::Offset expected,
                                     bool in_a_row) {
    const base::Offset base{header.base_offset};
    const bool follows = in_a_row ? base == expected : base >= expected;
    if (!follows || header.last_offset() >= facts.end.value()) {
        return fmt::format("offsets {} to {}, where {} is next and {} the end", base,
                           header.last_offset(), expected, facts.end);
    }
    const auto epoch = epochs.at(base);
    if (epoch && epoch->value() != header.partition_leader_epoch) {
        return fmt::format("leader epoch {}, the manifest says {}", header.partition_leader_epoch,
                           *epoch);
    }
    return std::nullopt;
}

Result<Cut> check_stretch(std::shared_ptr<File> file, const SegmentSpan& span,
                          const Stretch& stretch, const LeaderEpochs& epochs) {
    auto bound = span;
    bound.facts.bytes = stretch.to;
    BatchStream stream(std::move(file), bound, stretch.from,
                       std::min(kReadBytes, stretch.to - stretch.from),
                       [](std::uint64_t) { return Result<void>(); });
    Cut good{.end = stretch.from};
    auto expected = stretch.base.value_or(span.facts.base);
    bool in_a_row = stretch.base && span.facts.compaction == 0;
    const auto ends_with = [&](Error error) -> Result<Cut> {
        if (good.end > stretch.from) return good;
        return std::unexpected(std::move(error));
    };
    while (good.end < stretch.to) {
        const auto batch = stream.next();
        if (!batch) return ends_with(batch.error());
        const auto& header = (*batch)->header;
        if (auto why = misplaced(header, span.facts, epochs, expected, in_a_row)) {
            return ends_with({ErrorCode::kCorrupt,
                              fmt::format("{} at {}: {}", span.segment->path(), good.end, *why)});
        }
        expected = base::Offset{header.last_offset() + 1};
        in_a_row = span.facts.compaction == 0;
        good = {.end = good.end + (*batch)->bytes.size(), .next = expected};
    }
    return good;
}

bool Damages::note(base::Offset at, const std::string& what) {
    if (std::ranges::any_of(all_, [&](const Damage& one) { return one.what == what; }))
        return false;
    if (all_.size() < kMost) all_.push_back({at, what});
    return true;
}

void Damages::mended(base::Offset at) {
    std::erase_if(all_, [&](const Damage& one) { return one.at == at; });
}

bool Damages::any(base::Offset log_start) const {
    return std::ranges::any_of(all_, [&](const Damage& one) { return one.at >= log_start; });
}

}  // namespace kaas::storage
