#pragma once

#include "base/ids.h"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

/// The coordinators' slots (DESIGN 11): partitions of Apache's internal topics that hold no
/// records, but the journal of those groups or transactions whose ids fall on them.
namespace kaas::catalog {

enum class SlotKind { kGroup, kTransaction };
inline constexpr std::array kSlotKinds{SlotKind::kGroup, SlotKind::kTransaction};

/// What the slots of a topic of that name hold; empty when its partitions hold records.
[[nodiscard]] std::optional<SlotKind> slot_kind(std::string_view topic);
/// Apache `Topic`.
[[nodiscard]] std::string_view slot_topic(SlotKind kind);

/// Where the slots' directories lie on the cluster's volume.
[[nodiscard]] std::string slots_directory(SlotKind kind);
/// `__cluster/groups/<n>`, `__cluster/txns/<n>`. The topic's id does not stand in it: such a topic
/// is made once and never deleted.
[[nodiscard]] std::string slot_directory(SlotKind kind, base::PartitionId slot);

/// The slot of `count` that a group's or transaction's id falls on (Apache
/// `Utils.abs(id.hashCode()) % count`); what is no UTF-8 falls somewhere.
[[nodiscard]] base::PartitionId slot_of(std::string_view id, std::size_t count);

}  // namespace kaas::catalog
