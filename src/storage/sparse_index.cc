#include "storage/sparse_index.h"

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <utility>
#include <vector>

namespace kaas::storage {

Result<void> read_exactly(File& file, std::uint64_t offset, base::MutableBytes into,
                          Patience patience) {
    if (patience == Patience::kMemoryOnly) return fail(ErrorCode::kWouldBlock, {});
    if (patience == Patience::kNever) {
        KAAS_TRY_ASSIGN(read, file.try_read_at(offset, into));
        if (read != into.size()) return fail(ErrorCode::kWouldBlock, {});
        return {};
    }
    KAAS_TRY_ASSIGN(read, file.read_at(offset, into));
    if (read != into.size()) return fail(ErrorCode::kCorrupt, "the file ends early");
    return {};
}

void OffsetEntry::encode(std::byte* to) const {
    base::store_be(to, relative_offset);
    base::store_be(to + 4, position);
}

OffsetEntry OffsetEntry::decode(const std::byte* from) {
    return {base::load_be<std::int32_t>(from), base::load_be<std::int32_t>(from + 4)};
}

void TimeEntry::encode(std::byte* to) const {
    base::store_be(to, timestamp_ms);
    base::store_be(to + 8, relative_offset);
}

TimeEntry TimeEntry::decode(const std::byte* from) {
    return {base::load_be<std::int64_t>(from), base::load_be<std::int32_t>(from + 8)};
}

template <class Entry>
Result<void> SparseIndex<Entry>::flush(Volume& volume, Syncs syncs) {
    return write_out(volume, false, syncs);
}

template <class Entry>
Result<void> SparseIndex<Entry>::finish(Volume& volume, Syncs syncs) {
    return write_out(volume, true, syncs);
}

template <class Entry>
Result<void> SparseIndex<Entry>::write_out(Volume& volume, bool even_if_empty, Syncs syncs) {
    std::vector<std::byte> bytes;
    std::shared_ptr<File> file;
    std::size_t at = 0;
    std::size_t end = 0;
    {
        base::MutexLock lock(mutex_);
        at = in_file_;
        end = entries_.size();
        if (at == end && (file_ != nullptr || !even_if_empty)) return {};
        bytes.resize((end - at) * Entry::kBytes);
        for (auto i = at; i < end; ++i) entries_[i].encode(bytes.data() + (i - at) * Entry::kBytes);
        file = file_;
    }
    if (file == nullptr) {
        KAAS_TRY_ASSIGN(made, create_or_reopen(volume, path()));
        file = std::move(made);
    }
    const base::ByteView piece(bytes);
    KAAS_TRY(file->write_at(at * Entry::kBytes, {&piece, 1}));
    KAAS_TRY(sync_file(*file, syncs));
    base::MutexLock lock(mutex_);
    file_ = std::move(file);
    in_file_ = end;
    return {};
}

template <class Entry>
void SparseIndex<Entry>::drop_memory() {
    base::MutexLock lock(mutex_);
    if (in_file_ != entries_.size()) return;  // a flush failed: memory is all there is
    std::vector<Entry>().swap(entries_);
    in_memory_ = false;
    opened_ = true;
}

template <class Entry>
Result<void> SparseIndex<Entry>::open(Volume& volume) {
    {
        base::MutexLock lock(mutex_);
        if (opened_ || in_memory_) return {};
    }
    std::shared_ptr<File> file;
    std::size_t count = 0;
    auto opened = volume.open(path(), OpenMode::kRead);
    if (opened) {
        file = std::move(*opened);
        KAAS_TRY_ASSIGN(size, file->size());
        count = size / Entry::kBytes;
    } else if (opened.error().code != ErrorCode::kNotFound) {
        return std::unexpected(std::move(opened).error());
    }
    base::MutexLock lock(mutex_);
    if (opened_) return {};
    file_ = std::move(file);
    in_file_ = count;
    in_memory_ = false;
    opened_ = true;
    return {};
}

template class SparseIndex<OffsetEntry>;
template class SparseIndex<TimeEntry>;

}  // namespace kaas::storage
