#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/executor.h"
#include "base/ids.h"
#include "storage/error.h"
#include "storage/volume.h"

namespace kaas::storage {

/// How durable a batch must be before its producer hears of it.
enum class Acks {
    kNone,    ///< acks=0: nobody waits
    kLeader,  ///< acks=1: written and checked
    kAll,     ///< acks=all: fsynced and checked
};

enum class Isolation { kReadUncommitted, kReadCommitted };

struct Appended {
    base::Offset base_offset;
    base::Offset log_start;
    std::int64_t log_append_time_ms = -1;  ///< -1 under CreateTime, as the Produce response wants it
};

/// One produced batch (or several in a row, as v2 allows none but Apache's check says which) of one partition.
struct Append {
    base::FrameRef frame;                ///< keeps the bytes alive until they are written
    base::MutableBytes records;          ///< within `frame`; base offset and leader epoch are patched in place
    Acks acks = Acks::kAll;
    std::int32_t current_leader_epoch = -1;
    base::Executor* home = nullptr;      ///< where `done` runs
    /// Runs once, on `home`, when the batch is as durable as asked or has failed. Tickets of one commit cycle
    /// come in one wake-up per home.
    std::move_only_function<void(Result<Appended>)> done;
};

/// A run of whole batches within one file, ready for sendfile. Keeps the file open.
struct FileSlice {
    std::shared_ptr<File> file;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
};

struct AbortedTransaction {
    base::ProducerId producer_id;
    base::Offset first_offset;
};

struct Read {
    base::Offset from;
    std::uint64_t max_bytes = 0;
    bool at_least_one_batch = true;  ///< give the first batch whole even if it is larger (KIP-74)
    Isolation isolation = Isolation::kReadUncommitted;
    std::int32_t current_leader_epoch = -1;
};

struct ReadResult {
    FileSlice records;
    base::Offset high_watermark;
    base::Offset last_stable_offset;
    base::Offset log_start;
    std::vector<AbortedTransaction> aborted;
};

struct OffsetAndTimestamp {
    base::Offset offset;
    std::int64_t timestamp_ms;
    base::LeaderEpoch leader_epoch;
};

// The class itself is written by the storage engine; this header fixes the shapes that handlers and the
// engine share.

}  // namespace kaas::storage
