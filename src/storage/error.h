#pragma once

#include "base/result.h"

#include <string>
#include <utility>

namespace kaas::storage {

/// What a caller of storage can act on.
enum class ErrorCode {
    kNotFound,     ///< ENOENT. Proves nothing about other hosts' creations (DESIGN rule 5).
    kExists,       ///< EEXIST: somebody else made it; ask the controller for a new epoch.
    kLocked,       ///< Another process of this machine holds the lock; the context is its text.
    kNoSpace,      ///< ENOSPC, EDQUOT, EFBIG: goes on when space returns.
    kTooManyOpen,  ///< EMFILE, ENFILE.
    kIo,           ///< EIO, EROFS, ESTALE and every other failed call: the result is unknown.
    kCorrupt,  ///< Bytes on disk that we never wrote like this; the context names file and offset.
    kUnwritable,    ///< A line that would not read back (text that is not UTF-8); nothing was
                    ///< written.
    kFenced,        ///< The session that this writer worked under is over (DESIGN 9).
    kClosed,        ///< The log is being released or closed, or went offline; retriable elsewhere.
    kStalled,       ///< No answer within `kaas.fsync.max.latency.ms`; the outcome is unknown.
    kWrongEpoch,    ///< The caller's leader epoch is older than the log's.
    kUnknownEpoch,  ///< The caller's leader epoch is newer than the log's.
    kOffsetOutOfRange,  ///< Below the log start or above the end.
    kOutOfOrderSequence,
    kInvalidProducerEpoch,
    kInvalidTxnState,               ///< A batch outside of what its producer's transaction covers.
    kTransactionCoordinatorFenced,  ///< A marker of a coordinator that has been succeeded.
    kInvalidRecord,                 ///< A batch that Apache refuses with INVALID_RECORD.
    kUnknownCodec,                  ///< A batch packed with a codec that Kafka does not have.
    kCorruptBatch,  ///< A batch whose checksum or structure is wrong (CORRUPT_MESSAGE).
    kTooLarge,      ///< Above `max.message.bytes` or `segment.bytes`.
    kInvalidTimestamp,
    kWouldBlock,  ///< Only a thread that may block can do this: go to the I/O pool.
};

using Error = base::Error<ErrorCode>;

template <class T>
using Result = base::Result<T, ErrorCode>;

[[nodiscard]] inline std::unexpected<Error> fail(ErrorCode code, std::string context) {
    return base::fail(code, std::move(context));
}

/// `outcome`, but that error is as good as success: an earlier attempt got further than it could
/// say.
[[nodiscard]] inline Result<void> unless(ErrorCode harmless, Result<void> outcome) {
    if (!outcome && outcome.error().code == harmless) return {};
    return outcome;
}

}  // namespace kaas::storage
