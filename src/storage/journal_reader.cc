#include "storage/journal_reader.h"

#include "base/log.h"
#include "storage/epoch_reader.h"
#include "storage/journal.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

namespace json = boost::json;

using Numbers = std::set<std::uint64_t>;

[[nodiscard]] std::optional<std::uint64_t> number_of(const json::value& value) {
    if (value.is_uint64()) return value.get_uint64();
    if (!value.is_int64() || value.get_int64() < 0) return std::nullopt;
    return static_cast<std::uint64_t>(value.get_int64());
}

/// The files that a picture and its lines leave.
[[nodiscard]] Result<Numbers> listed(const EpochState& state, const std::string& directory) {
    const auto corrupt = [&](std::string_view key) {
        return fail(ErrorCode::kCorrupt, fmt::format("{}: bad or missing \"{}\"", directory, key));
    };
    Numbers numbers;
    const auto* files = state.picture.if_contains("files");
    if (files == nullptr || !files->is_array()) return corrupt("files");
    for (const auto& value : files->get_array()) {
        const auto number = number_of(value);
        if (!number) return corrupt("files");
        numbers.insert(*number);
    }
    for (const auto& line : state.lines) {
        for (const auto& [key, value] : line.object) {
            if (key != "open" && key != "trim") continue;
            const auto number = number_of(value);
            if (!number) return corrupt(key);
            if (key == "open") numbers.insert(*number);
            if (key == "trim") numbers.erase(*number);
        }
    }
    return numbers;
}

/// The journal's own log; empty when there is no journal. Elsewhere than on this machine an absence
/// may be a stale cache entry: making the directory is the way to know, and closes it.
[[nodiscard]] Result<std::optional<EpochState>> read_log(Volume& volume, const JournalPath& path) {
    auto state = read_epoch(volume, path.epoch_log(), 0);
    if (state || state.error().code != ErrorCode::kNotFound) return state;
    if (volume.is_local()) return std::nullopt;
    for (const auto& directory : {std::string(JournalPath::kParent), path.directory(),
                                  path.epoch_log().epoch_directory(0)}) {
        KAAS_TRY(make_directory_if_missing(volume, directory));
    }
    auto file = volume.create(path.epoch_log().file(0, 1));
    if (file) return std::nullopt;
    if (file.error().code != ErrorCode::kExists) return std::unexpected(std::move(file).error());
    return read_epoch(volume, path.epoch_log(), 0);
}

}  // namespace

Result<std::shared_ptr<const JournalImage>> JournalImage::read(Volume& volume,
                                                               const std::string& name) {
    const JournalPath path{name};
    Numbers vanished;
    for (;;) {
        KAAS_TRY_ASSIGN(state, read_log(volume, path));
        auto image = std::make_shared<JournalImage>();
        if (!state || state->released) return image;
        KAAS_TRY_ASSIGN(numbers, listed(*state, path.directory()));
        std::optional<std::uint64_t> absent;
        for (const auto number : numbers) {
            KAAS_TRY_ASSIGN(there, image->add_file(volume, path.file(number), number));
            if (!there) absent = number;
        }
        if (!absent) return image;
        // Trimmed since the list was read, by an owner who lives? Then the list says so now.
        if (!vanished.insert(*absent).second) {
            return fail(volume.is_local() ? ErrorCode::kCorrupt : ErrorCode::kIo,
                        path.file(*absent) + ": named by its journal's log, and not there");
        }
    }
}

Result<bool> JournalImage::add_file(Volume& volume, const std::string& path, std::uint64_t number) {
    auto opened = volume.open(path, OpenMode::kRead);
    if (!opened && opened.error().code == ErrorCode::kNotFound) return false;
    if (!opened) return std::unexpected(std::move(opened).error());
    const std::shared_ptr<File> file = std::move(*opened);
    const auto shared_path = std::make_shared<const std::string>(path);
    JournalFileReader reader(*file, number);
    std::size_t entries = 0;
    for (;; ++entries) {
        KAAS_TRY_ASSIGN(extent, reader.next());
        if (!extent) break;
        pieces_[extent->key].push_back({file, shared_path, *extent});
    }
    base::log::info("storage", "{}: {} entries up to {}", path, entries, reader.position());
    return true;
}

std::span<const JournalImage::Piece> JournalImage::of(const JournalKey& key) const {
    const auto found = pieces_.find(key);
    if (found == pieces_.end()) return {};
    return found->second;
}

void JournalImage::for_each(const std::function<void(const JournalKey&)>& visit) const {
    for (const auto& [key, pieces] : pieces_) visit(key);
}

Result<std::shared_ptr<const JournalImage>> JournalReaders::open(const std::string& name,
                                                                 const Owner& owner) {
    const bool over = owner.broker == self_.broker && owner.incarnation != self_.incarnation;
    if (!over) return JournalImage::read(volume_, name);
    std::shared_ptr<Known> known;
    {
        base::MutexLock lock(mutex_);
        auto& place = known_[name];
        if (place == nullptr) place = std::make_shared<Known>();
        known = place;
    }
    base::MutexLock lock(known->mutex);
    if (known->image == nullptr) {
        KAAS_TRY_ASSIGN(image, JournalImage::read(volume_, name));
        std::unordered_set<JournalKey> needed;
        image->for_each([&](const JournalKey& key) { needed.insert(key); });
        known->needed = std::move(needed);
        known->image = std::move(image);
    }
    return known->image;
}

bool JournalReaders::is_unneeded(Known& known, const base::TopicPartition& partition,
                                 base::LeaderEpoch epoch) {
    base::MutexLock lock(known.mutex);
    if (known.image == nullptr) return false;
    std::erase_if(known.needed, [&](const JournalKey& key) {
        return key.partition == partition && key.epoch < epoch;
    });
    return known.needed.empty();
}

void JournalReaders::superseded(const base::TopicPartition& partition, base::LeaderEpoch epoch,
                                SessionCheck& session) {
    std::vector<std::string> unneeded;
    {
        base::MutexLock lock(mutex_);
        std::erase_if(known_, [&](const auto& entry) {
            if (!is_unneeded(*entry.second, partition, epoch)) return false;
            unneeded.push_back(entry.first);
            return true;
        });
    }
    for (const auto& name : unneeded) {
        if (const auto removed = remove_journal(volume_, {name}, session); !removed) {
            base::log::warn("storage", "journal {} stays, though nobody needs it: {}", name,
                            removed.error().context);
        }
    }
}

}  // namespace kaas::storage
