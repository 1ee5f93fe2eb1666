#include "storage/journal_reader.h"

#include "base/log.h"
#include "storage/epoch_reader.h"
#include "storage/journal.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
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

/// One file as it was read.
struct ReadFile {
    std::shared_ptr<File> file;
    JournalContents contents;
};

/// Up to where a journal's files were synced, by their numbers, as good entries behind say.
using Proven = std::map<std::uint64_t, std::uint64_t>;

void raise(Proven& proven, std::uint64_t number, std::uint64_t end) {
    auto& known = proven[number];
    known = std::max(known, end);
}

/// Reads the files of one journal. An owner who lives goes on writing meanwhile, so what proves
/// that something was synced must have been read before it: where a proof points behind the end
/// that was found, the file is read a second time.
class FilesReader {
public:
    FilesReader(Volume& volume, const JournalPath& path) : volume_(volume), path_(path) {}

    /// Empty, and `absent` says which, when a file is not there.
    [[nodiscard]] Result<bool> read(const Numbers& numbers) {
        for (const auto number : numbers) {
            KAAS_TRY_ASSIGN(there, read(number, 0));
            if (!there) return false;
        }
        for (auto number = numbers.rbegin(); number != numbers.rend(); ++number) {
            KAAS_TRY(look_behind_end(*number));
        }
        for (const auto number : numbers) {
            if (proven_[number] <= files_[number].contents.end) continue;
            KAAS_TRY_ASSIGN(there, read(number, proven_[number]));
            if (!there) return false;
        }
        return true;
    }
    [[nodiscard]] std::uint64_t absent() const { return absent_; }
    [[nodiscard]] std::map<std::uint64_t, ReadFile> take() { return std::move(files_); }

private:
    [[nodiscard]] Result<bool> read(std::uint64_t number, std::uint64_t proven) {
        const auto path = path_.file(number);
        auto opened = volume_.open(path, OpenMode::kRead);
        if (!opened && opened.error().code == ErrorCode::kNotFound) {
            absent_ = number;
            return false;
        }
        if (!opened) return std::unexpected(std::move(opened).error());
        auto& read = files_[number];
        read.file = std::move(*opened);
        JournalFileReader reader(*read.file, number);
        auto contents = read_journal_file(reader, proven);
        if (!contents && contents.error().code == ErrorCode::kCorrupt) {
            return fail(ErrorCode::kCorrupt, path + ": " + contents.error().context);
        }
        if (!contents) return std::unexpected(std::move(contents).error());
        read.contents = std::move(*contents);
        for (const auto& entry : read.contents.entries) {
            if (entry.place.previous != 0)
                raise(proven_, entry.place.previous, entry.place.previous_end);
        }
        return true;
    }

    /// Nothing is there, in a file that is the last one or has not been used yet; or it is damaged.
    [[nodiscard]] Result<void> look_behind_end(std::uint64_t number) {
        if (proven_.contains(number)) return {};
        auto& read = files_[number];
        JournalFileReader reader(*read.file, number);
        KAAS_TRY(reader.look_behind(read.contents.end, [&](const JournalPlace& place) {
            raise(proven_, number, place.synced);
            if (place.previous != 0) raise(proven_, place.previous, place.previous_end);
        }));
        return {};
    }

    Volume& volume_;
    const JournalPath& path_;
    std::map<std::uint64_t, ReadFile> files_;
    Proven proven_;
    std::uint64_t absent_ = 0;
};

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
        FilesReader files(volume, path);
        KAAS_TRY_ASSIGN(all, files.read(numbers));
        if (all) {
            for (const auto& [number, read] : files.take())
                image->add(path.file(number), number, read.file, read.contents);
            return image;
        }
        // Trimmed since the list was read, by an owner who lives? Then the list says so now.
        if (!vanished.insert(files.absent()).second) {
            return fail(volume.is_local() ? ErrorCode::kCorrupt : ErrorCode::kIo,
                        path.file(files.absent()) + ": named by its journal's log, and not there");
        }
    }
}

