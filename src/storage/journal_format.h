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

/// What an entry says of the journal before it. It was written after a sync of all of that, so an
/// entry that reads well proves it.
struct JournalPlace {
    std::uint64_t number = 0;        ///< of its file
    std::uint64_t synced = 0;        ///< up to where this file was synced
    std::uint64_t previous = 0;      ///< number of the file that was written before; 0 for none
    std::uint64_t previous_end = 0;  ///< ... and up to where that was synced
};

/// Where an entry's batches lie in a journal's file.
struct JournalExtent {
    JournalKey key;
    base::Offset base;
    base::Offset end;
    std::uint64_t position = 0;
    std::uint64_t bytes = 0;
    JournalPlace place;
    bool whole = true;  ///< false: its header reads well, its batches do not
};

/// A journal's file begins with this; its first entry follows.
inline constexpr std::string_view kJournalMagic = "kaasjnl2";

/// Before each entry's batches, big endian: "kjne", by which it is found behind damage, length of
/// the batches (4 bytes), their CRC32C (4), the entry's place (4 x 8), topic id (16), partition
/// (4), leader epoch (4), base offset (8), end offset (8), CRC32C of all before it (4). The file's
/// number tells an entry from what stood in the file when it had another one.
inline constexpr std::size_t kJournalEntryHeader = 88;

using JournalHeader = std::array<std::byte, kJournalEntryHeader>;
[[nodiscard]] JournalHeader encode_journal_header(const JournalPlace& place,
                                                  const JournalEntry& entry);

/// Reads the entries of a journal's file, in order. With a small buffer, whole entries where one is
/// larger.
class JournalFileReader {
public:
    /// `file` outlives the reader.
    JournalFileReader(File& file, std::uint64_t number) : file_(file), number_(number) {}

    /// The good entry that stands next; empty where zeros, another number or no good entry stand:
    /// at the end, or at damage. Errors: kCorrupt for what is no journal's file, the volume's.
    [[nodiscard]] Result<std::optional<JournalExtent>> next();
    /// Goes on behind what is no good entry: gives it, not whole, if its header reads well. Else
    /// looks for the next header that does, or the file's end, and gives nothing.
    [[nodiscard]] Result<std::optional<JournalExtent>> skip();
    /// Shows `look` each header that reads well from `position` on, good entry or not, and does not
    /// move.
    [[nodiscard]] Result<void> look_behind(std::uint64_t position,
                                           const std::function<void(const JournalPlace&)>& look);

    /// Where the next entry would stand.
    [[nodiscard]] std::uint64_t position() const { return position_; }
    [[nodiscard]] bool at_end() const { return size_ && position_ >= *size_; }

private:
    [[nodiscard]] Result<void> begin();
    /// At least `bytes` from `position_` on; fewer at the end of the file.
    [[nodiscard]] Result<base::ByteView> hold(std::size_t bytes);
    /// The entry at `position_`, by its header.
    [[nodiscard]] Result<std::optional<JournalExtent>> header();
    /// Moves to where a header that reads well stands, from here on.
    [[nodiscard]] Result<std::optional<JournalExtent>> find();

    File& file_;
    const std::uint64_t number_;
    std::uint64_t position_ = 0;
    std::optional<std::uint64_t> size_;
    std::vector<std::byte> buffer_;
    std::uint64_t buffer_at_ = 0;
};

/// All that is left of a journal's file.
struct JournalContents {
    std::vector<JournalExtent> entries;
    /// Where entries stood of which not even the header reads well. Between `entries`, in order.
    std::vector<std::uint64_t> gaps;
    std::uint64_t end = 0;  ///< of what was read
};

/// Up to where good entries end; damage before `proven`, which was synced for certain, is gone
/// over.
[[nodiscard]] Result<JournalContents> read_journal_file(JournalFileReader& reader,
                                                        std::uint64_t proven = 0);

}  // namespace kaas::storage

template <>
struct std::hash<kaas::storage::JournalKey> {
    std::size_t operator()(const kaas::storage::JournalKey& key) const noexcept {
        return std::hash<kaas::base::TopicPartition>{}(key.partition) * 31 +
               static_cast<std::size_t>(key.epoch.value());
    }
};
