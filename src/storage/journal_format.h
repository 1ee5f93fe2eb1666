#pragma once

#include "base/bytes.h"
#include "base/ids.h"
#include "storage/error.h"
#include "storage/volume.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace kaas::storage {

/// Whose batches an entry of a journal holds: one partition under one leader epoch.
struct JournalKey {
    base::TopicPartition partition;
    base::LeaderEpoch epoch;
    friend auto operator<=>(const JournalKey&, const JournalKey&) = default;
};

/// The key of the log in `directory`, `<topic>.<topic id>/<partition>`. Empty when that is no such
/// name.
[[nodiscard]] std::optional<JournalKey> journal_key(std::string_view directory,
                                                    base::LeaderEpoch epoch);

/// What one partition adds to the journal in one cycle: whole batches, one behind the other.
struct JournalEntry {
    JournalKey key;
    base::Offset base;  ///< of the first batch
    base::Offset end;   ///< one behind the last record
    std::vector<base::ByteView> batches;

    [[nodiscard]] std::uint64_t bytes() const;
};

/// Where an entry's batches lie in a journal's file.
struct JournalExtent {
    JournalKey key;
    base::Offset base;
    base::Offset end;
    std::uint64_t position = 0;
    std::uint64_t bytes = 0;
};

/// A journal's file begins with this; its first entry follows.
inline constexpr std::string_view kJournalMagic = "kaasjnl1";

/// Before each entry's batches, big endian: length of the batches (4 bytes; 0 is the end of the
/// file), CRC32C of all that follows it (4), the file's number (8), topic id (16), partition (4),
/// leader epoch (4), base offset (8), end offset (8). The number tells an entry from what stood in
/// the file when it had another one.
inline constexpr std::size_t kJournalEntryHeader = 56;

using JournalHeader = std::array<std::byte, kJournalEntryHeader>;
[[nodiscard]] JournalHeader encode_journal_header(std::uint64_t file_number,
                                                  const JournalEntry& entry);

/// The good entries of a journal's file, in order. Reads with a small buffer, whole entries where
/// one is larger.
class JournalFileReader {
public:
    /// `file` outlives the reader.
    JournalFileReader(File& file, std::uint64_t number);

    /// The next entry; empty at the end, which is where zeros, another number or no good entry
    /// stand. Errors: the volume's.
    [[nodiscard]] Result<std::optional<JournalExtent>> next();
    /// Where the good entries end.
    [[nodiscard]] std::uint64_t position() const { return position_; }

private:
    /// At least `bytes` from `position_` on; fewer at the end of the file.
    [[nodiscard]] Result<base::ByteView> hold(std::size_t bytes);

    File& file_;
    const std::uint64_t number_;
    std::uint64_t position_ = 0;
    std::optional<std::uint64_t> size_;
    std::vector<std::byte> buffer_;
    std::uint64_t buffer_at_ = 0;
};

}  // namespace kaas::storage

template <>
struct std::hash<kaas::storage::JournalKey> {
    std::size_t operator()(const kaas::storage::JournalKey& key) const noexcept {
        return std::hash<kaas::base::TopicPartition>{}(key.partition) * 31 +
               static_cast<std::size_t>(key.epoch.value());
    }
};
