#pragma once

#include "base/ids.h"
#include "storage/epoch_reader.h"
#include "storage/error.h"
#include "storage/leader_epochs.h"
#include "storage/producer_state.h"
#include "storage/segment.h"

#include <boost/json/object.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kaas::storage {

/// Who writes: stands in every picture, for people and for the taker's messages.
struct Owner {
    base::BrokerId broker;
    base::Incarnation incarnation;
};

/// Where the producers' state at an offset is kept: written out in the line itself when it is
/// small, else in
/// `<epoch>/<offset>.snapshot`.
struct ProducerRecord {
    base::Offset at{0};  ///< state after all records below it
    std::optional<base::LeaderEpoch> file_epoch{};
    std::vector<SnapshotRow> list{};  ///< when there is no file
};

/// What a partition's manifest says, and how its lines change it (DESIGN 7). The manifest is an
/// epoch log; this is what its pictures and changes mean.
///
///     {"log":..,"owner":{"broker":1,"incarnation":".."},"segments":[{"epoch":6,"base":0,"end":500,
///        "bytes":81920,"max_timestamp":[1700000000000,420]}],"active":{...},"epochs":[[6,0],[7,500]],
///        "log_start":0,"producers":{"at":500,"list":[..]}}                                     the
///        picture
///     {"roll":{"end":..,"bytes":..,"max_timestamp":..},"producers":{"at":900,"file":7}}          a
///     change
///     {"log_start":120}                                                                          a
///     change
///     {"log":"synced","end":..,"bytes":..,"max_timestamp":..,"producers":..} and "released"
///
/// `active` is the segment that its owner appends to; the numbers in it are what was synced.
/// Unknown keys of a picture are kept.
struct Manifest {
    Owner owner;
    std::vector<SegmentFacts> sealed;  ///< by base offset; none is empty
    std::optional<SegmentFacts> active;
    LeaderEpochs epochs;
    base::Offset log_start{0};
    ProducerRecord producers;
    boost::json::object unknown;

    [[nodiscard]] boost::json::object picture() const;
    /// Errors: kCorrupt; the context says which key.
    [[nodiscard]] static Result<Manifest> from_picture(const boost::json::object& picture);
    /// The whole state of an epoch: its picture and all of its lines. Errors: kCorrupt.
    [[nodiscard]] static Result<Manifest> from(const EpochState& state);

    /// The next offset after what is recorded.
    [[nodiscard]] base::Offset end() const;

    [[nodiscard]] static boost::json::object roll_line(const SegmentFacts& sealed,
                                                       const ProducerRecord& producers);
    [[nodiscard]] static boost::json::object log_start_line(base::Offset log_start);
    /// For synced and released lines.
    [[nodiscard]] static boost::json::object synced_facts(const SegmentFacts& active,
                                                          const ProducerRecord& producers);
    /// Errors: kCorrupt.
    [[nodiscard]] Result<void> apply_change(const boost::json::object& line);
    [[nodiscard]] Result<void> apply_synced(const boost::json::object& facts);

    /// Seals the active segment and starts the next one at its end.
    void roll(const SegmentFacts& sealed_facts);
};

}  // namespace kaas::storage
