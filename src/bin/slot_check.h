#pragma once

#include "catalog/slot.h"
#include "storage/check.h"
#include "storage/slot_log.h"

#include <optional>

namespace kaas::bin {

/// Loads what a slot's file says into a coordinator that then does nothing: the line that a start
/// would refuse, if there is one.
[[nodiscard]] std::optional<storage::Damage> check_slot(catalog::SlotKind kind,
                                                        const storage::InheritedSlot& slot);

}  // namespace kaas::bin
