#include "cluster/identity.h"

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "cluster/error.h"
#include "storage/error.h"
#include "storage/line_checksum.h"
#include "storage/volume.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/stream_parser.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace kaas::cluster {
namespace {

namespace json = boost::json;

constexpr const char* kFile = "kaas.json";
constexpr std::size_t kMaxBytes = 64 * 1024;

json::object to_json(const Identity& identity) {
    json::object object{{"format", identity.format}, {"cluster", identity.cluster_id}};
    if (!identity.volume.empty()) object.emplace("volume", identity.volume);
    if (!identity.cluster_volume.empty()) object.emplace("cluster_volume", identity.cluster_volume);
    if (identity.broker) object.emplace("broker", identity.broker->value());
    if (identity.shared) object.emplace("shared", true);
    return object;
}

/// Empty when it is not there, or no text.
std::string text_of(const json::value* value) {
    if (value == nullptr || !value->is_string()) return {};
    return std::string(std::string_view(value->get_string()));
}

std::unexpected<Error> damaged(const storage::Volume& volume, std::size_t position,
                               const std::string& why) {
    return fail(ErrorCode::kStorage, fmt::format("{}/{} at byte {}: {}; bring it back from a copy",
                                                 volume.root(), kFile, position, why));
}

/// Empty when its writer died: it is nothing, or begins and does not end.
Result<std::optional<json::object>> parse_sign(const storage::Volume& volume,
                                               std::string_view text) {
    text = text.substr(0, text.find_last_not_of('\0') + 1);
    const bool has_end = text.ends_with('\n');
    text = text.substr(0, text.find_last_not_of(" \r\n") + 1);
    if (text.empty()) return std::nullopt;
    boost::system::error_code wrong;
    json::stream_parser parser;
    const auto position = parser.write(text.data(), text.size(), wrong);
    if (wrong) return damaged(volume, position, wrong.message());
    if (!parser.done() && !has_end) return std::nullopt;
    if (!parser.done()) return damaged(volume, position, "incomplete JSON");
    auto value = parser.release();
    if (!value.is_object()) return damaged(volume, 0, "not a JSON object");
    if (!storage::checksum_holds(text, value.get_object())) {
        return damaged(volume, 0,
                       "its checksum is not that of its text (delete the \"crc\" if it was mended "
                       "by hand)");
    }
    return std::move(value.get_object());
}

}  // namespace

Result<std::optional<Identity>> read_identity(storage::Volume& volume) {
    auto text = storage::read_whole(volume, kFile, kMaxBytes);
    if (!text) {
        if (text.error().code == storage::ErrorCode::kNotFound) return std::nullopt;
        return failed(std::move(text).error());
    }
    KAAS_TRY_ASSIGN(parsed, parse_sign(volume, *text));
    if (!parsed) return std::nullopt;
    const auto* object = &*parsed;
    const auto* format = object->if_contains("format");
    const auto* cluster = object->if_contains("cluster");
    if (format == nullptr || !format->is_int64() || cluster == nullptr || !cluster->is_string()) {
        return fail(ErrorCode::kStorage,
                    volume.root() + "/" + kFile + " was not written by kaas: move it away");
    }
    if (format->get_int64() > kVolumeFormat) {
        return fail(ErrorCode::kNewerFormat,
                    volume.root() + " has format " + std::to_string(format->get_int64()) +
                        ", written by a later version of kaas; this one knows up to format " +
                        std::to_string(kVolumeFormat));
    }
    Identity identity{.cluster_id = text_of(cluster),
                      .format = static_cast<std::int32_t>(format->get_int64()),
                      .volume = text_of(object->if_contains("volume")),
                      .cluster_volume = text_of(object->if_contains("cluster_volume"))};
    const auto* broker = object->if_contains("broker");
    if (broker != nullptr && broker->is_int64() &&
        std::in_range<std::int32_t>(broker->get_int64())) {
        identity.broker = base::BrokerId(static_cast<std::int32_t>(broker->get_int64()));
    }
    const auto* shared = object->if_contains("shared");
    identity.shared = shared != nullptr && shared->is_bool() && shared->get_bool();
    return identity;
}

Result<void> write_identity(storage::Volume& volume, const Identity& identity) {
    KAAS_TRY_ASSIGN(present, read_identity(volume));
    if (present) return {};
    auto file = volume.create(kFile);
    if (!file && file.error().code == storage::ErrorCode::kExists) {  // a torn one
        if (auto gone = volume.unlink(kFile); !gone) return failed(std::move(gone).error());
        file = volume.create(kFile);
    }
    if (!file) return failed(std::move(file).error());
    const auto text = storage::with_checksum(json::serialize(to_json(identity))) + "\n";
    const auto bytes = base::as_bytes(text);
    auto done = (*file)->write_at(0, {&bytes, 1});
    if (done) done = (*file)->sync();
    if (done) done = volume.sync_directory("");
    if (!done) return failed(std::move(done).error());
    return {};
}

}  // namespace kaas::cluster
