#include "storage/segment_move.h"

#include "base/bytes.h"
#include "base/result.h"
#include "storage/epoch_beginning.h"
#include "storage/error.h"
#include "storage/log_dir.h"
#include "storage/log_view.h"
#include "storage/partition_log.h"
#include "storage/segment.h"
#include "storage/volume.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

constexpr std::size_t kCopyBytes = std::size_t{1} << 20;

/// Copies bytes from `done` up to `end`.
[[nodiscard]] Result<void> copy_bytes(File& from, File& to, std::uint64_t done, std::uint64_t end,
                                      const std::string& path) {
    std::vector<std::byte> buffer(std::min<std::uint64_t>(kCopyBytes, end - done));
    while (done < end) {
        const base::MutableBytes into(buffer.data(),
                                      std::min<std::uint64_t>(buffer.size(), end - done));
        KAAS_TRY_ASSIGN(got, from.read_at(done, into));
        if (got == 0) return fail(ErrorCode::kCorrupt, path + ": shorter than its manifest says");
        const base::ByteView piece(buffer.data(), got);
        KAAS_TRY(to.write_at(done, {&piece, 1}));
        done += got;
    }
    return {};
}

/// The length of a file; 0 when it is not there.
[[nodiscard]] Result<std::uint64_t> length_of(Volume& volume, const std::string& path) {
    auto file = volume.open(path, OpenMode::kRead);
    if (file) return (*file)->size();
    if (file.error().code == ErrorCode::kNotFound) return std::uint64_t{0};
    return std::unexpected(std::move(file).error());
}

/// A file is complete under its own name, or has another: what grows goes by `.moving`.
[[nodiscard]] Result<void> copy_file(Volume& from, Volume& to, const std::string& directory,
                                     const std::string& path, std::uint64_t bytes) {
    KAAS_TRY_ASSIGN(present, length_of(to, path));
    if (present >= bytes) return {};
    const auto moving = path + ".moving";
    KAAS_TRY(unless(ErrorCode::kNotFound, to.unlink(moving)));
    if (present > 0) {
        KAAS_TRY(to.rename(path, moving));
        KAAS_TRY(to.sync_directory(directory));
    }
    auto target = present > 0 ? to.open(moving, OpenMode::kReadWrite) : to.create(moving);
    if (!target) return std::unexpected(std::move(target).error());
    KAAS_TRY_ASSIGN(source, from.open(path, OpenMode::kRead));
    KAAS_TRY(copy_bytes(*source, **target, present, bytes, path));
    KAAS_TRY((*target)->sync());
    return to.rename(moving, path);
}

/// Indexes only hint: the newest state of each counts, and one that is not there is rebuilt.
[[nodiscard]] Result<void> copy_index(Volume& from, Volume& to, const std::string& directory,
                                      const std::string& path) {
    KAAS_TRY_ASSIGN(bytes, length_of(from, path));
    if (bytes == 0) return {};
    KAAS_TRY(unless(ErrorCode::kNotFound, to.unlink(path)));
    return copy_file(from, to, directory, path, bytes);
}

}  // namespace

Result<void> copy_segment(Volume& from, Volume& to, const PartitionPaths& paths,
                          const SegmentFacts& facts) {
    if (facts.bytes == 0) return {};
    const auto name = facts.name();
    const auto epoch = paths.epoch_directory(facts.epoch);
    const auto directory = paths.compaction_directory(facts.epoch, facts.compaction);
    for (const auto& needed : {epoch, directory}) {
        KAAS_TRY(make_directory_if_missing(to, needed));
    }
    KAAS_TRY(copy_file(from, to, directory, paths.file(name, ".log"), facts.bytes));
    for (const auto* suffix : {".index", ".timeindex", ".txnindex"}) {
        KAAS_TRY(copy_index(from, to, directory, paths.file(name, suffix)));
    }
    KAAS_TRY(to.sync_directory(directory));
    if (directory != epoch) KAAS_TRY(to.sync_directory(epoch));
    return to.sync_directory(*paths.directory);
}

namespace {

/// What is left to copy while nobody is served.
constexpr std::uint64_t kLittleBytes = std::uint64_t{4} << 20;
/// A log that grows faster than it is copied is handed over all the same.
constexpr int kMostRounds = 8;

using GoOn = std::function<bool(std::uint64_t bytes, base::Offset end)>;

/// Removes the copies of segments that have left the log since. `present` is what may be there.
[[nodiscard]] Result<void> drop_gone(Volume& volume, const PartitionPaths& paths,
                                     const LogView& view, std::set<SegmentName>& present) {
    std::set<SegmentName> now;
    for (const auto& span : *view.sealed) now.insert(span.facts.name());
    if (view.last.segment) now.insert(view.last.facts.name());
    for (const auto& name : present) {
        if (!now.contains(name)) KAAS_TRY(remove_segment(volume, paths, name));
    }
    present = std::move(now);
    return {};
}

[[nodiscard]] Result<bool> copy_view(Volume& from, Volume& to, const PartitionPaths& paths,
                                     const LogView& view, const GoOn& go_on) {
    auto spans = *view.sealed;
    if (view.last.segment) spans.push_back(view.last);
    std::uint64_t bytes = 0;
    for (const auto& span : spans) {
        KAAS_TRY(copy_segment(from, to, paths, span.facts));
        bytes += span.facts.bytes;
        if (!go_on(bytes, span.facts.end)) return false;
    }
    return true;
}

}  // namespace

Result<bool> copy_log(PartitionLog& log, Volume& to, const GoOn& go_on) {
    const PartitionPaths paths{log.directory()};
    KAAS_TRY(make_topic_directory(to, *paths.directory));
    KAAS_TRY(make_partition_directory(to, *paths.directory));
    std::uint64_t before = 0;
    std::set<SegmentName> present;
    for (int round = 0; round < kMostRounds; ++round) {
        const auto view = log.view();
        KAAS_TRY(drop_gone(to, paths, view, present));
        auto copied = copy_view(log.log_dir().volume(), to, paths, view, go_on);
        // A segment that has left the log meanwhile is not in the next view.
        const bool left = !copied && copied.error().code == ErrorCode::kNotFound;
        if (!left && (!copied || !*copied)) return copied;
        const auto now = view.bytes();
        if (!left && now - std::min(now, before) <= kLittleBytes) break;
        before = now;
    }
    return true;
}

Result<void> remove_partition(Volume& volume, const PartitionPaths& paths) {
    KAAS_TRY(remove_tree(volume, *paths.directory));
    return unless(ErrorCode::kNotFound, volume.sync_directory(paths.topic_directory()));
}

Result<void> remove_empty_topic(Volume& volume, const PartitionPaths& paths) {
    const auto topic = paths.topic_directory();
    auto others = volume.list(topic);
    if (!others || !others->empty()) return {};  // other partitions of the topic are there
    auto removed = unless(ErrorCode::kNotFound, volume.remove_directory(topic));
    KAAS_TRY(unless(ErrorCode::kExists, std::move(removed)));  // one has just come
    return volume.sync_directory("");
}

}  // namespace kaas::storage
