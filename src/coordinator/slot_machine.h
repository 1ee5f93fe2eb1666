#pragma once

#include "catalog/error.h"

#include <boost/json/object.hpp>

#include <cstdint>
#include <expected>

namespace kaas::storage {
struct InheritedSlot;
}  // namespace kaas::storage

namespace kaas::coordinator {

/// The state machine of one slot, as its host sees it (DESIGN 11). It is made with the
/// `SlotWriter` of one leadership of the slot, loaded, started, closed, destroyed; the next
/// leadership gets a new one. Its own functions, those that requests call, are its
/// implementation's.
///
/// Thread: the coordinators' loop, but for `load_picture` and `load_change`: these run before
/// `start`, on a thread that may take its time, and touch neither timers nor the writer.
class SlotMachine {
public:
    virtual ~SlotMachine() = default;

    /// Called first, once, for a slot with a past: what `picture` of an earlier leadership gave,
    /// perhaps edited by a person since. Errors: kMalformed, kNewerFormat; the host names file and
    /// byte, the slot stays offline.
    [[nodiscard]] virtual catalog::Result<void> load_picture(
        const boost::json::object& picture) = 0;
    /// Then each change that was appended behind the picture, in order. Errors as above.
    [[nodiscard]] virtual catalog::Result<void> load_change(const boost::json::object& change) = 0;
    /// All is loaded, and this broker leads the slot: timers may be armed, changes appended,
    /// requests come.
    virtual void start() = 0;

    /// All of the state, with every change that was appended so far: what a journal file begins
    /// with. Keys of the loaded picture that this version does not know are in it.
    [[nodiscard]] virtual boost::json::object picture() const = 0;

    /// The leadership ends: answers everybody who still waits for something to happen with
    /// NOT_COORDINATOR, cancels its timers, appends nothing from now on. No request follows. What
    /// was given to `SlotWriter::settle` before still comes back, and the machine lives until it
    /// has.
    virtual void close() = 0;
};

/// The line of an inherited file that a machine does not take.
struct RefusedLine {
    std::uint64_t offset;
    catalog::Error why;
};
/// Loads all that a predecessor left.
[[nodiscard]] std::expected<void, RefusedLine> load_inherited(
    SlotMachine& machine, const storage::InheritedSlot& inherited);

}  // namespace kaas::coordinator
