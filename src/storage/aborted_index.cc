#include "storage/aborted_index.h"

#include "base/bytes.h"
#include "base/crc32c.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

/// So many of what is in the file stay in memory, too: readers at the log's end need no file.
constexpr std::size_t kKept = 128;
/// A file is read in pieces of so many entries.
constexpr std::uint32_t kPiece = 128;

/// Filters entries as they come. True once the rest does not matter.
class Collector {
public:
    Collector(base::Offset from, base::Offset until, std::vector<AbortedTransaction>& found)
        : from_(from), until_(until), found_(found) {}

    [[nodiscard]] bool take(const AbortedTransaction& transaction) {
        if (transaction.last_offset >= from_ && transaction.first_offset < until_)
            found_.push_back(transaction);
        return transaction.last_stable_offset >= until_;
    }

private:
    const base::Offset from_;
    const base::Offset until_;
    std::vector<AbortedTransaction>& found_;
};

/// Calls `take` with the entries [begin, end) of a file, until it says true.
template <class Take>
[[nodiscard]] Result<bool> read_entries(File& file, std::uint32_t begin, std::uint32_t end,
                                        Patience patience, Take take) {
    std::vector<std::byte> bytes;
    while (begin < end) {
        const auto count = std::min(kPiece, end - begin);
        bytes.resize(count * AbortedTransaction::kBytes);
        KAAS_TRY(
            read_exactly(file, std::uint64_t{begin} * AbortedTransaction::kBytes, bytes, patience));
        for (std::uint32_t i = 0; i < count; ++i) {
            if (take(bytes.data() + i * AbortedTransaction::kBytes)) return true;
        }
        begin += count;
    }
    return false;
}

