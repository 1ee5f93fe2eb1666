#include "storage/check.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/result.h"
#include "storage/batch_check.h"
#include "storage/epoch_log.h"
#include "storage/epoch_reader.h"
#include "storage/error.h"
#include "storage/manifest.h"
#include "storage/read_check.h"
#include "storage/segment.h"
#include "storage/sparse_index.h"
#include "storage/void_epochs.h"
#include "storage/volume.h"
#include "wire/record_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

constexpr std::size_t kIndexLimitBytes = std::size_t{1} << 30;

/// A batch that was found good.
struct Found {
    std::uint64_t position;
    base::Offset last_offset;
    std::int64_t max_timestamp_ms;
    std::int64_t newest_so_far_ms;  ///< of all up to this one
};

class Checker {
public:
    Checker(Volume& volume, const ReportDamage& report) : volume_(volume), report_(report) {}

    Result<CheckSummary> run(const std::string& path) {
        KAAS_TRY_ASSIGN(names, volume_.list(path));
        directory(path, names);
        return summary_;
    }

private:
    void directory(const std::string& path, const std::vector<std::string>& names) {
        std::vector<std::int32_t> epochs;
        for (const auto& name : names) {
            if (const auto epoch = parse_epoch_name(name)) epochs.push_back(*epoch);
        }
        std::ranges::sort(epochs, std::greater{});
        if (!epochs.empty() && is_partition(path, names)) return partition(path, epochs);
        for (const auto& name : names) {
            if (name.starts_with("__")) continue;
            const auto below = path.empty() ? name : fmt::format("{}/{}", path, name);
            if (const auto inner = volume_.list(below)) directory(below, *inner);
        }
    }

    [[nodiscard]] bool is_partition(const std::string& path,
                                    const std::vector<std::string>& names) {
        return std::ranges::any_of(names, [&](const std::string& name) {
            if (!parse_epoch_name(name)) return false;
            const auto files = volume_.list(fmt::format("{}/{}", path, name));
            return files && std::ranges::any_of(*files, [](const std::string& file) {
                       return file == "manifest-1.jsonl" || file.ends_with(".log");
                   });
        });
    }

    void damage(std::string file, std::optional<std::uint64_t> position, std::string why) {
        ++summary_.damages;
        report_({.file = std::move(file), .position = position, .why = std::move(why)});
    }

    /// The newest epoch that has a picture says what counts.
    void partition(const std::string& path, const std::vector<std::int32_t>& newest_first) {
        ++summary_.partitions;
        std::vector<std::int32_t> voids;
        base::Offset end{0};
        for (const auto epoch : newest_first) {
            auto state = read_epoch(volume_, PartitionPaths{path}.manifest(), epoch);
            if (!state && state.error().code != ErrorCode::kNotFound) {
                return damage(fmt::format("{}/{}", path, epoch_name(epoch)), std::nullopt,
                              state.error().context);
            }
            if (!state || !*state) {
                voids.push_back(epoch);
                continue;
            }
            const auto manifest = Manifest::from(**state);
            if (!manifest) {
                return damage(fmt::format("{}/{}", path, epoch_name(epoch)), std::nullopt,
                              manifest.error().context);
            }
            for (const auto& facts : manifest->sealed) segment(path, facts, manifest->epochs);
            if (manifest->active) segment(path, *manifest->active, manifest->epochs);
            end = end_of_tail(path, *manifest);
            break;
        }
        for (const auto epoch : voids) void_epoch(path, base::LeaderEpoch{epoch}, end);
    }

    /// Where a broker that opens the log would find its end.
    [[nodiscard]] base::Offset end_of_tail(const std::string& path, const Manifest& manifest) {
        if (!manifest.active) return manifest.end();
        const auto log = PartitionPaths{path}.file(manifest.active->name(), ".log");
        const auto end = end_of_batches(volume_, log);
        return std::max(manifest.end(), end ? end->value_or(base::Offset{0}) : base::Offset{0});
    }

