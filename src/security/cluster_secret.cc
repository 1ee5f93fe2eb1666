#include "security/cluster_secret.h"

#include "base/base64.h"
#include "base/bytes.h"
#include "base/result.h"
#include "security/crypto.h"
#include "security/error.h"
#include "storage/error.h"
#include "storage/line_checksum.h"
#include "storage/volume.h"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/system/error_code.hpp>
#include <fmt/format.h>

#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace kaas::security {
namespace {

namespace json = boost::json;

constexpr const char* kDirectory = "__cluster";
constexpr const char* kKey = "secret";
constexpr std::size_t kSecretBytes = 32;
constexpr std::size_t kFileBytesMax = 4096;
/// Each number more is a broker that died, or stood still, within one write.
constexpr int kNumberMax = 1000;

std::string path_of(int number) { return fmt::format("{}/secret-{}", kDirectory, number); }

std::unexpected<Error> failed(storage::Error error) {
    return fail(ErrorCode::kStorage, std::move(error.context));
}

/// Empty when the line is not whole.
std::optional<std::string> parse(std::string_view line) {
    if (!line.ends_with('\n')) return std::nullopt;
    line.remove_suffix(1);
    boost::system::error_code wrong;
    const auto value = json::parse(line, wrong);
    if (wrong || !value.is_object() || !storage::checksum_holds(line, value.get_object())) {
        return std::nullopt;
    }
    const auto* secret = value.get_object().if_contains(kKey);
    if (secret == nullptr || !secret->is_string() || secret->get_string().empty()) {
        return std::nullopt;
    }
    return std::string(std::string_view(secret->get_string()));
}

storage::Result<std::string> write(storage::Volume& volume, storage::File& file) {
    auto secret = base::to_base64(random_bytes(kSecretBytes));
    const auto line = storage::with_checksum(json::serialize(json::object{{kKey, secret}})) + "\n";
    const auto bytes = base::as_bytes(line);
    KAAS_TRY(file.write_at(0, {&bytes, 1}));
    KAAS_TRY(file.sync());
    KAAS_TRY(volume.sync_directory(kDirectory));
    return secret;
}

/// Empty when nobody has finished it.
storage::Result<std::optional<std::string>> read(storage::Volume& volume, int number) {
    KAAS_TRY_ASSIGN(line, storage::read_whole(volume, path_of(number), kFileBytesMax));
    auto secret = parse(line);
    if (!secret) return std::nullopt;
    // What was read may not be on disk yet, and is about to count.
    KAAS_TRY_ASSIGN(file, volume.open(path_of(number), storage::OpenMode::kReadWrite));
    KAAS_TRY(file->sync());
    return secret;
}

bool is_directory(storage::Volume& volume, int number) {
    return volume.hold(path_of(number)).has_value();
}

/// True when the secret before `number` counts, for good; false when another has taken its place.
storage::Result<bool> seal(storage::Volume& volume, int number) {
    auto made = volume.make_directory(path_of(number));
    if (!made && made.error().code != storage::ErrorCode::kExists) {
        return std::unexpected(std::move(made).error());
    }
    if (!made && !is_directory(volume, number)) return false;
    KAAS_TRY(volume.sync_directory(kDirectory));
    return true;
}

/// The secret of one number; empty when it is void. Makes it if there is none.
Result<std::optional<std::string>> make_or_read(storage::Volume& volume, int number) {
    auto file = volume.create_private(path_of(number));
    if (file) {
        auto written = write(volume, **file);
        if (!written) return failed(std::move(written).error());
        return std::move(*written);
    }
    if (file.error().code != storage::ErrorCode::kExists) return failed(std::move(file).error());
    // Only after a number that looked torn: its writer was slow, and has finished.
    const bool is_seal = number > 1 && is_directory(volume, number);
    auto found = read(volume, is_seal ? number - 1 : number);
    if (!found) return failed(std::move(found).error());
    if (is_seal && !*found) {
        return fail(ErrorCode::kDamaged,
                    fmt::format("{}/{} has lost what it said; bring it back, or stop all brokers "
                                "and remove it and {}",
                                volume.root(), path_of(number - 1), path_of(number)));
    }
    return std::move(*found);
}

}  // namespace

Result<std::string> cluster_secret(storage::Volume& volume) {
    auto ready = storage::make_directory_if_missing(volume, kDirectory);
    if (ready) ready = volume.sync_directory("");
    if (!ready) return failed(std::move(ready).error());
    for (int number = 1; number <= kNumberMax; ++number) {
        KAAS_TRY_ASSIGN(secret, make_or_read(volume, number));
        if (!secret) continue;
        if (is_directory(volume, number)) return *secret;
        auto counts = seal(volume, number + 1);
        if (!counts) return failed(std::move(counts).error());
        if (*counts) return *secret;
    }
    return fail(ErrorCode::kDamaged, fmt::format("{}: {} secrets were begun and none finished",
                                                 volume.root(), kNumberMax));
}

}  // namespace kaas::security
