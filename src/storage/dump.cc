#include "storage/dump.h"

#include "base/bytes.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/utf8.h"
#include "storage/epoch_reader.h"
#include "storage/error.h"
#include "storage/journal_format.h"
#include "storage/producer_state.h"
#include "storage/sparse_index.h"
#include "storage/volume.h"
#include "wire/compression.h"
#include "wire/error.h"
#include "wire/record_batch.h"
#include "wire/records.h"
#include "wire/types.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

namespace json = boost::json;

/// Indexes, snapshots and manifests are read whole.
constexpr std::size_t kSmallFileLimitBytes = std::size_t{1} << 30;

std::string_view name_in(std::string_view path) {
    auto slash = path.rfind('/');
    return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

/// The number at the start of a segment file's name; 0 when there is none.
std::int64_t base_offset_of(std::string_view path) {
    std::string_view name = name_in(path);
    std::int64_t base = 0;
    std::from_chars(name.data(), name.data() + name.size(), base);
    return base;
}

bool is_text(std::string_view bytes) {
    const auto is_control = [](char c) {
        return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' && c != '\r';
    };
    return base::is_utf8(bytes) && std::ranges::none_of(bytes, is_control);
}

/// What a crash left of the very first line, which is one of every epoch log, if anything.
bool begins_epoch_log(std::string_view text) {
    constexpr std::string_view kBegin = R"({"log":)";
    return text.starts_with(kBegin) || kBegin.starts_with(text);
}

/// A key or value: text as it is, anything else in hexadecimal digits under a name that says so.
void show_bytes(json::object& item, std::string_view name, std::optional<wire::ByteView> bytes) {
    if (!bytes) {
        item[name] = nullptr;
        return;
    }
    std::string_view text = base::as_text(*bytes);
    if (is_text(text)) {
        item[name] = text;
        return;
    }
    std::string digits;
    for (std::byte byte : *bytes) digits += fmt::format("{:02x}", static_cast<unsigned>(byte));
    item[fmt::format("{}_hex", name)] = digits;
}

json::object show_header(const wire::BatchHeader& header, std::uint64_t position) {
    json::object item{
        {"item", "batch"},
        {"position", position},
        {"base_offset", header.base_offset},
        {"last_offset", header.last_offset()},
        {"count", header.count},
        {"size", header.size()},
        {"base_timestamp", header.base_timestamp},
        {"max_timestamp", header.max_timestamp},
        {"timestamp_type",
         header.timestamp_type() == wire::TimestampType::kCreateTime ? "create" : "append"},
        {"producer_id", header.producer_id},
        {"producer_epoch", header.producer_epoch},
        {"base_sequence", header.base_sequence},
        {"last_sequence", header.last_sequence()},
        {"partition_leader_epoch", header.partition_leader_epoch},
        {"transactional", header.transactional()},
        {"control", header.control()},
        {"compression", wire::to_string(header.compression())},
        {"magic", header.magic},
        {"crc", header.crc}};
    if (auto horizon = header.delete_horizon_ms()) item["delete_horizon"] = *horizon;
    return item;
}

/// A control record says what it is in its key (Apache `ControlRecordType`), and a transaction
/// marker who wrote it in its value (`EndTransactionMarker`).
void show_control(json::object& item, const wire::Record& record) {
    if (!record.key || record.key->size() < 4) return show_bytes(item, "key", record.key);
    auto type = base::load_be<std::int16_t>(record.key->data() + 2);
    item["control"] = type == 0 ? "abort" : type == 1 ? "commit" : fmt::format("type {}", type);
    if (type <= 1 && record.value && record.value->size() >= 6) {
        item["coordinator_epoch"] = base::load_be<std::int32_t>(record.value->data() + 2);
    } else {
        show_bytes(item, "value", record.value);
    }
}

json::object show_record(const wire::Record& record, bool control) {
    json::object item{
        {"item", "record"}, {"offset", record.offset}, {"timestamp", record.timestamp_ms}};
    if (record.sequence >= 0) item["sequence"] = record.sequence;
    if (control) {
        show_control(item, record);
        return item;
    }
    show_bytes(item, "key", record.key);
    show_bytes(item, "value", record.value);
    if (record.headers.empty()) return item;
    json::array headers;
    for (const auto& header : record.headers) {
        json::object shown;
        show_bytes(shown, "key", base::as_bytes(header.key));
        show_bytes(shown, "value", header.value);
        headers.push_back(std::move(shown));
    }
    item["headers"] = std::move(headers);
    return item;
}

/// Walks files and gives items, each a flat object.
class Dumper {
public:
    Dumper(Volume& volume, const DumpOptions& options,
           const std::function<void(std::string_view)>& out)
        : volume_(volume), options_(options), out_(out), site_(registry_, "dump") {}

    Result<DumpSummary> run(const std::string& path) {
        if (auto names = volume_.list(path)) {
            tree(path, *names);
        } else {
            KAAS_TRY(volume_.open(path, OpenMode::kRead));
            one_file(path);
        }
        return summary_;
    }

private:
    void tree(const std::string& path, const std::vector<std::string>& names) {
        // Empty directories, of mode 0 once their owner is gone: nobody can list those.
        if (path.ends_with("__cluster/election") || path.ends_with("__sessions")) return;
        for (const auto& name : names) {
            std::string below = path.empty() ? name : fmt::format("{}/{}", path, name);
            if (auto inner = volume_.list(below)) {
                tree(below, *inner);
            } else {
                one_file(below);
            }
        }
    }

    void one_file(const std::string& path) {
        ++summary_.files;
        file_ = options_.name_prefix + path;
        if (options_.form == DumpOptions::Form::kText) out_(fmt::format("file: {}\n", file_));
        if (auto shown = show(path); !shown) damage(shown.error().context);
    }

    Result<void> show(const std::string& path) {
        if (path.ends_with(".log")) return show_log(path);
        if (path.ends_with(".index")) return show_index(path);
        if (path.ends_with(".timeindex")) return show_time_index(path);
        if (path.ends_with(".txnindex")) return show_transaction_index(path);
        if (path.ends_with(".snapshot")) return show_snapshot(path);
        if (path.ends_with(".jsonl")) return show_lines(path);
        if (path.ends_with(".journal")) return show_journal(path);
        if (name_in(path) == "kaas.json") return show_identity(path);
        if (name_in(path) == "kaas.lock") return show_lock(path);
        return fail(ErrorCode::kCorrupt, "not a file of a partition, by its name");
    }

    void item(const json::object& fields) {
        ++summary_.items;
        if (options_.form == DumpOptions::Form::kJson) {
            json::object whole{{"file", file_}};
            for (const auto& field : fields) whole.insert(field);
            out_(json::serialize(whole) + '\n');
            return;
        }
        std::string line;
        for (const auto& field : fields) {
            if (!line.empty()) line += "  ";
            const bool bare = field.key() == "item";
            if (!bare) line += fmt::format("{}: ", std::string_view(field.key()));
            line += bare ? std::string(field.value().as_string()) : json::serialize(field.value());
        }
        out_(line + '\n');
    }

    void damage(std::string_view why) {
        ++summary_.damages;
        item({{"item", "DAMAGE"}, {"why", why}});
    }

    /// Behind the last entry stands what was never committed, or what the file held before it was
    /// used again: no damage. Unless something behind it says that it was synced.
    Result<void> show_journal(const std::string& path) {
        const auto name = name_in(path);
        std::uint64_t number = 0;
        std::from_chars(name.data(), name.data() + name.size(), number);
        KAAS_TRY_ASSIGN(file, volume_.open(path, OpenMode::kRead));
        JournalFileReader reader(*file, number);
        std::uint64_t proven = 0;
        KAAS_TRY(reader.look_behind(
            0, [&](const JournalPlace& place) { proven = std::max(proven, place.synced); }));
        KAAS_TRY_ASSIGN(contents, read_journal_file(reader, proven));
        for (const auto& entry : contents.entries) {
            item({{"item", "entry"},
                  {"position", entry.position},
                  {"topic_id", entry.key.partition.topic.uuid.to_string()},
                  {"partition", entry.key.partition.partition.value()},
                  {"leader_epoch", entry.key.epoch.value()},
                  {"base_offset", entry.base.value()},
                  {"end_offset", entry.end.value()},
                  {"size", entry.bytes}});
            if (!entry.whole) damage(fmt::format("at byte {}: bad batches", entry.position));
        }
        for (const auto gap : contents.gaps) damage(fmt::format("at byte {}: no entry", gap));
        return {};
    }

    Result<void> show_log(const std::string& path) {
        KAAS_TRY_ASSIGN(file, volume_.open(path, OpenMode::kRead));
        KAAS_TRY_ASSIGN(size, file->size());
        std::vector<std::byte> bytes;
        for (std::uint64_t position = 0; position < size;) {
            auto bad = [&](std::string_view why) {
                return fail(ErrorCode::kCorrupt,
                            fmt::format("at byte {} of {}: {}", position, size, why));
            };
            bytes.resize(std::min<std::uint64_t>(wire::BatchHeader::kBytes, size - position));
            KAAS_TRY_ASSIGN(got, file->read_at(position, bytes));
            bytes.resize(got);
            auto header = wire::BatchHeader::parse(bytes);
            if (!header) return bad(header.error().context);
            if (header->size() > size - position) return bad("the file ends inside a batch");
            bytes.resize(header->size());
            KAAS_TRY_ASSIGN(whole, file->read_at(position, bytes));
            if (whole < bytes.size()) return bad("the file ends inside a batch");
            show_batch({.header = *header, .bytes = bytes}, position);
            position += bytes.size();
        }
        return {};
    }

    void show_batch(const wire::BatchView& batch, std::uint64_t position) {
        json::object shown = show_header(batch.header, position);
        auto crc = wire::check_crc(batch);
        shown["valid"] = crc.has_value();
        item(shown);
        if (!crc) {
            damage(fmt::format("at byte {}: {}", position, crc.error().context));
        } else if (options_.records) {
            show_records(batch, position);
        }
    }

    void show_records(const wire::BatchView& batch, std::uint64_t position) {
        wire::Record record;
        auto reader = wire::RecordReader::open(batch, site_);
        wire::Result<bool> more =
            reader ? wire::Result<bool>(true) : std::unexpected(reader.error());
        while (more && *more) {
            more = reader->next(record);
            if (more && *more) item(show_record(record, batch.header.control()));
        }
        if (!more)
            damage(
                fmt::format("records of the batch at byte {}: {}", position, more.error().context));
    }

    /// Calls `show_entry` with each entry of a file of fixed-size entries. It gives what is wrong
    /// with the entry, or an empty text; the first fault of a file is told, others would follow
    /// from it.
    template <class ShowEntry>
    Result<void> show_entries(const std::string& path, std::size_t entry_bytes,
                              ShowEntry show_entry) {
        KAAS_TRY_ASSIGN(text, read_whole(volume_, path, kSmallFileLimitBytes));
        auto bytes = base::as_bytes(text);
        std::size_t at = 0;
        bool said = false;
        for (; at + entry_bytes <= bytes.size(); at += entry_bytes) {
            const std::string_view fault = show_entry(bytes.data() + at);
            if (!fault.empty() && !std::exchange(said, true))
                damage(fmt::format("at byte {}: {}", at, fault));
        }
        if (at == bytes.size()) return {};
        return fail(ErrorCode::kCorrupt,
                    fmt::format("{} bytes behind the last entry", bytes.size() - at));
    }

    Result<void> show_index(const std::string& path) {
        std::int64_t base = base_offset_of(path);
        auto log = volume_.open(path.substr(0, path.size() - 6) + ".log", OpenMode::kRead);
        OffsetEntry last{-1, -1};
        return show_entries(path, OffsetEntry::kBytes, [&](const std::byte* from) {
            auto entry = OffsetEntry::decode(from);
            item({{"item", "index"},
                  {"offset", base + entry.relative_offset},
                  {"position", entry.position}});
            const auto before = std::exchange(last, entry);
            if (entry.relative_offset <= before.relative_offset ||
                entry.position <= before.position)
                return "an entry that does not lie behind the one before it";
            if (log && !fits(**log, entry, base)) return "no batch with this last offset is there";
            return "";
        });
    }

    /// Whether the log has the batch that `entry` tells of. Where the log is shorter, its end may
    /// have been lost in a crash: an index is only a hint, and its readers stop at the log's end.
    static bool fits(File& log, const OffsetEntry& entry, std::int64_t base) {
        std::vector<std::byte> bytes(wire::BatchHeader::kBytes);
        auto got = log.read_at(static_cast<std::uint64_t>(entry.position), bytes);
        if (!got || *got < bytes.size()) return true;
        auto header = wire::BatchHeader::parse(bytes);
        return header && header->last_offset() == base + entry.relative_offset;
    }

    Result<void> show_time_index(const std::string& path) {
        std::int64_t base = base_offset_of(path);
        TimeEntry last{std::numeric_limits<std::int64_t>::min(), 0};
        return show_entries(path, TimeEntry::kBytes, [&](const std::byte* from) {
            auto entry = TimeEntry::decode(from);
            item({{"item", "timeindex"},
                  {"timestamp", entry.timestamp_ms},
                  {"offset", base + entry.relative_offset}});
            const auto before = std::exchange(last, entry);
            const bool falls = entry.timestamp_ms < before.timestamp_ms ||
                               entry.relative_offset < before.relative_offset;
            return falls ? "an entry that lies before the one before it" : "";
        });
    }

    /// Apache `AbortedTxn`, version 0: 34 bytes.
    Result<void> show_transaction_index(const std::string& path) {
        return show_entries(path, 34, [&](const std::byte* from) {
            item({{"item", "aborted"},
                  {"version", base::load_be<std::int16_t>(from)},
                  {"producer_id", base::load_be<std::int64_t>(from + 2)},
                  {"first_offset", base::load_be<std::int64_t>(from + 10)},
                  {"last_offset", base::load_be<std::int64_t>(from + 18)},
                  {"last_stable_offset", base::load_be<std::int64_t>(from + 26)}});
            return "";
        });
    }

    Result<void> show_snapshot(const std::string& path) {
        KAAS_TRY_ASSIGN(text, read_whole(volume_, path, kSmallFileLimitBytes));
        KAAS_TRY_ASSIGN(producers, decode_snapshot(base::as_bytes(text)));
        for (const auto& [id, entry] : producers) {
            json::object shown{{"item", "producer"},
                               {"producer_id", id.value()},
                               {"producer_epoch", entry.epoch.value()},
                               {"coordinator_epoch", entry.coordinator_epoch},
                               {"last_timestamp", entry.last_timestamp_ms}};
            if (entry.transaction_start) {
                shown["transaction_start"] = entry.transaction_start->value();
            }
            json::array batches;
            for (const auto& batch : entry.batches()) {
                batches.push_back({{"first_sequence", batch.first_sequence()},
                                   {"last_sequence", batch.last_sequence},
                                   {"first_offset", batch.first_offset().value()},
                                   {"last_offset", batch.last_offset.value()},
                                   {"timestamp", batch.timestamp_ms}});
            }
            shown["batches"] = std::move(batches);
            item(shown);
        }
        return {};
    }

    Result<void> show_lines(const std::string& path) {
        KAAS_TRY_ASSIGN(text, read_whole(volume_, path, kSmallFileLimitBytes));
        KAAS_TRY_ASSIGN(file, parse_epoch_file(text, "the log"));
        for (std::size_t i = 0; i < file.lines.size(); ++i) {
            item({{"item", "line"},
                  {"position", file.offsets[i]},
                  {"line", std::move(file.lines[i])}});
        }
        const std::string_view end = std::string_view(text).substr(file.end);
        if (file.lines.empty() && !begins_epoch_log(end))
            return fail(ErrorCode::kCorrupt, "not the beginning of an epoch log");
        // Not a damage: a crash leaves such an end, and nothing in it ever counted.
        if (!end.empty())
            item({{"item", "torn end"}, {"position", file.end}, {"size", end.size()}});
        return {};
    }

    /// What the volume says of itself: which cluster it belongs to, in which format.
    Result<void> show_identity(const std::string& path) {
        KAAS_TRY_ASSIGN(text, read_whole(volume_, path, kSmallFileLimitBytes));
        boost::system::error_code error;
        auto value = json::parse(text, error);
        if (error || !value.is_object()) return fail(ErrorCode::kCorrupt, "not a JSON object");
        json::object shown{{"item", "identity"}};
        for (auto& field : value.get_object()) shown.insert(std::move(field));
        item(shown);
        return {};
    }

    /// The process that holds the volume, or held it last.
    Result<void> show_lock(const std::string& path) {
        KAAS_TRY_ASSIGN(text, read_whole(volume_, path, kSmallFileLimitBytes));
        if (!is_text(text)) return fail(ErrorCode::kCorrupt, "not text");
        item({{"item", "lock"}, {"pid", text}});
        return {};
    }

    Volume& volume_;
    const DumpOptions& options_;
    const std::function<void(std::string_view)>& out_;
    base::metrics::Registry registry_;
    wire::DecodeSite site_;
    std::string file_;
    DumpSummary summary_;
};

}  // namespace

Result<DumpSummary> dump(Volume& volume, const std::string& path, const DumpOptions& options,
                         const std::function<void(std::string_view)>& out) {
    return Dumper(volume, options, out).run(path);
}

}  // namespace kaas::storage