    void void_epoch(const std::string& path, base::LeaderEpoch epoch, base::Offset end) {
        const auto stray = find_stray_records(volume_, PartitionPaths{path}, epoch, end);
        if (!stray) return damage(path, std::nullopt, stray.error().context);
        if (!*stray) return;
        damage((*stray)->file, std::nullopt,
               fmt::format("its epoch has no manifest; it holds records up to offset {}, and the "
                           "log ends at {} without them",
                           (*stray)->end, end));
    }

    void segment(const std::string& directory, const SegmentFacts& facts,
                 const LeaderEpochs& epochs) {
        ++summary_.segments;
        const PartitionPaths paths{directory};
        const auto log = paths.file(facts.name(), ".log");
        const auto found = batches(log, facts, epochs);
        if (!found) return damage(log, std::nullopt, found.error().context);
        check_aborted(paths.file(facts.name(), ".txnindex"), facts.aborted);
        if (!*found) return;  // told, and its indexes lead to what is not known
        check_offsets(paths.file(facts.name(), ".index"), facts, **found);
        check_times(paths.file(facts.name(), ".timeindex"), facts, **found);
    }

    /// Empty when there is damage, which is told. Errors: the volume's.
    Result<std::optional<std::vector<Found>>> batches(const std::string& path,
                                                      const SegmentFacts& facts,
                                                      const LeaderEpochs& epochs) {
        KAAS_TRY_ASSIGN(file, volume_.open(path, OpenMode::kRead));
        KAAS_TRY_ASSIGN(size, file->size());
        const auto end = std::min(size, facts.bytes);
        bool good = true;        // all so far
        bool in_damage = false;  // the batch before was bad
        const auto bad = [&](std::uint64_t position, std::string why) {
            if (!in_damage) damage(path, position, std::move(why));
            in_damage = true;
            good = false;
        };
        std::vector<Found> found;
        std::vector<std::byte> bytes;
        auto expected = facts.base;
        std::int64_t newest_ms = -1;
        for (std::uint64_t position = 0; position < end; position += bytes.size()) {
            bytes.resize(std::min<std::uint64_t>(wire::BatchHeader::kBytes, end - position));
            KAAS_TRY_ASSIGN(got, file->read_at(position, bytes));
            bytes.resize(got);
            const auto header = wire::BatchHeader::parse(bytes);
            if (!header || header->size() > end - position) {
                bad(position, header ? "a batch beyond the end" : header.error().context);
                break;  // where the next one begins cannot be known
            }
            bytes.resize(header->size());
            KAAS_TRY(read_exactly(*file, position, bytes, Patience::kMayBlock));
            ++summary_.batches;
            // Behind damage, what is next is not known.
            const bool in_a_row = facts.compaction == 0 && !in_damage;
            if (auto wrong = fault_of(bytes, *header, facts, epochs, expected, in_a_row)) {
                bad(position, std::move(*wrong));
                continue;
            }
            in_damage = false;
            expected = base::Offset{header->last_offset() + 1};
            newest_ms = std::max(newest_ms, header->max_timestamp);
            found.push_back({.position = position,
                             .last_offset = base::Offset{header->last_offset()},
                             .max_timestamp_ms = header->max_timestamp,
                             .newest_so_far_ms = newest_ms});
        }
        if (size < facts.bytes) {
            bad(size, fmt::format("the file ends; {} bytes were recorded", facts.bytes));
        }
        if (!good || !check_end(path, end, facts, expected, newest_ms)) return std::nullopt;
        return found;
    }

    [[nodiscard]] static std::optional<std::string> fault_of(base::ByteView bytes,
                                                             const wire::BatchHeader& header,
                                                             const SegmentFacts& facts,
                                                             const LeaderEpochs& epochs,
                                                             base::Offset expected, bool in_a_row) {
        if (const auto whole = check_stored(bytes); !whole) return whole.error().context;
        return misplaced(header, facts, epochs, expected, in_a_row);
    }

