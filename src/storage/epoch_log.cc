#include "storage/epoch_log.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/result.h"
#include "storage/error.h"
#include "storage/line_checksum.h"
#include "storage/session_check.h"
#include "storage/volume.h"

#include <boost/json/monotonic_resource.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace kaas::storage {
namespace {

namespace json = boost::json;

/// What the log itself says in a line: what kind of line it is, and how much was fsynced before it.
json::value own_mark(std::string_view kind, std::uint64_t fsynced_bytes) {
    return json::object{{kind, fsynced_bytes}};
}

/// Whether the text reads back as one JSON object that leaves our own keys alone: a string that is
/// not UTF-8, or too deep a nesting, would make a line that nobody can read, and with it lose all
/// that stands behind it.
Result<void> check_readable(std::string_view text, bool keys_are_ours) {
    std::array<unsigned char, 4096> scratch;
    json::monotonic_resource memory(scratch.data(), scratch.size());
    boost::system::error_code error;
    const auto value = json::parse(text, error, &memory);
    if (error) return fail(ErrorCode::kUnwritable, error.message());
    if (!text.starts_with('{') || !text.ends_with('}') || text.contains('\n'))
        return fail(ErrorCode::kUnwritable, "not the text of one object in one line");
    const auto& object = value.get_object();
    if (object.contains(kChecksumKey) || (!keys_are_ours && object.contains(kLogKey)))
        return fail(ErrorCode::kUnwritable, "it has a key of the log's own");
    return {};
}

/// The text of an object with our own key in front of its own.
std::string with_mark(const json::value& log, const std::string& object) {
    const auto* separator = object == "{}" ? "" : ",";
    return fmt::format(R"({{"{}":{}{}{})", kLogKey, json::serialize(log), separator,
                       std::string_view(object).substr(1));
}

/// The object as one line, with our own key, if there is one, in front of the caller's.
Result<std::string> to_line(json::value log, const json::object& callers) {
    KAAS_ASSERT(!callers.contains(kLogKey) && !callers.contains(kChecksumKey));
    std::string line;
    if (log.is_null()) {
        line = json::serialize(callers);
    } else {
        json::object all;
        all.reserve(callers.size() + 1);
        all.emplace(kLogKey, std::move(log));
        for (const auto& member : callers) all.insert(member);
        line = json::serialize(all);
    }
    // The serializer does not look at what it writes.
    KAAS_TRY(check_readable(line, true));
    return with_checksum(std::move(line)) + '\n';
}

Result<void> write(File& file, std::uint64_t offset, std::string_view text) {
    base::ByteView piece = base::as_bytes(text);
    return file.write_at(offset, {&piece, 1});
}

std::string join(const std::string& directory, const std::string& name) {
    return directory.empty() ? name : fmt::format("{}/{}", directory, name);
}

}  // namespace

std::string epoch_name(std::int32_t epoch) {
    return fmt::format("{:08x}", static_cast<std::uint32_t>(epoch));
}

std::optional<std::int32_t> parse_epoch_name(std::string_view name) {
    std::int32_t epoch = 0;
    auto [end, wrong] = std::from_chars(name.data(), name.data() + name.size(), epoch, 16);
    if (wrong != std::errc() || end != name.data() + name.size()) return std::nullopt;
    if (epoch < 0 || epoch_name(epoch) != name) return std::nullopt;
    return epoch;
}

std::string EpochLogPath::epoch_directory(std::int32_t epoch) const {
    return join(directory, epoch_name(epoch));
}

std::string EpochLogPath::file(std::int32_t epoch, std::uint32_t number) const {
    return fmt::format("{}/{}-{}.jsonl", epoch_directory(epoch), kind, number);
}

EpochLog::EpochLog(Volume& volume, EpochLogPath path, std::int32_t epoch, EpochLogOptions options)
    : volume_(&volume), path_(std::move(path)), epoch_(epoch), options_(options) {}

