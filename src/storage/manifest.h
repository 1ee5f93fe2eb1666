#pragma once

#include "base/ids.h"
#include "storage/epoch_reader.h"
#include "storage/error.h"
#include "storage/leader_epochs.h"
#include "storage/owner.h"
#include "storage/producer_state.h"
#include "storage/segment.h"

#include <boost/json/object.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kaas::storage {

/// The n-th compaction of an epoch.
struct CompactionName {
    base::LeaderEpoch epoch;
    std::int32_t number = 0;

    friend bool operator==(const CompactionName&, const CompactionName&) = default;
};

/// One segment, or none when nothing was left, takes the place of neighbours.
struct SegmentSwap {
    std::vector<SegmentName> old;
    std::optional<SegmentFacts> with;
    std::optional<base::Offset> clean_to;  ///< with the last swap of a compaction
};

/// What a partition's manifest says, and how its lines change it (DESIGN 7). The manifest is an
/// epoch log; this is what its pictures and changes mean.
///
/// A picture:
///     {"log":.., "owner":{"broker":1,"incarnation":".."}, "journal":"1.<incarnation>",
///      "segments":[{"epoch":6,"base":0,"end":500,"bytes":81920,"max_timestamp":[time,offset]}],
///      "active":{..}, "epochs":[[6,0],[7,500]], "log_start":0, "producers":[..],
///      "dropped":[[5,0]], "clean_to":400, "compactions":3, "unfinished":[[6,2]]}
/// Changes:
///     {"roll":{"end":900,"bytes":65536,"max_timestamp":..}, "producers":[..]}
///     {"drop":[[6,0]], "log_start":500}      segments that leave the log, and where it begins then
///     {"reclaimed":[[6,0]]}                  their files are gone
///     {"compacting":3}                       what the third compaction of this epoch writes
///     {"swap":[[6,0],[6,500]], "with":{"epoch":7,"base":0,"compaction":3,..}, "clean_to":900}
///     {"swept":[[6,2]]}                      what an unfinished compaction wrote is gone
/// Facts of synced and released lines:
///     "end":.., "bytes":.., "max_timestamp":.., "aborted":[..], "producers":[..]
///
/// `active` is the segment that its owner appends to; the numbers in it are what was synced, and
/// the producers are as they were at its end. The producers of a change are those that changed
/// since the one before, of a picture all. A producer is [id, epoch, coordinator epoch, time, start
/// of its transaction, offset of its last change] and four numbers for each remembered batch: last
/// sequence, last offset, offset delta, time. A dropped segment is [epoch, base offset], and [..,
/// compaction] if one wrote it; a segment without any time tells when it was appended to. A segment
/// in which transactions were aborted says how many, and the CRC-32C of their entries in its
/// `.txnindex`: "aborted":[3,2864434397]. A swap
/// puts one segment, or none, in the place of neighbours (`"records":0` when only batches without
/// records are left); `clean_to` is how far the log was
/// compacted. An unfinished compaction is [epoch, number]: it may have left files that nothing
/// names. Unknown keys of a picture are kept.
struct Manifest {
    Owner owner;
    /// Where batches of this epoch may stand that its segments lack; empty: nowhere.
    std::string journal;
    std::vector<SegmentFacts> sealed;  ///< by base offset; none is empty
    std::optional<SegmentFacts> active;
    LeaderEpochs epochs;
    base::Offset log_start{0};
    std::vector<ProducerImage> producers;  ///< as they were at `end()`
    /// Left the log; their files may still be there, for readers that hold them.
    std::vector<SegmentName> dropped;
    base::Offset clean_to{0};
    std::int32_t compactions = 0;  ///< begun under this epoch; their numbers are never used again
    std::vector<CompactionName> unfinished;
    boost::json::object unknown;

    [[nodiscard]] boost::json::object picture() const;
    /// Errors: kCorrupt; the context says which key.
    [[nodiscard]] static Result<Manifest> from_picture(const boost::json::object& picture);
    /// The whole state of an epoch: its picture and all of its lines. Errors: kCorrupt.
    [[nodiscard]] static Result<Manifest> from(const EpochState& state);

    /// The next offset after what is recorded.
    [[nodiscard]] base::Offset end() const;

    /// The line that seals the active segment, told after this state.
    [[nodiscard]] boost::json::object roll_line(const SegmentFacts& sealed_facts,
                                                std::span<const ProducerImage> now) const;
    [[nodiscard]] static boost::json::object drop_line(std::span<const SegmentName> names,
                                                       base::Offset log_start);
    [[nodiscard]] static boost::json::object reclaimed_line(std::span<const SegmentName> names);
    [[nodiscard]] static boost::json::object compacting_line(std::int32_t compaction);
    [[nodiscard]] static boost::json::object swap_line(const SegmentSwap& swap);
    [[nodiscard]] static boost::json::object swept_line(std::span<const CompactionName> swept);
    /// For synced and released lines, told after this state.
    [[nodiscard]] boost::json::object synced_facts(const SegmentFacts& active_now,
                                                   std::span<const ProducerImage> now) const;
    /// Errors: kCorrupt.
    [[nodiscard]] Result<void> apply_change(const boost::json::object& line);
    [[nodiscard]] Result<void> apply_synced(const boost::json::object& facts);

    /// Seals the active segment and starts the next one at its end.
    void roll(const SegmentFacts& sealed_facts);
    /// Takes sealed segments out of the log, and begins it at `from`. Twice is as good as once.
    void drop(std::span<const SegmentName> names, base::Offset from);
    void forget(std::span<const SegmentName> reclaimed);
    void begin_compaction(const CompactionName& name);
    /// False, and nothing happens, unless what it replaces are neighbours that are all still there.
    [[nodiscard]] bool swap(const SegmentSwap& swap);
    void forget(std::span<const CompactionName> swept);

private:
    [[nodiscard]] Result<void> apply_compaction(const boost::json::object& line);
};

}  // namespace kaas::storage