    [[nodiscard]] bool check_end(const std::string& path, std::uint64_t end,
                                 const SegmentFacts& facts, base::Offset expected,
                                 std::int64_t newest_ms) {
        if (facts.compaction != 0) return true;  // may end in a hole
        if (expected != facts.end) {
            damage(
                path, end,
                fmt::format("offset {} would be next, the manifest says {}", expected, facts.end));
        } else if (newest_ms != facts.max_timestamp_ms) {
            damage(path, std::nullopt,
                   fmt::format("its newest time is {}, the manifest says {}", newest_ms,
                               facts.max_timestamp_ms));
        } else {
            return true;
        }
        return false;
    }

    /// Calls `fault_of_entry` with each entry of an index; an absent file is an empty one.
    template <class Entry, class FaultOfEntry>
    void check_index(const std::string& path, FaultOfEntry fault_of_entry) {
        const auto text = read_whole(volume_, path, kIndexLimitBytes);
        if (!text) {
            if (text.error().code != ErrorCode::kNotFound)
                damage(path, std::nullopt, text.error().context);
            return;
        }
        const auto bytes = base::as_bytes(*text);
        for (std::size_t at = 0; at + Entry::kBytes <= bytes.size(); at += Entry::kBytes) {
            const std::string_view why = fault_of_entry(Entry::decode(bytes.data() + at));
            if (!why.empty()) damage(path, at, std::string(why));
        }
    }

    void check_offsets(const std::string& path, const SegmentFacts& facts,
                       const std::vector<Found>& found) {
        check_index<OffsetEntry>(path, [&](const OffsetEntry& entry) -> std::string_view {
            const auto position = static_cast<std::uint64_t>(entry.position);
            const auto offset = facts.base + entry.relative_offset;
            // Of a tail that does not count.
            if (position >= facts.bytes && offset >= facts.end) return {};
            const auto at = std::ranges::lower_bound(found, position, {}, &Found::position);
            const bool kept =
                at != found.end() && at->position == position && at->last_offset == offset;
            return kept ? "" : "no good batch with this last offset is where it leads";
        });
    }

    void check_times(const std::string& path, const SegmentFacts& facts,
                     const std::vector<Found>& found) {
        check_index<TimeEntry>(path, [&](const TimeEntry& entry) -> std::string_view {
            const auto offset = facts.base + entry.relative_offset;
            // Of a tail that does not count.
            if (offset >= facts.end && entry.timestamp_ms > facts.max_timestamp_ms) return {};
            const auto at = std::ranges::lower_bound(found, offset, {}, &Found::last_offset);
            if (at == found.end()) return "no good batch has its offset";
            if (at->newest_so_far_ms > entry.timestamp_ms) return "a record up to it is newer";
            const bool kept =
                at->last_offset == offset && at->max_timestamp_ms == entry.timestamp_ms;
            if (!kept) return "its batch has another time";
            return {};
        });
    }

    /// No hint: what it should hold the manifest says.
    void check_aborted(const std::string& path, const AbortedSeal& seal) {
        if (seal.count == 0) return;
        const auto text = read_whole(volume_, path, kIndexLimitBytes);
        if (!text) return damage(path, std::nullopt, text.error().context);
        const auto sealed = std::size_t{seal.count} * AbortedTransaction::kBytes;
        if (text->size() < sealed) {
            damage(path, text->size(),
                   fmt::format("the file ends; {} aborted transactions were recorded", seal.count));
        } else if (base::crc32c(base::as_bytes(*text).first(sealed)) != seal.crc) {
            damage(path, std::nullopt, "its checksum is not the manifest's");
        }
    }

    Volume& volume_;
    const ReportDamage& report_;
    CheckSummary summary_;
};

}  // namespace

CheckSummary& CheckSummary::operator+=(const CheckSummary& other) {
    partitions += other.partitions;
    segments += other.segments;
    batches += other.batches;
    slots += other.slots;
    damages += other.damages;
    return *this;
}

Result<CheckSummary> check_partitions(Volume& volume, const std::string& path,
                                      const ReportDamage& report) {
    return Checker(volume, report).run(path);
}

}  // namespace kaas::storage
