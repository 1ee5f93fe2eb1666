#include "broker/config/environment.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace kaas::broker {
namespace {

constexpr std::string_view kPrefix = "KAFKA_";

/// Apache `kafka.docker.Constants`: not meant for the broker's configuration.
constexpr std::string_view kOfTheImage[] = {
    "KAFKA_GC_LOG_OPTS",
    "KAFKA_HEAP_OPTS",
    "KAFKA_JMX_HOSTNAME",
    "KAFKA_JMX_OPTS",
    "KAFKA_JVM_PERFORMANCE_OPTS",
    "KAFKA_LOG4J_LOGGERS",
    "KAFKA_LOG4J_OPTS",
    "KAFKA_LOG4J_ROOT_LOGLEVEL",
    "KAFKA_OPTS",
    "KAFKA_TOOLS_LOG4J_LOGLEVEL",
    "KAFKA_VERSION",
};

}  // namespace

std::optional<std::string> config_of_variable(std::string_view variable) {
    if (!variable.starts_with(kPrefix)) return std::nullopt;
    if (std::ranges::find(kOfTheImage, variable) != std::end(kOfTheImage)) return std::nullopt;
    std::string_view rest = variable.substr(kPrefix.size());
    std::string name;
    while (!rest.empty()) {
        std::size_t underscores = std::min(rest.find_first_not_of('_'), rest.size());
        if (underscores == 0) {
            char c = rest.front();
            name.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
            rest.remove_prefix(1);
            continue;
        }
        std::size_t taken = std::min<std::size_t>(underscores, 3);
        name.push_back(taken == 1 ? '.' : taken == 2 ? '_' : '-');
        rest.remove_prefix(taken);
    }
    return name;
}

}  // namespace kaas::broker
