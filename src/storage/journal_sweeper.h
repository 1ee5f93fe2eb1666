#pragma once

#include "storage/journal_format.h"
#include "storage/manifest.h"
#include "storage/session_check.h"
#include "storage/volume.h"

#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace kaas::storage {

/// Removes, from one volume, journals of a broker's earlier incarnations that no recovery will come
/// for: their topics are deleted, or other brokers or volumes have taken their logs over. (Those
/// that recoveries read here go with the last of them, see `JournalReaders`.)
///
/// A dead incarnation's journal does not change, so each is read once. Thread: one at a time, which
/// may block.
class JournalSweeper {
public:
    /// True when the newest durable picture of the log may still be that of the key's epoch.
    using IsNeeded = std::function<bool(const JournalKey&)>;

    JournalSweeper(Volume& volume, Owner self) : volume_(volume), self_(self) {}

    /// A journal goes when `is_needed` is false for all of its logs, after a check of `session`. It
    /// is found by a listing: one that is overlooked stays until the next call, and harms nobody.
    /// Errors: of the first that could not be read or removed; the others have had their turn.
    [[nodiscard]] Result<void> sweep(const IsNeeded& is_needed, SessionCheck& session);

private:
    struct Known {
        std::unordered_set<JournalKey> keys;
        bool has_gaps;
    };

    [[nodiscard]] bool is_dead(const std::string& name) const;
    [[nodiscard]] Result<void> consider(const std::string& name, const IsNeeded& is_needed,
                                        SessionCheck& session);

    Volume& volume_;
    const Owner self_;
    std::unordered_map<std::string, Known> known_;
};

}  // namespace kaas::storage
