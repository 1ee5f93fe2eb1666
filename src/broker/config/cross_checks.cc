#include "broker/config/cross_checks.h"

#include "base/result.h"
#include "catalog/config/error.h"
#include "catalog/config/topic_config.h"
#include "catalog/config/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <expected>
#include <string>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using catalog::ConfigFault;
using catalog::ConfigResult;
using catalog::ConfigValues;

std::unexpected<catalog::ConfigError> conflict(std::string why) {
    return base::fail(ConfigFault::kConflict, std::move(why));
}

ConfigResult<void> check_mode(const ConfigValues& values) {
    const auto& mode = values.get<std::string>("kaas.mode");
    if (mode != "standalone" && mode != "volume") {
        return conflict(fmt::format(
            "kaas.mode={} is not part of this version; use standalone or volume", mode));
    }
    const auto& roles = values.get<std::vector<std::string>>("process.roles");
    if (std::ranges::find(roles, "broker") == roles.end()) {
        return conflict(
            "process.roles must contain broker: kaas has no process that is a controller alone");
    }
    return {};
}

/// What was to protect the broker must not be dropped in silence. Listeners are refused where they
/// are read (`load_config`); the rest of SASL and TLS protects nothing without such a listener.
ConfigResult<void> check_security(const ConfigValues& values) {
    const auto& authorizer = values.get<std::string>("authorizer.class.name");
    if (authorizer.empty()) return {};
    return conflict(
        fmt::format("authorizer.class.name={} asks for access control, which this version of kaas "
                    "does not serve yet: everybody who can connect may do everything; to start all "
                    "the same, take the setting out",
                    authorizer));
}

/// Times and counts that topics inherit must be good for every topic.
ConfigResult<void> check_log(const ConfigValues& values) {
    ConfigValues topic = catalog::inherited_topic_values(values);
    auto at_least = [&](const char* name, std::int64_t least) {
        return topic.get<std::int64_t>(name) >= least;
    };
    if (!at_least("segment.ms", 1)) return conflict("log.roll.ms must be at least 1");
    if (!at_least("segment.jitter.ms", 0)) return conflict("log.roll.jitter.ms must be at least 0");
    if (topic.get<std::int64_t>("retention.ms") == 0) {
        return conflict("log.retention.ms must be at least 1, or -1 for no limit");
    }
    if (auto defaults = catalog::resolve_topic_config({}, values); !defaults) {
        return conflict(
            fmt::format("what topics inherit does not fit together: {}", defaults.error().context));
    }
    return {};
}

ConfigResult<void> check_cleaner(const ConfigValues& values) {
    constexpr std::int64_t kLeastPerThread = 1024 * 1024;
    auto memory = values.get<std::int64_t>("log.cleaner.dedupe.buffer.size");
    auto threads = values.get<std::int32_t>("log.cleaner.threads");
    if (threads > 0 && memory / threads <= kLeastPerThread) {
        return conflict(fmt::format(
            "log.cleaner.dedupe.buffer.size ({}) must be more than 1 MiB for each of {} "
            "log.cleaner.threads",
            memory, threads));
    }
    return {};
}

ConfigResult<void> check_network(const ConfigValues& values) {
    auto queued = values.get<std::int64_t>("queued.max.request.bytes");
    auto largest = values.get<std::int32_t>("socket.request.max.bytes");
    if (queued > 0 && queued < largest) {
        return conflict(fmt::format(
            "queued.max.request.bytes ({}) must hold one request of socket.request.max.bytes "
            "({})",
            queued, largest));
    }
    auto idle = values.get<std::int64_t>("connections.max.idle.ms");
    auto delay = values.get<std::int32_t>("connection.failed.authentication.delay.ms");
    if (idle >= 0 && delay >= idle) {
        return conflict(
            fmt::format("connection.failed.authentication.delay.ms ({}) must be less than "
                        "connections.max.idle.ms ({})",
                        delay, idle));
    }
    bool none_per_ip = values.get<std::int32_t>("max.connections.per.ip") == 0;
    if (none_per_ip && values.get<std::string>("max.connections.per.ip.overrides").empty()) {
        return conflict(
            "max.connections.per.ip=0 lets nobody in: name those who may in "
            "max.connections.per.ip.overrides");
    }
    return {};
}

ConfigResult<void> check_heartbeats(const ConfigValues& values) {
    const auto interval = values.get<std::int32_t>("broker.heartbeat.interval.ms");
    const auto timeout = values.get<std::int32_t>("broker.session.timeout.ms");
    if (interval < timeout) return {};
    return conflict(fmt::format(
        "broker.heartbeat.interval.ms ({}) must be less than broker.session.timeout.ms ({})",
        interval, timeout));
}

}  // namespace

ConfigResult<void> check_broker_values(const ConfigValues& values) {
    KAAS_TRY(check_mode(values));
    KAAS_TRY(check_security(values));
    KAAS_TRY(check_log(values));
    KAAS_TRY(check_cleaner(values));
    KAAS_TRY(check_network(values));
    KAAS_TRY(check_heartbeats(values));
    return {};
}

}  // namespace kaas::broker
