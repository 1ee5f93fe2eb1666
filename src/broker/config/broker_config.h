#pragma once

#include "base/ids.h"
#include "base/log.h"
#include "broker/config/listeners.h"
#include "catalog/config/broker_settings.h"
#include "catalog/config/describe.h"
#include "catalog/config/error.h"
#include "catalog/config/values.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::broker {

/// A directory for partitions.
struct LogDir {
    std::string name;          ///< how the assignment calls it; "default" is the first of log.dirs
    std::string path;          ///< absolute
    bool name_chosen = false;  ///< kaas.volume.<name>; else the directory may remember another one
    std::map<std::string, std::string> labels{};
    bool default_eligible = true;  ///< takes partitions of topics that ask for no volume

    bool cordoned = false;  ///< named in cordoned.log.dirs

    friend bool operator==(const LogDir&, const LogDir&) = default;
};

/// Connections that an address may keep open, where it is not `max.connections.per.ip`.
using ConnectionOverrides = std::map<std::string, std::int32_t>;

struct HostPort {
    std::string host;  ///< without brackets
    std::uint16_t port = 0;

    friend bool operator==(const HostPort&, const HostPort&) = default;
};

struct HealthAddress {
    std::string host;
    std::uint16_t port = 0;
    bool is_default =
        false;  ///< nobody asked for it: in standalone, a port that is taken is only a warning

    friend bool operator==(const HealthAddress&, const HealthAddress&) = default;
};

/// The listener for other brokers of the cluster.
struct InternalListenerConfig {
    HostPort bind;        ///< an empty host means every interface
    HostPort advertised;  ///< port 0 means the port that is bound

    friend bool operator==(const InternalListenerConfig&, const InternalListenerConfig&) = default;
};

/// Everything a broker is told before it starts: typed, checked, complete.
/// Thread: any, it never changes. What is set dynamically comes on top of it elsewhere.
struct BrokerConfig {
    catalog::BrokerSettings settings;  ///< every config that counts, by its name with underscores
    catalog::ConfigValues
        values;  ///< every known config, for DescribeConfigs and what topics inherit
    catalog::ConfigMap given{};  ///< what was set, as it was written, families included

    base::BrokerId node_id{};
    std::vector<Listener> listeners{};  ///< where to listen
    std::vector<Listener>
        advertised{};  ///< what clients are told, one for each of `listeners` or fewer;
                       ///< port 0 means the port that the listener of that name gets
    std::vector<LogDir> log_dirs{};  ///< never empty
    ConnectionOverrides connection_overrides{};
    std::optional<InternalListenerConfig> internal{};  ///< none in standalone mode
    std::optional<HealthAddress> health{};
    base::log::Options log{};
    bool ephemeral = false;  ///< nothing is synced: the data dies with the process
};

/// Where a configuration comes from, as yet unread.
struct ConfigInputs {
    std::optional<std::string> file{};  ///< content of the file of `--config`
    std::string file_name{};            ///< for messages
    std::vector<std::pair<std::string, std::string>>
        environment{};                           ///< name and value of every variable
    std::vector<std::string> overrides{};        ///< key=value, in the order of the command line
    std::optional<std::string> ephemeral_dir{};  ///< `--ephemeral`: takes the place of log.dirs
    std::string machine_name =
        "localhost";  ///< stands in for an empty host in what clients are told
};

struct LoadedConfig {
    BrokerConfig config;
    std::vector<std::string> notes;     ///< accepted without meaning: said once at start
    std::vector<std::string> warnings;  ///< variables that mean nothing
};

/// Reads, merges (file, environment, overrides: the later wins), checks and completes.
/// Errors: the first one found, as a sentence that says where it stands and how to mend it.
[[nodiscard]] catalog::ConfigResult<LoadedConfig> load_config(const ConfigInputs& inputs);

}  // namespace kaas::broker
