#include "storage/journal_sweeper.h"

#include "base/log.h"
#include "base/result.h"
#include "storage/error.h"
#include "storage/journal.h"
#include "storage/journal_reader.h"
#include "storage/volume.h"

#include <algorithm>
#include <expected>
#include <string>
#include <unordered_set>
#include <utility>

namespace kaas::storage {

Result<void> JournalSweeper::sweep(const IsNeeded& is_needed, SessionCheck& session) {
    auto names = volume_.list(std::string(JournalPath::kParent));
    if (!names && names.error().code == ErrorCode::kNotFound) return {};
    if (!names) return std::unexpected(std::move(names).error());
    Result<void> first;
    for (const auto& name : *names) {
        if (!is_dead(name)) continue;
        auto done = consider(name, is_needed, session);
        if (!done && first) first = std::move(done);
    }
    return first;
}

/// Of this broker, which has one life at a time.
bool JournalSweeper::is_dead(const std::string& name) const {
    const auto mine = JournalPath::of(self_).name;
    const auto broker = mine.substr(0, mine.find('.') + 1);
    return name != mine && name.starts_with(broker);
}

Result<void> JournalSweeper::consider(const std::string& name, const IsNeeded& is_needed,
                                      SessionCheck& session) {
    auto known = known_.find(name);
    if (known == known_.end()) {
        KAAS_TRY_ASSIGN(image, JournalImage::read(volume_, name));
        std::unordered_set<JournalKey> keys;
        image->for_each([&](const JournalKey& key) { keys.insert(key); });
        const bool has_gaps = !image->gaps().empty();
        known = known_.emplace(name, Known{std::move(keys), has_gaps}).first;
    }
    // Whose damaged entries are nobody knows: a person removes them.
    if (known->second.has_gaps || std::ranges::any_of(known->second.keys, is_needed)) return {};
    KAAS_TRY(remove_journal(volume_, {name}, session));
    // All that an interrupted removal may have left.
    KAAS_TRY(unless(ErrorCode::kNotFound, volume_.remove_directory(JournalPath{name}.directory())));
    known_.erase(known);
    base::log::info("storage", "journal {} is gone: nobody needs it", name);
    return {};
}

}  // namespace kaas::storage
