#include "storage/epoch_reader.h"

#include "base/result.h"
#include "storage/epoch_log.h"
#include "storage/error.h"
#include "storage/line_checksum.h"
#include "storage/volume.h"

#include <boost/json/parse.hpp>
#include <boost/json/stream_parser.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

namespace json = boost::json;

/// What is larger is no file of ours: a control log with 100,000 partitions takes a hundredth of
/// it, a slot with ten million offsets half.
constexpr std::size_t kFileLimitBytes = std::size_t{2} << 30;

std::unexpected<Error> corrupt(std::string_view name, std::size_t offset, std::string_view why) {
    return fail(ErrorCode::kCorrupt, fmt::format("{} at byte {}: {}", name, offset, why));
}

std::optional<json::object> parse_object(std::string_view text) {
    boost::system::error_code error;
    json::value value = json::parse(text, error);
    if (error || !value.is_object()) return std::nullopt;
    return std::move(value.as_object());
}

/// True when an object could begin like this: what is there of a line that was not written whole.
bool is_beginning(std::string_view text) {
    boost::system::error_code error;
    json::stream_parser parser;
    parser.write(text, error);
    return !error && text.starts_with('{');
}

bool is_blank(std::string_view text) {
    return text.find_first_not_of(" \t\r") == std::string_view::npos;
}

/// The value of `key` as a number of a file or an epoch; empty when it is none.
std::optional<std::int64_t> number_at(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    if (value == nullptr || !value->is_int64()) return std::nullopt;
    return value->as_int64();
}

std::string_view text_of(const json::value& value) {
    return value.is_string() ? std::string_view(value.as_string()) : std::string_view();
}

bool stamp_fits(const json::object& first, const EpochLogPath& path, std::int32_t epoch,
                std::uint32_t file) {
    const json::value* log = first.if_contains(kLogKey);
    if (log == nullptr || !log->is_object()) return false;
    const json::object& stamp = log->get_object();
    const json::value* kind = stamp.if_contains("kind");
    return kind != nullptr && text_of(*kind) == path.kind && number_at(stamp, "epoch") == epoch &&
           number_at(stamp, "file") == file;
}

/// One file's meaning.
struct Chapter {
    EpochState state;
    std::uint32_t next = 0;  ///< the file that goes on from here; 0 for none
};

/// What the log itself says in a line: what kind of line it is, and how much of its file was
/// fsynced before it was written.
struct Mark {
    std::string_view kind;
    std::uint64_t fsynced_bytes;
};

std::optional<Mark> mark_of(const json::object& line) {
    const json::value* log = line.if_contains(kLogKey);
    if (log == nullptr || !log->is_object() || log->get_object().size() != 1) return std::nullopt;
    const auto& [kind, bytes] = *log->get_object().begin();
    if (!bytes.is_int64() || bytes.get_int64() < 0) return std::nullopt;
    return Mark{.kind = kind, .fsynced_bytes = static_cast<std::uint64_t>(bytes.get_int64())};
}

/// Takes one line below the picture into `chapter`; gives what is wrong with it, if anything.
std::optional<std::string_view> take_line(json::object line, std::uint64_t offset,
                                          Chapter& chapter) {
    EpochState& state = chapter.state;
    if (state.released) return "a line behind the release";
    const auto mark = mark_of(line);
    if (!mark && line.contains(kLogKey)) return "not a mark of the log's own";
    const std::string_view name = mark ? mark->kind : "change";
    if (name == "next" && state.file == 1) {
        auto file = number_at(line, "file");
        if (!file || *file <= std::max(chapter.next, 1U) || *file > UINT32_MAX) {
            return "no file to go on with";
        }
        chapter.next = static_cast<std::uint32_t>(*file);
        return std::nullopt;
    }
    if (chapter.next != 0) return "a change behind the line that names the next file";

    auto kind = EpochLine::Kind::kChange;
    if (name == "synced") {
        kind = EpochLine::Kind::kSynced;
    } else if (name == "released") {
        kind = EpochLine::Kind::kReleased;
        state.released = true;
    } else if (name != "change") {
        return "a line of the log's own that this version does not know";
    }
    line.stable_erase(kLogKey);  // `name` was in there
    state.lines.push_back({.kind = kind, .object = std::move(line), .offset = offset});
    if (kind != EpochLine::Kind::kChange) {
        state.vouched_lines = state.lines.size();
        state.picture_vouched = true;
    }
    return std::nullopt;
}

/// Empty when the file is void: nothing in it ever counted.
Result<std::optional<Chapter>> read_chapter(Volume& volume, const EpochLogPath& path,
                                            std::int32_t epoch, std::uint32_t number,
                                            const AmendText& amend) {
    std::string name = path.file(epoch, number);
    KAAS_TRY_ASSIGN(text, read_whole(volume, name, kFileLimitBytes));
    if (amend) KAAS_TRY(amend(number, text));
    KAAS_TRY_ASSIGN(file, parse_epoch_file(text, name));
    if (file.lines.empty()) return std::optional<Chapter>();
    if (!stamp_fits(file.lines.front(), path, epoch, number)) {
        return corrupt(name, file.offsets.front(), "not the picture of this file");
    }
    Chapter chapter;
    chapter.state.epoch = epoch;
    chapter.state.file = number;
    chapter.state.end = file.end;
    chapter.state.picture = std::move(file.lines.front());
    chapter.state.picture.stable_erase(kLogKey);
    for (std::size_t i = 1; i < file.lines.size(); ++i) {
        if (auto wrong = take_line(std::move(file.lines[i]), file.offsets[i], chapter)) {
            return corrupt(name, file.offsets[i], *wrong);
        }
    }
    return std::optional(std::move(chapter));
}

