#pragma once

#include "base/ids.h"
#include "catalog/slot.h"
#include "storage/error.h"
#include "storage/slot_log.h"

#include <compare>
#include <functional>

namespace kaas::cluster {

/// A coordinators' slot.
struct SlotId {
    catalog::SlotKind kind = catalog::SlotKind::kGroup;
    base::PartitionId slot;

    friend auto operator<=>(const SlotId&, const SlotId&) = default;
};

/// Who works with the slots that this broker leads, on their logs (DESIGN 11): the coordinators,
/// as the cluster sees them. Between an `open` and the end of its `close`, no other call names the
/// same slot.
class SlotHost {
public:
    virtual ~SlotHost() = default;

    /// This broker leads the slot, and its log is open. Takes in what was inherited; from then on
    /// the slot is served. Thread: any that may block. Errors: kCorrupt, the context says which
    /// line; then the host has let go of the log, and no `close` follows.
    [[nodiscard]] virtual storage::Result<void> open(const SlotId& id,
                                                     storage::OpenedSlot opened) = 0;
    /// The leadership ends, or the log has failed. `closed` runs once, on any thread, when the host
    /// has let go of the log: nothing is appended to it any more. Thread: any; does not block.
    virtual void close(const SlotId& id, std::move_only_function<void()> closed) = 0;
};

}  // namespace kaas::cluster
