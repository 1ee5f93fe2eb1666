#include "cluster/controller_address.h"

#include "base/bytes.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/result.h"
#include "catalog/json_fields.h"
#include "cluster/error.h"
#include "storage/epoch_log.h"
#include "storage/error.h"
#include "storage/volume.h"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace kaas::cluster {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxBytes = 64 * 1024;
constexpr std::string_view kSuffix = ".json";

std::string path_of(base::ControllerEpoch epoch) {
    return std::string(kAddressDirectory) + "/" + storage::epoch_name(epoch.value()) +
           std::string(kSuffix);
}

std::optional<base::ControllerEpoch> epoch_of(std::string_view name) {
    if (!name.ends_with(kSuffix)) return std::nullopt;
    const auto epoch = storage::parse_epoch_name(name.substr(0, name.size() - kSuffix.size()));
    if (!epoch) return std::nullopt;
    return base::ControllerEpoch(*epoch);
}

/// Empty for one whose writer has not come to its end.
std::optional<ControllerAddress> parse(std::string_view text, base::ControllerEpoch epoch) {
    boost::system::error_code wrong;
    const auto value = json::parse(text, wrong);
    if (wrong) return std::nullopt;
    catalog::JsonFields fields(value, "controller's address");
    ControllerAddress address{.epoch = epoch,
                              .broker = base::BrokerId(fields.integer<std::int32_t>("broker")),
                              .host = fields.text("host"),
                              .port = fields.integer<std::uint16_t>("port"),
                              .cluster_id = fields.text("cluster")};
    if (!fields.fault()) return std::nullopt;
    return address;
}

storage::Result<void> write(storage::Volume& volume, const ControllerAddress& address) {
    KAAS_TRY_ASSIGN(file, volume.create(path_of(address.epoch)));
    const auto text = json::serialize(json::object{{"broker", address.broker.value()},
                                                   {"host", address.host},
                                                   {"port", address.port},
                                                   {"cluster", address.cluster_id}}) +
                      "\n";
    const auto bytes = base::as_bytes(text);
    KAAS_TRY(file->write_at(0, {&bytes, 1}));
    KAAS_TRY(file->sync());
    return volume.sync_directory(std::string(kAddressDirectory));
}

}  // namespace

void tell_address(storage::Volume& volume, const ControllerAddress& address) {
    auto told = write(volume, address);
    if (!told) {
        base::log::warn("cluster", "other brokers are not told where the controller is: {}",
                        told.error().context);
        return;
    }
    auto names = volume.list(std::string(kAddressDirectory));
    if (!names) return;
    for (const auto& name : *names) {
        const auto epoch = epoch_of(name);
        if (!epoch || *epoch >= address.epoch) continue;
        [[maybe_unused]] const auto gone = volume.unlink(path_of(*epoch));  // one that stays is old
    }
}

Result<std::optional<ControllerAddress>> newest_address(storage::Volume& volume) {
    auto names = volume.list(std::string(kAddressDirectory));
    if (!names) return failed(std::move(names).error());
    std::optional<base::ControllerEpoch> newest;
    for (const auto& name : *names) {
        const auto epoch = epoch_of(name);
        if (epoch && (!newest || *epoch > *newest)) newest = epoch;
    }
    if (!newest) return std::nullopt;
    auto text = storage::read_whole(volume, path_of(*newest), kMaxBytes);
    if (!text && text.error().code == storage::ErrorCode::kNotFound) return std::nullopt;
    if (!text) return failed(std::move(text).error());
    return parse(*text, *newest);
}

}  // namespace kaas::cluster
