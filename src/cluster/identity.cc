#include "cluster/identity.h"

#include "base/bytes.h"
#include "base/result.h"
#include "cluster/error.h"
#include "storage/error.h"
#include "storage/volume.h"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

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

}  // namespace

Result<std::optional<Identity>> read_identity(storage::Volume& volume) {
    auto text = storage::read_whole(volume, kFile, kMaxBytes);
    if (!text) {
        if (text.error().code == storage::ErrorCode::kNotFound) return std::nullopt;
        return failed(std::move(text).error());
    }
    boost::system::error_code wrong;
    const auto value = json::parse(*text, wrong);
    const auto* object = value.if_object();
    if (wrong || object == nullptr) return std::nullopt;  // its writer died
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
    return Identity{std::string(std::string_view(cluster->get_string())),
                    static_cast<std::int32_t>(format->get_int64())};
}

Result<void> write_identity(storage::Volume& volume, const Identity& identity) {
    KAAS_TRY_ASSIGN(present, read_identity(volume));
    if (present) return {};
    const auto text = json::serialize(json::object{{"format", identity.format},
                                                   {"cluster", identity.cluster_id}}) +
                      "\n";
    auto file = volume.create(kFile);
    if (!file && file.error().code == storage::ErrorCode::kExists) {
        file = volume.open(kFile, storage::OpenMode::kReadWrite);
    }
    if (!file) return failed(std::move(file).error());
    // Not synced: what a crash takes away of it, the next start puts back.
    const auto bytes = base::as_bytes(text);
    auto written = (*file)->write_at(0, {&bytes, 1});
    if (!written) return failed(std::move(written).error());
    return {};
}

}  // namespace kaas::cluster