/// A candidate as the walk leaves it.
struct Visited {
    std::optional<EpochState> state;  ///< empty: void, because we made it so or it was before
    bool was_there = true;            ///< its directory, before we came
};

/// Tries to be the first to create file 1 of an epoch, and leave it empty. Empty when somebody was
/// before us.
Result<std::optional<Visited>> close_epoch(Volume& volume, const EpochLogPath& path,
                                           std::int32_t epoch) {
    auto made = volume.make_directory(path.epoch_directory(epoch));
    const bool was_there = !made && made.error().code == ErrorCode::kExists;
    KAAS_TRY(unless(ErrorCode::kExists, std::move(made)));
    auto created = volume.create(path.file(epoch, 1));
    if (created) return Visited{.state = {}, .was_there = was_there};
    if (created.error().code == ErrorCode::kExists) return std::nullopt;
    return std::unexpected(created.error());
}

Result<Visited> read_or_close(const EpochLogPath& path, const EpochCandidate& candidate) {
    constexpr int kAttempts = 3;  // a cached absence, its refutation by EEXIST, and the true answer
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
        auto state = read_epoch(*candidate.volume, path, candidate.epoch);
        if (state && !*state && candidate.written) {
            return fail(ErrorCode::kNotFound,
                        fmt::format("{}: called written, and void", path.file(candidate.epoch, 1)));
        }
        if (state) return Visited{.state = std::move(*state)};
        if (state.error().code != ErrorCode::kNotFound || candidate.written)
            return std::unexpected(std::move(state).error());
        KAAS_TRY_ASSIGN(closed, close_epoch(*candidate.volume, path, candidate.epoch));
        if (closed) return std::move(*closed);
    }
    return fail(ErrorCode::kIo,
                fmt::format("{}: it exists and cannot be opened", path.file(candidate.epoch, 1)));
}

}  // namespace

Result<EpochFile> parse_epoch_file(std::string_view text, std::string_view name) {
    EpochFile file;
    std::optional<std::size_t> bad;
    for (std::size_t begin = 0; begin < text.size();) {
        // A NUL ends a line too: it stands where bytes were lost, and what is before and behind it
        // counts for itself.
        std::size_t stop = text.find_first_of(std::string_view("\n\0", 2), begin);
        std::string_view line = text.substr(begin, stop == text.npos ? stop : stop - begin);
        std::size_t next = stop == text.npos ? text.size() : stop + 1;
        if (auto object = parse_object(line)) {
            if (!checksum_holds(line, *object)) {
                return corrupt(name, begin,
                               "its checksum is not that of its text; delete the \"crc\" of a "
                               "line that was mended by hand");
            }
            object->stable_erase(kChecksumKey);
            if (!bad) {
                file.lines.push_back(std::move(*object));
                file.offsets.push_back(begin);
                file.end = next;
            } else if (file.lines.empty()) {
                return corrupt(name, *bad, "no picture, but a line follows");
            } else if (auto mark = mark_of(*object); mark && mark->fsynced_bytes > *bad) {
                return corrupt(name, *bad, "no JSON object, and it was fsynced: a later line says");
            }
        } else if (!bad && !is_blank(line)) {
            const bool ends = stop == text.npos || text[stop] == '\0';
            if (!ends || !is_beginning(line)) {
                return corrupt(name, begin, "no JSON object, and nothing that a crash leaves");
            }
            bad = begin;
        }
        if (!bad && stop != text.npos && text[stop] == '\0') bad = stop;
        begin = next;
    }
    return file;
}

Result<std::optional<EpochState>> read_epoch(Volume& volume, const EpochLogPath& path,
                                             std::int32_t epoch, const AmendText& amend) {
    KAAS_TRY_ASSIGN(first, read_chapter(volume, path, epoch, 1, amend));
    if (!first) return std::optional<EpochState>();
    while (first->next != 0) {
        auto current = read_chapter(volume, path, epoch, first->next, amend);
        if (current && !*current) {
            return corrupt(path.file(epoch, first->next), 0,
                           "named by file 1, and without a picture");
        }
        if (current) {
            // Whether or not the line in file 1 is durable yet: all that it replaces was, before
            // it.
            (*current)->state.picture_vouched = true;
            return std::optional(std::move((*current)->state));
        }
        if (current.error().code != ErrorCode::kNotFound) return std::unexpected(current.error());
        // Its owner may have gone on to another file and removed this one. Each round needs one
        // more roll; whoever may still be writing has been marked before us, so there is no end of
        // them.
        std::uint32_t missing = first->next;
        KAAS_TRY_ASSIGN(again, read_chapter(volume, path, epoch, 1, amend));
        if (!again || again->next == missing) return std::unexpected(current.error());
        first = std::move(again);
    }
    return std::optional(std::move(first->state));
}

Result<std::optional<TakenEpoch>> take_over(
    const EpochLogPath& path, std::span<const EpochCandidate> newest_first,
    const std::function<void(const EpochCandidate&)>& on_void) {
    for (const auto& candidate : newest_first) {
        KAAS_TRY_ASSIGN(visited, read_or_close(path, candidate));
        if (visited.state) {
            return std::optional(
                TakenEpoch{.volume = candidate.volume, .state = std::move(*visited.state)});
        }
        if (visited.was_there && on_void) on_void(candidate);
    }
    return std::optional<TakenEpoch>();
}

std::vector<EpochCandidate> candidates_below(Volume& volume, std::int32_t own_epoch,
                                             std::int32_t lowest, bool lowest_written) {
    std::vector<EpochCandidate> candidates;
    for (std::int32_t epoch = own_epoch - 1; epoch >= lowest; --epoch) {
        candidates.push_back(
            {.volume = &volume, .epoch = epoch, .written = lowest_written && epoch == lowest});
    }
    return candidates;
}

}  // namespace kaas::storage
