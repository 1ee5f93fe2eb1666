#include "storage/journal.h"

#include "base/assert.h"
#include "base/log.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <expected>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

namespace json = boost::json;

/// The one epoch of a journal's epoch log: an incarnation is never used twice.
constexpr std::int32_t kEpoch = 0;
constexpr std::size_t kZeroBytes = std::size_t{1} << 20;
constexpr std::size_t kMostSpares = 2;
/// After files could not be made (no space, for one), until they are tried again.
constexpr std::chrono::seconds kPause{5};

}  // namespace

JournalPath JournalPath::of(const Owner& owner) {
    return {.name = fmt::format("{}.{}", owner.broker, owner.incarnation.uuid.to_string())};
}

std::string JournalPath::directory() const { return fmt::format("{}/{}", kParent, name); }

EpochLogPath JournalPath::epoch_log() const {
    return {.directory = directory(), .kind = std::string(kKind)};
}

std::string JournalPath::file(std::uint64_t number) const {
    return fmt::format("{}/{:020d}.journal", epoch_log().epoch_directory(kEpoch), number);
}

std::shared_ptr<Journal> Journal::make(JournalOptions options) {
    return std::shared_ptr<Journal>(new Journal(std::move(options)));
}

Journal::Journal(JournalOptions options)
    : options_(std::move(options)),
      path_(JournalPath::of(options_.owner)),
      registry_(options_.metrics),
      bytes_(registry_->counter("kaas_storage_journal_bytes_total",
                                "Bytes of batches that the broker journal made durable.",
                                {{"log_dir", options_.log_dir}})),
      syncs_(registry_->counter("kaas_storage_journal_syncs_total",
                                "Syncs of the broker journal; each covers many partitions.",
                                {{"log_dir", options_.log_dir}})),
      entries_(
          registry_->counter("kaas_storage_journal_entries_total",
                             "Entries in the broker journal: one per partition and commit cycle.",
                             {{"log_dir", options_.log_dir}})),
      live_files_(registry_->gauge("kaas_storage_journal_files",
                                   "Files of the broker journal that some partition still needs.",
                                   {{"log_dir", options_.log_dir}})) {
    KAAS_ASSERT(options_.volume != nullptr && options_.session != nullptr &&
                options_.io_pool != nullptr && options_.clock != nullptr);
}

Journal::~Journal() { close(); }

// ---- the commit cycle's side ------------------------------------------------------------------

bool Journal::reserve(std::uint64_t bytes) {
    bool fits = false;
    {
        base::MutexLock lock(mutex_);
        if (failed_ || closed_ || bytes > options_.file_bytes) return false;
        const auto left_behind = [&]() KAAS_REQUIRES(mutex_) {
            const auto end = files_.empty() ? options_.file_bytes : files_.back().end;
            return static_cast<std::int64_t>(options_.file_bytes - end - bytes);
        };
        if (left_behind() < 0 && next_) {
            if (!files_.empty()) {
                next_->previous = files_.back().number;
                next_->previous_end = files_.back().end;
            }
            files_.push_back(std::move(*next_));
            next_.reset();
            live_files_.set(static_cast<std::int64_t>(files_.size()));
        }
        fits = left_behind() >= 0;
        // By the time the next one is needed, it is there.
        room_wanted_ = left_behind() < static_cast<std::int64_t>(options_.file_bytes / 2);
    }
    ask_for_care();
    return fits;
}

Result<void> Journal::commit(std::span<const JournalEntry* const> entries) {
    std::shared_ptr<File> file;
    JournalPlace place;
    {
        base::MutexLock lock(mutex_);
        KAAS_ASSERT(!files_.empty());
        const auto& active = files_.back();
        file = active.file;
        place = {.number = active.number,
                 .synced = active.end,
                 .previous = active.previous,
                 .previous_end = active.previous_end};
    }
    std::vector<JournalHeader> headers;
    headers.reserve(entries.size());
    std::vector<base::ByteView> pieces;
    std::uint64_t bytes = 0;
    for (const auto* entry : entries) {
        headers.push_back(encode_journal_header(place, *entry));
        pieces.emplace_back(headers.back());
        pieces.insert(pieces.end(), entry->batches.begin(), entry->batches.end());
        bytes += size_of(*entry);
    }
    auto done = file->write_at(place.synced, pieces);
    if (done) done = file->sync();
    // A file that was not filled ahead has grown. What did not fit shows with the next look.
    if (options_.room != nullptr && !options_.volume->is_local())
        std::ignore = options_.room->take(bytes);
    base::MutexLock lock(mutex_);
    if (!done) {
        // Nothing more goes to this descriptor. What stands in the files stays until the logs that
        // need it have been recovered.
        failed_ = true;
        return done;
    }
    auto& active = files_.back();
    active.end += bytes;
    for (const auto* entry : entries) active.needs.insert_or_assign(entry->key, entry->end);
    bytes_.add(bytes);
    entries_.add(entries.size());
    syncs_.add();
    return {};
}

// ---- what is still needed ---------------------------------------------------------------------