Result<EpochLog> EpochLog::create(Volume& volume, EpochLogPath path, std::int32_t epoch,
                                  const json::object& picture, EpochLogOptions options) {
    KAAS_ASSERT(epoch >= 0);
    EpochLog log(volume, std::move(path), epoch, options);
    KAAS_TRY_ASSIGN(line, log.picture_line(1, picture));
    if (options.directory == EpochLogOptions::Directory::kMake) {
        KAAS_TRY(volume.make_directory(log.path_.epoch_directory(epoch)));
    }
    KAAS_TRY_ASSIGN(started, log.start_file(1, line, options.syncs));
    KAAS_TRY(sync_directory(volume, log.path_.directory, options.syncs));
    log.file_ = std::move(started.file);
    log.length_ = log.picture_bytes_ = log.fsynced_ = log.told_ = started.length;
    return log;
}

Result<std::string> EpochLog::picture_line(std::uint32_t number,
                                           const json::object& picture) const {
    json::object stamp{{"kind", path_.kind}, {"epoch", epoch_}, {"file", number}};
    return to_line(std::move(stamp), picture);
}

Result<EpochLog::Started> EpochLog::start_file(std::uint32_t number, const std::string& line,
                                               Syncs syncs) {
    KAAS_TRY_ASSIGN(file, volume_->create(path_.file(epoch_, number)));
    KAAS_TRY(write(*file, 0, line));
    KAAS_TRY(sync_file(*file, syncs));
    KAAS_TRY(sync_directory(*volume_, path_.epoch_directory(epoch_), syncs));
    return Started{.file = std::move(file), .length = line.size()};
}

Result<void> EpochLog::append(std::span<const json::object> changes) {
    KAAS_TRY(still_good());
    std::string lines;
    for (const auto& change : changes) {
        const bool tells = lines.empty() && told_ < fsynced_;
        KAAS_TRY_ASSIGN(line, to_line(tells ? own_mark("change", fsynced_) : nullptr, change));
        lines += line;
    }
    return write_changes(lines);
}

Result<void> EpochLog::append_text(std::span<const std::string> changes, std::string* written) {
    KAAS_TRY(still_good());
    std::string lines;
    for (const auto& change : changes) {
        KAAS_TRY(check_readable(change, false));
        const bool tells = lines.empty() && told_ < fsynced_;
        lines += with_checksum(tells ? with_mark(own_mark("change", fsynced_), change) : change);
        lines += '\n';
    }
    KAAS_TRY(write_changes(lines));
    if (written != nullptr) *written += lines;
    return {};
}

Result<void> EpochLog::write_changes(const std::string& lines) {
    if (lines.empty()) return {};
    KAAS_TRY(write_lines(lines));
    changes_end_ = length_;
    unvouched_ = true;
    return {};
}

Result<void> EpochLog::sync() {
    KAAS_TRY(still_good());
    if (!has_unsynced()) return {};
    KAAS_TRY(end_on_error(file_->sync()));
    fsynced_ = length_;
    return {};
}

EpochLog::Unsynced EpochLog::unsynced() const {
    if (ended() || !has_unsynced_changes()) return {};
    return {.file = file_, .number = number_, .end = length_};
}

Result<void> EpochLog::note_synced(const Unsynced& what, Result<void> outcome) {
    KAAS_TRY(still_good());
    // A roll has synced all of that file before.
    if (what.number != number_) return {};
    KAAS_TRY(end_on_error(std::move(outcome)));
    fsynced_ = std::max(fsynced_, what.end);
    return {};
}

Result<void> EpochLog::append_synced(const json::object& facts, std::string* written) {
    KAAS_TRY(still_good());
    if (has_unsynced_changes()) KAAS_TRY(sync());
    KAAS_TRY_ASSIGN(line, to_line(own_mark("synced", fsynced_), facts));
    KAAS_TRY(write_lines(line));
    if (written != nullptr) *written += line;
    unvouched_ = false;
    return {};
}

Result<void> EpochLog::release(const json::object& facts, Syncs syncs) {
    KAAS_TRY(still_good());
    if (syncs == Syncs::kNow) KAAS_TRY(sync());
    fsynced_ = length_;
    KAAS_TRY_ASSIGN(line, to_line(own_mark("released", fsynced_), facts));
    KAAS_TRY(write_lines(line));
    if (syncs == Syncs::kNow) KAAS_TRY(sync());
    ended_by_ = std::make_unique<const Error>(
        ErrorCode::kClosed, fmt::format("{}: released", path_.epoch_directory(epoch_)));
    file_.reset();
    return {};
}

