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
/// as the cluster sees them. From an `open` to its `served`, and from a `close` to its `closed`,
/// no other call names the same slot.
class SlotHost {
public:
    virtual ~SlotHost() = default;

    /// Runs once, on any thread: requests for the slot are answered from now on; or why not, and
    /// then the host has let go of the log, and no `close` follows.
    using Served = std::move_only_function<void(storage::Result<void>)>;
    /// This broker leads the slot, and its log is open. Takes in what was inherited, and makes
    /// durable what was only read. Thread: any that may block; `served` may run within the call.
    /// Errors of `served`: kCorrupt, the context says which line; else why the log has failed.
    virtual void open(const SlotId& id, storage::OpenedSlot opened, Served served) = 0;
    /// The leadership ends, or the log has failed. `closed` runs once, on any thread, when the host
    /// has let go of the log: nothing is appended to it any more. Thread: any; does not block.
    virtual void close(const SlotId& id, std::move_only_function<void()> closed) = 0;
};

}  // namespace kaas::cluster