void JournalImage::add(const std::string& path, std::uint64_t number, std::shared_ptr<File> file,
                       const JournalContents& contents) {
    const auto shared_path = std::make_shared<const std::string>(path);
    for (const auto& entry : contents.entries) {
        pieces_[entry.key].push_back({file, shared_path, entry});
    }
    for (const auto position : contents.gaps) gaps_.push_back({shared_path, number, position});
}

void JournalImage::log(const std::string& name) const {
    std::size_t entries = 0;
    std::size_t damaged = 0;
    for (const auto& [key, pieces] : pieces_) {
        entries += pieces.size();
        damaged += static_cast<std::size_t>(
            std::ranges::count_if(pieces, [](const Piece& piece) { return !piece.extent.whole; }));
    }
    base::log::info("storage", "journal {}: {} entries", name, entries);
    if (damaged == 0 && gaps_.empty()) return;
    base::log::error("storage",
                     "journal {}: {} entries are damaged, and {} places of which nobody can say "
                     "whose entries stood there; good ones stand behind",
                     name, damaged, gaps_.size());
}

const JournalImage::Gap* JournalImage::gap_behind(const JournalKey& key) const {
    if (gaps_.empty()) return nullptr;
    const auto& gap = gaps_.back();
    const auto pieces = of(key);
    if (pieces.empty()) return &gap;
    const auto& last = pieces.back().extent;
    const bool stands_behind =
        std::pair(last.place.number, last.position) > std::pair(gap.number, gap.position);
    return stands_behind ? nullptr : &gap;
}

std::span<const JournalImage::Piece> JournalImage::of(const JournalKey& key) const {
    const auto found = pieces_.find(key);
    if (found == pieces_.end()) return {};
    return found->second;
}

void JournalImage::for_each(const std::function<void(const JournalKey&)>& visit) const {
    for (const auto& [key, pieces] : pieces_) visit(key);
}

namespace {

[[nodiscard]] Result<std::shared_ptr<const JournalImage>> read_and_tell(Volume& volume,
                                                                        const std::string& name) {
    KAAS_TRY_ASSIGN(image, JournalImage::read(volume, name));
    image->log(name);
    return image;
}

}  // namespace

Result<std::shared_ptr<const JournalImage>> JournalReaders::open(const std::string& name,
                                                                 const Owner& owner) {
    std::shared_ptr<Known> known;
    {
        base::MutexLock lock(mutex_);
        if (is_over(owner)) {
            auto& place = known_[name];
            if (place == nullptr) place = std::make_shared<Known>(owner.broker);
            known = place;
        }
    }
    if (known == nullptr) return read_and_tell(volume_, name);
    base::MutexLock lock(known->mutex);
    if (known->image == nullptr) {
        KAAS_TRY_ASSIGN(image, read_and_tell(volume_, name));
        std::unordered_set<JournalKey> needed;
        image->for_each([&](const JournalKey& key) { needed.insert(key); });
        known->needed = std::move(needed);
        known->image = std::move(image);
    }
    return known->image;
}

bool JournalReaders::is_over(const Owner& owner) const {
    if (owner.incarnation == self_.incarnation) return false;
    return owner.broker == self_.broker || (living_ && !living_->contains(owner.incarnation));
}

void JournalReaders::set_living(std::set<base::Incarnation> living) {
    base::MutexLock lock(mutex_);
    living_ = std::move(living);
}

void JournalReaders::forget_others() {
    base::MutexLock lock(mutex_);
    std::erase_if(known_, [&](const auto& entry) { return entry.second->broker != self_.broker; });
}

bool JournalReaders::is_unneeded(Known& known, const base::TopicPartition& partition,
                                 base::LeaderEpoch epoch) {
    base::MutexLock lock(known.mutex);
    // What nobody can say whose it is may be somebody's who has not come yet.
    if (known.image == nullptr || !known.image->gaps().empty()) return false;
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
            // Others take what another broker led, too: its journal goes when none needs it.
            if (entry.second->broker != self_.broker) return false;
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