void Journal::recorded(const JournalKey& key, base::Offset end) {
    {
        base::MutexLock lock(mutex_);
        for (auto& file : files_) {
            const auto need = file.needs.find(key);
            if (need != file.needs.end() && need->second <= end) file.needs.erase(need);
        }
    }
    ask_for_care();
}

void Journal::superseded(const base::TopicPartition& partition, base::LeaderEpoch epoch) {
    {
        base::MutexLock lock(mutex_);
        for (auto& file : files_) {
            std::erase_if(file.needs, [&](const auto& need) {
                return need.first.partition == partition && need.first.epoch < epoch;
            });
        }
    }
    ask_for_care();
}

std::size_t Journal::files() const {
    base::MutexLock lock(mutex_);
    return files_.size();
}

// ---- on the pool ------------------------------------------------------------------------------

bool Journal::wants_room() const {
    return room_wanted_ && !next_ && !failed_ && files_.size() < options_.most_files;
}

std::deque<Journal::JournalFile>::iterator Journal::trimmable() {
    const auto closed_files = files_.empty() || failed_ ? files_.end() : std::prev(files_.end());
    const auto found = std::find_if(files_.begin(), closed_files,
                                    [](const JournalFile& file) { return file.needs.empty(); });
    return found == closed_files ? files_.end() : found;
}

void Journal::ask_for_care() {
    {
        base::MutexLock lock(mutex_);
        if (closed_ || care_asked_ || options_.clock->now() < try_again_) return;
        if (!wants_room() && trimmable() == files_.end()) return;
        care_asked_ = true;
    }
    options_.io_pool->post([self = shared_from_this()] { self->care(); });
}

void Journal::care() {
    for (;;) {
        std::optional<JournalFile> unneeded;
        {
            base::MutexLock lock(mutex_);
            const auto file = trimmable();
            const bool rests = options_.clock->now() < try_again_;
            caring_ = !closed_ && !rests && (file != files_.end() || wants_room());
            if (!caring_) {
                care_asked_ = false;
                idle_.notify_all();
                return;
            }
            if (file != files_.end()) {
                unneeded = std::move(*file);
                files_.erase(file);
                live_files_.set(static_cast<std::int64_t>(files_.size()));
            }
        }
        if (unneeded) {
            trim(std::move(*unneeded));
        } else {
            make_room();
        }
    }
}

void Journal::make_room() {
    auto made = begin();
    auto file = made ? make_file() : std::unexpected(std::move(made).error());
    base::MutexLock lock(mutex_);
    if (file) {
        next_ = std::move(*file);
        return;
    }
    base::log::warn("storage", "{}: no room for the journal, batches go to their segments: {}",
                    path_.directory(), file.error().context);
    try_again_ = options_.clock->now() + kPause;
    // A taker has closed it, or its own log has failed: there is no second one.
    if (log_ ? log_->ended_by() != nullptr : file.error().code == ErrorCode::kExists)
        failed_ = true;
}

Result<void> Journal::begin() {
    if (log_) return {};
    auto& volume = *options_.volume;
    KAAS_TRY(make_directory_if_missing(volume, std::string(JournalPath::kParent)));
    KAAS_TRY(volume.sync_directory(""));
    // Each is made once: one that somebody else has made is a taker's.
    const auto epoch_directory = path_.epoch_log().epoch_directory(kEpoch);
    for (; made_directories_ < 2; ++made_directories_)
        KAAS_TRY(
            volume.make_directory(made_directories_ == 0 ? path_.directory() : epoch_directory));
    KAAS_TRY(volume.sync_directory(std::string(JournalPath::kParent)));
    // A picture that could not be written whole would be the end of it.
    KAAS_TRY(probe_writes(volume, fmt::format("kaas.probe.{}.journal", options_.owner.broker)));
    KAAS_TRY_ASSIGN(log, EpochLog::create(volume, path_.epoch_log(), kEpoch, picture(),
                                          {.directory = EpochLogOptions::Directory::kMade}));
    log_ = std::move(log);
    return {};
}

Result<Journal::JournalFile> Journal::make_file() {
    JournalFile next{.number = ++last_number_, .file = {}, .needs = {}};
    KAAS_TRY_ASSIGN(file, place_file(path_.file(next.number)));
    next.file = std::move(file);
    // Before the first entry: who reads the journal opens only files that it was told of.
    opening_ = next.number;
    auto told = note({{"open", next.number}});
    opening_.reset();
    if (!told) return std::unexpected(std::move(told).error());
    return next;
}

/// A file that nobody was told of must not stay after a failure: there may be little space left.
Result<std::shared_ptr<File>> Journal::place_file(const std::string& path) {
    std::vector<std::string> names{path};
    auto file = [&]() -> Result<std::shared_ptr<File>> {
        if (spares_.empty()) return fill_file(path);
        const auto spare = std::move(spares_.back());
        spares_.pop_back();
        names.push_back(path_.file(spare.number));
        KAAS_TRY(options_.volume->rename(names.back(), path));
        return spare.file;
    }();
    if (file) {
        auto synced = options_.volume->sync_directory(path_.epoch_log().epoch_directory(kEpoch));
        if (!synced) file = std::unexpected(std::move(synced).error());
    }
    if (!file) {
        for (const auto& name : names) std::ignore = options_.volume->unlink(name);
    }
    return file;
}

