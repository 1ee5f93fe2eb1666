#pragma once

#include "base/buffer.h"
#include "base/bytes.h"
#include "storage/batch_check.h"
#include "storage/error.h"
#include "storage/log_config.h"
#include "wire/records.h"

#include <cstdint>
#include <vector>

namespace kaas::storage {

/// A produced batch that was checked, and packed as its topic wants it.
struct Repacked {
    base::FrameRef frame;
    std::int64_t checked_ms;  ///< when; its time under LogAppendTime
};

/// True when a topic keeps its batches in another codec than what a producer sent.
[[nodiscard]] bool must_repack(base::ByteView records, const LogConfig& config);

/// Checks a produced batch with all of its records, and packs it anew with the codec of
/// `compression.type`. It is `max.message.bytes` at most before and after, as in Apache 4.4
/// (`LogValidator.validateMessagesAndAssignOffsetsCompressed`, `UnifiedLog.append`). Takes time:
/// not on a reactor. Errors: as `check_produced`.
[[nodiscard]] Result<Repacked> repack(base::MutableBytes records, const LogConfig& config,
                                      std::int64_t now_ms, wire::DecodeSite& site,
                                      std::vector<RecordFault>* faults = nullptr);

}  // namespace kaas::storage
