#include "catalog/slot.h"

#include "base/ids.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace kaas::catalog {
namespace {

/// Takes the first code point off `text`, which is UTF-8.
std::uint32_t take_code_point(std::string_view& text) {
    const auto lead = static_cast<unsigned char>(text.front());
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    std::uint32_t point = length == 1 ? lead : lead & (0x7FU >> length);
    for (std::size_t i = 1; i < length && i < text.size(); ++i) {
        point = point << 6U | (static_cast<unsigned char>(text[i]) & 0x3FU);
    }
    text.remove_prefix(std::min(length, text.size()));
    return point;
}

/// Java's `String.hashCode`, which goes by the units of UTF-16.
std::int32_t java_hash(std::string_view text) {
    std::uint32_t hash = 0;
    while (!text.empty()) {
        const auto point = take_code_point(text);
        if (point >= 0x10000) hash = hash * 31 + (0xD800 + ((point - 0x10000) >> 10U));
        hash = hash * 31 + (point < 0x10000 ? point : 0xDC00 + (point & 0x3FFU));
    }
    return static_cast<std::int32_t>(hash);
}

}  // namespace

std::optional<SlotKind> slot_kind(std::string_view topic) {
    for (const auto kind : kSlotKinds) {
        if (topic == slot_topic(kind)) return kind;
    }
    return std::nullopt;
}

std::string_view slot_topic(SlotKind kind) {
    return kind == SlotKind::kGroup ? "__consumer_offsets" : "__transaction_state";
}

std::string slots_directory(SlotKind kind) {
    return kind == SlotKind::kGroup ? "__cluster/groups" : "__cluster/txns";
}

std::string slot_directory(SlotKind kind, base::PartitionId slot) {
    return slots_directory(kind) + "/" + std::to_string(slot.value());
}

base::PartitionId slot_of(std::string_view id, std::size_t count) {
    const auto hash = java_hash(id);
    const auto positive = hash == std::numeric_limits<std::int32_t>::min() ? 0
                          : hash < 0                                       ? -hash
                                                                           : hash;
    return base::PartitionId(static_cast<std::int32_t>(static_cast<std::size_t>(positive) % count));
}

}  // namespace kaas::catalog