bool EpochLog::wants_roll() const {
    return !ended() &&
           length_ - picture_bytes_ > std::max(picture_bytes_, options_.roll_floor_bytes);
}

Result<void> EpochLog::roll(const json::object& picture) {
    KAAS_TRY(still_good());
    KAAS_TRY_ASSIGN(line, picture_line(number_ + 1, picture));
    // A reader may see the line that names the next file before that line is durable. It trusts the
    // picture then, so what a crash would fall back to must say the same.
    KAAS_TRY(sync());
    KAAS_TRY(end_on_error(wake()));
    auto started = start_file(number_ + 1, line, Syncs::kNow);
    if (!started) return end_on_error(std::unexpected(started.error()));
    KAAS_TRY(end_on_error(name_next_file(number_ + 1)));
    if (number_ > 1) superseded_.push_back(number_);
    file_ = std::move(started->file);
    length_ = picture_bytes_ = fsynced_ = told_ = started->length;
    changes_end_ = 0;
    ++number_;
    unvouched_ = false;  // the line in file 1 vouches for the picture
    return {};
}

/// Puts the line into file 1 that makes `number` the current file. Durable before that file takes a
/// change: a change there must not be missed by a taker who reads file 1.
Result<void> EpochLog::name_next_file(std::uint32_t number) {
    KAAS_TRY_ASSIGN(line, to_line(own_mark("next", first_file_length_), {{"file", number}}));
    std::unique_ptr<File> reopened;
    File* first = file_.get();
    if (number_ == 1) {
        first_file_length_ = length_;
    } else {
        // Not kept open: thousands of logs have one, and rolls are rare.
        KAAS_TRY_ASSIGN(file, volume_->open(path_.file(epoch_, 1), OpenMode::kReadWrite));
        reopened = std::move(file);
        first = reopened.get();
    }
    KAAS_TRY(write(*first, first_file_length_, line));
    KAAS_TRY(first->sync());
    first_file_length_ += line.size();
    return {};
}

Result<void> EpochLog::remove_superseded(SessionCheck& session) {
    if (superseded_.empty()) return {};
    KAAS_TRY(session.confirm());
    while (!superseded_.empty()) {
        KAAS_TRY(
            unless(ErrorCode::kNotFound, volume_->unlink(path_.file(epoch_, superseded_.back()))));
        superseded_.pop_back();
    }
    return {};
}

void EpochLog::rest() {
    if (!has_unsynced() && !ended()) file_.reset();
}

Result<void> EpochLog::wake() {
    if (file_ != nullptr) return {};
    KAAS_TRY_ASSIGN(file, volume_->open(path_.file(epoch_, number_), OpenMode::kReadWrite));
    file_ = std::move(file);
    return {};
}

Result<void> EpochLog::write_lines(const std::string& lines) {
    KAAS_TRY(end_on_error(wake()));
    KAAS_TRY(end_on_error(write(*file_, length_, lines)));
    length_ += lines.size();
    told_ = fsynced_;
    return {};
}

Result<void> EpochLog::end_on_error(Result<void> result) {
    if (!result) ended_by_ = std::make_unique<const Error>(result.error());
    return result;
}

Result<void> EpochLog::still_good() const {
    if (ended_by_) return std::unexpected(*ended_by_);
    return {};
}

Result<void> remove_epoch(Volume& volume, const EpochLogPath& path, std::int32_t epoch,
                          SessionCheck& session) {
    std::string directory = path.epoch_directory(epoch);
    auto names = volume.list(directory);
    if (!names && names.error().code == ErrorCode::kNotFound) return {};
    if (!names) return std::unexpected(names.error());

    KAAS_TRY(session.confirm());
    std::string first = path.file(epoch, 1);
    for (const auto& name : *names) {
        std::string entry = join(directory, name);
        if (entry == first) continue;
        KAAS_TRY(remove_tree(volume, entry));
    }
    // Only now: a crash must not bring back what stood beside a first file that is gone.
    KAAS_TRY(volume.sync_directory(directory));
    KAAS_TRY(unless(ErrorCode::kNotFound, volume.unlink(first)));
    return volume.remove_directory(directory);
}

}  // namespace kaas::storage
