#include "broker/handlers/describe_configs.h"

#include "broker/handlers/config_layers.h"
#include "catalog/image.h"
#include "catalog/topic_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using wire::ErrorCode;
using Asked = wire::DescribeConfigsRequest::DescribeConfigsResource;
using Result = wire::DescribeConfigsResponse::DescribeConfigsResult;

// Apache ConfigResource.Type
constexpr std::int8_t kTopic = 2;
constexpr std::int8_t kBroker = 4;
constexpr std::int8_t kBrokerLogger = 8;
/// Some 30,000 topics. A few bytes of a request are answered by tens of kilobytes.
constexpr std::size_t kRowsMax = 1'000'000;

std::optional<wire::String> nullable(const std::optional<std::string>& text) {
    if (!text) return std::nullopt;
    return wire::String(*text);
}

void add_rows(const std::vector<catalog::DescribedConfig>& rows, Result& out) {
    for (const auto& row : rows) {
        auto& config = out.configs.emplace_back();
        config.name = row.name;
        config.value = nullable(row.value);
        config.read_only = row.read_only;
        config.config_source = static_cast<std::int8_t>(row.source);
        config.is_sensitive = row.sensitive;
        config.config_type = row.type;
        config.documentation = nullable(row.documentation);
        for (const auto& synonym : row.synonyms) {
            auto& other = config.synonyms.emplace_back();
            other.name = synonym.name;
            other.value = nullable(synonym.value);
            other.source = static_cast<std::int8_t>(synonym.source);
        }
    }
}

void refuse(Result& out, ErrorCode error, const std::string& why) {
    out.error_code = error;
    out.error_message = why;
}

void describe_topic(const Call& call, const Asked& asked, const catalog::DescribeOptions& options,
                    Result& out) {
    std::string_view name = asked.resource_name;
    std::string fault = catalog::topic_name_fault(name);
    if (!fault.empty()) return refuse(out, ErrorCode::kInvalidTopicException, fault);
    const catalog::Topic* topic = call.state().partitions.image().topic(name);
    if (topic == nullptr) {
        return refuse(out, ErrorCode::kUnknownTopicOrPartition,
                      fmt::format("There is no topic '{}'.", name));
    }
    auto rows = describe_topic_configs(call.services(), topic->configs, options);
    if (!rows) return refuse(out, ErrorCode::kInvalidConfig, rows.error().context);
    add_rows(*rows, out);
}

/// Only the broker that is named can tell; false when that is not this one, and `out` says so.
bool is_this_broker(const Services& services, std::string_view name, Result& out) {
    std::int32_t id = -1;
    auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
    if (error != std::errc{} || end != name.data() + name.size()) {
        refuse(out, ErrorCode::kInvalidRequest,
               fmt::format("A broker's id is a number, not '{}'.", name));
    } else if (id != services.node.id().value()) {
        refuse(out, ErrorCode::kInvalidRequest,
               fmt::format("This is broker {}: ask broker {} for its own configs.",
                           services.node.id(), id));
    } else {
        return true;
    }
    return false;
}

/// The empty name stands for the default of all brokers.
void describe_broker(const Call& call, const Asked& asked, const catalog::DescribeOptions& options,
                     Result& out) {
    const Services& services = call.services();
    std::string_view name = asked.resource_name;
    if (name.empty()) {
        return add_rows(catalog::describe_broker_default(broker_layers(services), options), out);
    }
    if (!is_this_broker(services, name, out)) return;
    add_rows(catalog::describe_broker(services.config.values, broker_layers(services), options),
             out);
}

/// One level counts for all parts of kaas, so there is one logger, by the name that Apache gives
/// the one above all others.
void describe_logger(const Call& call, const Asked& asked, const catalog::DescribeOptions& options,
                     Result& out) {
    constexpr std::string_view kRoot = "root";
    if (!is_this_broker(call.services(), asked.resource_name, out)) return;
    if (!options.names.empty() && std::ranges::find(options.names, kRoot) == options.names.end())
        return;
    std::string level = call.services().config.settings.kaas_log_level;
    std::ranges::transform(level, level.begin(),
                           [](char c) { return static_cast<char>(std::toupper(c)); });
    add_rows({{.name = std::string(kRoot),
               .value = std::move(level),
               .source = catalog::ConfigSource::kDynamicBrokerLogger,
               .read_only = true,
               .synonyms = {},
               .documentation = ""}},  // not null, as Apache
             out);
}

}  // namespace

wire::DescribeConfigsResponse describe_configs(const Call& call,
                                               const wire::DescribeConfigsRequest& request) {
    wire::DescribeConfigsResponse response;
    std::size_t rows = 0;
    for (const auto& asked : request.resources) {
        auto& out = response.results.emplace_back();
        out.resource_type = asked.resource_type;
        out.resource_name = asked.resource_name;
        out.error_message = "";  // as Apache: not null when all is well
        if (rows > kRowsMax) {
            refuse(out, ErrorCode::kInvalidRequest,
                   "Ask for the configs of fewer resources at once.");
            continue;
        }
        catalog::DescribeOptions options;
        options.synonyms = request.include_synonyms;
        options.documentation = request.include_documentation;
        if (asked.configuration_keys) {
            for (const auto& key : *asked.configuration_keys) options.names.push_back(key.str());
        }
        switch (asked.resource_type) {
            case kTopic: describe_topic(call, asked, options, out); break;
            case kBroker: describe_broker(call, asked, options, out); break;
            case kBrokerLogger: describe_logger(call, asked, options, out); break;
            default:
                refuse(out, ErrorCode::kInvalidRequest,
                       fmt::format("Configs of resources of type {} are not kept.",
                                   asked.resource_type));
        }
        rows += out.configs.size();
    }
    return response;
}

}  // namespace kaas::broker