/// A sync that extends no file costs less; on a remote volume there is no such gain.
Result<std::shared_ptr<File>> Journal::fill_file(const std::string& path) const {
    const bool filled_ahead = options_.volume->is_local();
    if (filled_ahead && options_.room != nullptr && !options_.room->take(options_.file_bytes))
        return fail(ErrorCode::kNoSpace, path + ": what is left of the volume is kept");
    KAAS_TRY_ASSIGN(made, options_.volume->create(path));
    std::shared_ptr<File> file = std::move(made);
    const auto magic = base::as_bytes(kJournalMagic);
    KAAS_TRY(file->write_at(0, {&magic, 1}));
    if (filled_ahead) {
        const std::vector<std::byte> zeros(kZeroBytes);
        for (std::uint64_t at = magic.size(); at < options_.file_bytes; at += zeros.size()) {
            const auto piece = base::ByteView(zeros).first(
                std::min<std::uint64_t>(zeros.size(), options_.file_bytes - at));
            KAAS_TRY(file->write_at(at, {&piece, 1}));
        }
    }
    KAAS_TRY(file->sync());
    return file;
}

void Journal::trim(JournalFile file) {
    // A check before the line: whoever takes over after it reads manifests that do without the
    // file. One behind it, before anything is done: rule 7.
    auto done = options_.session->confirm();
    if (done && !file.trimmed) {
        done = note({{"trim", file.number}});
        file.trimmed = done.has_value();
        if (done) done = options_.session->confirm();
    }
    const bool reuse = options_.volume->is_local() && spares_.size() < kMostSpares;
    if (done && reuse) {
        spares_.push_back(std::move(file));
        return;
    }
    if (done) done = unless(ErrorCode::kNotFound, options_.volume->unlink(path_.file(file.number)));
    if (done) return;
    base::log::warn("storage", "{}: journal file {} stays: {}", path_.directory(), file.number,
                    done.error().context);
    base::MutexLock lock(mutex_);
    try_again_ = options_.clock->now() + kPause;
    // Listed or not, it harms nobody, and goes with the directory.
    if (done.error().code == ErrorCode::kFenced || log_->ended_by()) return;
    files_.insert(std::ranges::lower_bound(files_, file.number, {}, &JournalFile::number),
                  std::move(file));
    live_files_.set(static_cast<std::int64_t>(files_.size()));
}

Result<void> Journal::note(const json::object& line) {
    KAAS_TRY(log_->append(line));
    KAAS_TRY(log_->sync());
    if (!log_->wants_roll()) return {};
    KAAS_TRY(log_->roll(picture()));
    // The line stands; what could not be removed goes with the next roll.
    std::ignore = log_->remove_superseded(*options_.session);
    return {};
}

json::object Journal::picture() const {
    json::array files;
    base::MutexLock lock(mutex_);
    for (const auto& file : files_) {
        if (!file.trimmed) files.emplace_back(file.number);
    }
    if (next_) files.emplace_back(next_->number);
    if (opening_) files.emplace_back(*opening_);
    return {{"owner", to_json(options_.owner)}, {"files", std::move(files)}};
}

// ---- the end ----------------------------------------------------------------------------------

void Journal::close() {
    {
        base::MutexLock lock(mutex_);
        if (std::exchange(closed_, true)) return;
        while (caring_) idle_.wait(mutex_);
        if (failed_ || std::ranges::any_of(
                           files_, [](const JournalFile& file) { return !file.needs.empty(); })) {
            return;  // takers read it
        }
    }
    if (!log_) return;
    if (const auto removed = remove_all(); !removed) {
        base::log::info("storage", "{}: stays: {}", path_.directory(), removed.error().context);
    }
}

/// Nobody needs anything of it: every log in it has its last line. An absent journal holds nothing.
Result<void> Journal::remove_all() {
    KAAS_TRY(log_->release());
    return remove_journal(*options_.volume, path_, *options_.session);
}

Result<void> remove_journal(Volume& volume, const JournalPath& path, SessionCheck& session) {
    const auto directory = path.epoch_log().epoch_directory(kEpoch);
    auto names = volume.list(directory);
    if (!names && names.error().code == ErrorCode::kNotFound) return {};
    if (!names) return std::unexpected(std::move(names).error());
    KAAS_TRY(session.confirm());
    const auto first = volume.unlink(path.epoch_log().file(kEpoch, 1));
    if (!first && first.error().code != ErrorCode::kNotFound) return first;
    KAAS_TRY(volume.sync_directory(directory));
    for (const auto& name : *names) {
        const auto gone = volume.unlink(directory + "/" + name);
        if (!gone && gone.error().code != ErrorCode::kNotFound) return gone;
    }
    KAAS_TRY(volume.remove_directory(directory));
    return volume.remove_directory(path.directory());
}

}  // namespace kaas::storage