/// The first of the first `count` entries that ended at `from` or later.
[[nodiscard]] Result<std::uint32_t> first_ending_at(File& file, std::uint32_t count,
                                                    base::Offset from, Patience patience) {
    std::uint32_t low = 0;
    std::uint32_t high = count;
    while (low < high) {
        const auto middle = low + (high - low) / 2;
        std::byte bytes[AbortedTransaction::kBytes];
        KAAS_TRY(read_exactly(file, std::uint64_t{middle} * AbortedTransaction::kBytes, bytes,
                              patience));
        if (AbortedTransaction::decode(bytes).last_offset < from) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

}  // namespace

void AbortedTransaction::encode(std::byte* to) const {
    base::store_be(to, std::int16_t{0});
    base::store_be(to + 2, producer_id.value());
    base::store_be(to + 10, first_offset.value());
    base::store_be(to + 18, last_offset.value());
    base::store_be(to + 26, last_stable_offset.value());
}

AbortedTransaction AbortedTransaction::decode(const std::byte* from) {
    return {.producer_id = base::ProducerId{base::load_be<std::int64_t>(from + 2)},
            .first_offset = base::Offset{base::load_be<std::int64_t>(from + 10)},
            .last_offset = base::Offset{base::load_be<std::int64_t>(from + 18)},
            .last_stable_offset = base::Offset{base::load_be<std::int64_t>(from + 26)}};
}

void AbortedSeal::add(const AbortedTransaction& transaction) {
    std::byte bytes[AbortedTransaction::kBytes];
    transaction.encode(bytes);
    crc = base::crc32c(bytes, crc);
    ++count;
}

void AbortedIndex::append(const AbortedTransaction& transaction) {
    base::MutexLock lock(mutex_);
    newest_.push_back(transaction);
}

bool AbortedIndex::has_file() const {
    base::MutexLock lock(mutex_);
    return file_ != nullptr;
}

std::size_t AbortedIndex::size_in_memory() const {
    base::MutexLock lock(mutex_);
    return newest_.size();
}

Result<void> AbortedIndex::flush(Volume& volume, const std::string& path, Syncs syncs) {
    std::vector<std::byte> bytes;
    std::shared_ptr<File> file;
    std::uint32_t at = 0;
    {
        base::MutexLock lock(mutex_);
        const auto fresh = std::span(newest_).subspan(in_file_ - before_newest_);
        if (fresh.empty()) return {};
        bytes.resize(fresh.size() * AbortedTransaction::kBytes);
        auto* to = bytes.data();
        for (const auto& one : fresh) {
            one.encode(to);
            to += AbortedTransaction::kBytes;
        }
        at = in_file_;
        file = file_;
    }
    if (file == nullptr) {
        KAAS_TRY_ASSIGN(made, create_or_reopen(volume, path));
        file = std::move(made);
    }
    const base::ByteView piece(bytes);
    KAAS_TRY(file->write_at(std::uint64_t{at} * AbortedTransaction::kBytes, {&piece, 1}));
    KAAS_TRY(sync_file(*file, syncs));
    base::MutexLock lock(mutex_);
    file_ = std::move(file);
    in_file_ = at + static_cast<std::uint32_t>(bytes.size() / AbortedTransaction::kBytes);
    const std::size_t spare = in_file_ - before_newest_;
    if (spare > 2 * kKept) {
        const auto gone = spare - kKept;
        newest_.erase(newest_.begin(), newest_.begin() + static_cast<std::ptrdiff_t>(gone));
        before_newest_ += static_cast<std::uint32_t>(gone);
    }
    return {};
}

void AbortedIndex::drop_memory() {
    base::MutexLock lock(mutex_);
    if (before_newest_ + newest_.size() != in_file_) return;  // memory is all there is
    newest_ = {};
    before_newest_ = in_file_;
}

void AbortedIndex::rebuild(std::vector<AbortedTransaction> transactions) {
    base::MutexLock lock(mutex_);
    newest_ = std::move(transactions);
    before_newest_ = in_file_ = 0;
    file_.reset();
    verified_ = true;
}

Result<void> AbortedIndex::verify(Volume& volume, const std::string& path, const AbortedSeal& seal,
                                  Patience patience) {
    {
        base::MutexLock lock(mutex_);
        if (verified_) return {};
    }
    if (patience != Patience::kMayBlock) return fail(ErrorCode::kWouldBlock, path);
    const auto wrong = [&](const std::string& why) {
        return fail(ErrorCode::kCorrupt, fmt::format("{}: {}", path, why));
    };
    auto opened = volume.open(path, OpenMode::kRead);
    if (!opened && opened.error().code == ErrorCode::kNotFound) return wrong("is not there");
    if (!opened) return std::unexpected(std::move(opened).error());
    std::shared_ptr<File> file = std::move(*opened);
    KAAS_TRY_ASSIGN(size, file->size());
    if (size / AbortedTransaction::kBytes < seal.count)
        return wrong(fmt::format("{} bytes for {} entries", size, seal.count));
    std::uint32_t crc = 0;
    KAAS_TRY(read_entries(*file, 0, seal.count, patience, [&](const std::byte* entry) {
        crc = base::crc32c({entry, AbortedTransaction::kBytes}, crc);
        return false;
    }));
    if (crc != seal.crc) return wrong("its checksum is not the manifest's");
    base::MutexLock lock(mutex_);
    if (verified_) return {};
    file_ = std::move(file);
    before_newest_ = in_file_ = seal.count;
    verified_ = true;
    return {};
}

Result<bool> AbortedIndex::collect(Volume& volume, const std::string& path, const AbortedSeal& seal,
                                   base::Offset from, base::Offset until, Patience patience,
                                   std::vector<AbortedTransaction>& found) {
    if (seal.count == 0) return false;
    KAAS_TRY(verify(volume, path, seal, patience));
    // Memory first: what a flush moves to the file meanwhile is not missed.
    std::vector<AbortedTransaction> newest;
    std::shared_ptr<File> file;
    std::uint32_t in_file_alone = 0;
    bool newest_suffice = false;
    bool newest_complete = false;
    {
        base::MutexLock lock(mutex_);
        file = file_;
        in_file_alone = std::min(before_newest_, seal.count);
        const auto count = std::min<std::size_t>(seal.count - in_file_alone, newest_.size());
        const auto known = std::span(newest_).first(count);
        // Markers stand in the order of their offsets.
        newest_suffice = !known.empty() && known.front().last_offset < from;
        Collector collector(from, until, newest);
        for (const auto& one : known) {
            newest_complete = collector.take(one);
            if (newest_complete) break;
        }
    }
    if (in_file_alone > 0 && !newest_suffice) {
        KAAS_TRY_ASSIGN(first, first_ending_at(*file, in_file_alone, from, patience));
        Collector collector(from, until, found);
        KAAS_TRY_ASSIGN(
            complete,
            read_entries(*file, first, in_file_alone, patience, [&](const std::byte* entry) {
                return collector.take(AbortedTransaction::decode(entry));
            }));
        if (complete) return true;
    }
    found.insert(found.end(), newest.begin(), newest.end());
    return newest_complete;
}

}  // namespace kaas::storage
