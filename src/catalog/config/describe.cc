#include "catalog/config/describe.h"

#include "catalog/config/definition.h"
#include "catalog/config/listener_name.h"
#include "catalog/config/topic_config.h"
#include "catalog/config/value.h"
#include "catalog/config/values.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace kaas::catalog {
namespace {

bool is_wanted(const DescribeOptions& options, std::string_view name) {
    return options.names.empty() || std::ranges::find(options.names, name) != options.names.end();
}

/// The broker configs that stand in for each other, the strongest first: log.retention.ms,
/// .minutes, .hours (Apache `DynamicBrokerConfig.brokerConfigSynonyms`).
std::vector<std::string_view> stand_ins_of(std::string_view name) {
    for (const auto& topic : topic_configs().all()) {
        auto chain = topic.broker_synonyms;
        if (std::ranges::find(chain, name, &BrokerSynonym::name) == chain.end()) continue;
        std::vector<std::string_view> names;
        for (const auto& synonym : chain) names.push_back(synonym.name);
        return names;
    }
    return {name};
}

/// As `stand_ins_of`; behind the config of one listener stands the one of all listeners.
std::vector<std::string_view> broker_synonyms(std::string_view name) {
    auto base = base_of_listener_config(name);
    return base.empty() ? stand_ins_of(name) : std::vector{name, base};
}

/// What is known of a broker config, or of the one that a listener's config overrides; null when
/// nothing is.
const ConfigDefinition* definition_of(std::string_view name) {
    if (const auto* found = broker_configs().find(name)) return found;
    return broker_configs().find(base_of_listener_config(name));
}

/// Collects every value of `names` layer by layer, then drops what stands before the first value of
/// `name` itself: so does Apache (`ConfigHelper.configSynonyms`), and clients see it.
class SynonymList {
public:
    SynonymList(std::string_view name, bool sensitive) : name_(name), sensitive_(sensitive) {}

    void add_layer(const ConfigMap& layer, std::span<const std::string_view> names,
                   ConfigSource source) {
        for (auto name : names) {
            if (auto set = layer.find(name); set != layer.end()) add(name, set->second, source);
        }
    }
    void add_defaults(std::span<const std::string_view> names) {
        for (auto name : names) {
            const auto* definition = broker_configs().find(name);
            if (definition == nullptr || definition->dynamic_only) continue;
            if (auto text = definition->default_text())
                add(name, *std::move(text), ConfigSource::kDefault);
        }
    }
    [[nodiscard]] std::vector<ConfigSynonym> take() { return std::move(synonyms_); }

private:
    void add(std::string_view name, std::string value, ConfigSource source) {
        if (synonyms_.empty() && name != name_) return;
        synonyms_.push_back({.name = std::string(name),
                             .value = sensitive_ ? std::nullopt : std::optional(std::move(value)),
                             .source = source});
    }

    std::string_view name_;
    bool sensitive_;
    std::vector<ConfigSynonym> synonyms_;
};

std::vector<ConfigSynonym> synonyms_of(std::string_view name, const BrokerLayers& layers,
                                       bool sensitive) {
    auto names = broker_synonyms(name);
    SynonymList list(name, sensitive);
    list.add_layer(layers.dynamic_broker, names, ConfigSource::kDynamicBroker);
    list.add_layer(layers.dynamic_default, names, ConfigSource::kDynamicDefaultBroker);
    list.add_layer(layers.static_broker, names, ConfigSource::kStaticBroker);
    list.add_defaults(names);
    return list.take();
}

/// The fields that every kind of resource fills alike. `synonyms` holds all, the strongest first.
DescribedConfig described(std::string_view name, const ConfigDefinition* definition,
                          std::optional<std::string> value, std::vector<ConfigSynonym> synonyms,
                          const DescribeOptions& options) {
    DescribedConfig row;
    row.name = name;
    row.sensitive = definition == nullptr || definition->sensitive();
    if (!row.sensitive) row.value = std::move(value);
    if (!synonyms.empty()) row.source = synonyms.front().source;
    if (options.synonyms) row.synonyms = std::move(synonyms);
    if (definition != nullptr) {
        row.type = static_cast<std::int8_t>(definition->type);
        // Apache has none for what it does not keep in its static table, listener overrides
        // included.
        bool documented = definition->name == name && !definition->dynamic_only;
        if (options.documentation && documented) row.documentation = std::string(definition->help);
    }
    return row;
}

/// A value that a resource holds itself, in the form of its type.
std::string canonical(const ConfigDefinition& definition, const std::string& text) {
    auto value = parse_value(definition, text);
    return value ? to_text(*value).value_or(text) : text;
}

DescribedConfig describe_broker_config(std::string_view name, std::optional<std::string> value,
                                       std::vector<ConfigSynonym> synonyms,
                                       const DescribeOptions& options) {
    auto row = described(name, definition_of(name), std::move(value), std::move(synonyms), options);
    const auto* own = broker_configs().find(name);
    row.read_only = own == nullptr || own->update == UpdateMode::kReadOnly;
    return row;
}

bool always_shown(const ConfigDefinition& definition) {
    return !definition.internal && !definition.dynamic_only;
}

/// What a group inherits (Apache `AbstractKafkaConfig.extractGroupConfigMap`).
std::optional<std::string> inherited_group_value(const ConfigDefinition& definition,
                                                 const ConfigValues& broker) {
    if (definition.broker_synonyms.empty()) return definition.default_text();
    const ConfigValue& value = broker[definition.broker_synonyms.front().name];
    const auto* list = std::get_if<std::vector<std::string>>(&value);
    // streams.assignor.name falls back to the first of a list.
    if (list != nullptr && definition.type != ConfigType::kList) {
        return list->empty() ? std::nullopt : std::optional(list->front());
    }
    return to_text(value);
}

}  // namespace

ConfigMap effective_texts(const BrokerLayers& layers) {
    ConfigMap texts = layers.static_broker;
    for (const auto* layer : {&layers.dynamic_default, &layers.dynamic_broker}) {
        for (const auto& [name, text] : *layer) {
            for (auto synonym : stand_ins_of(name)) texts.erase(std::string(synonym));
            texts.insert_or_assign(name, text);
        }
    }
    return texts;
}

std::vector<DescribedConfig> describe_topic(const TopicConfig& topic, const ConfigMap& own,
                                            const BrokerLayers& layers,
                                            const DescribeOptions& options) {
    std::vector<DescribedConfig> rows;
    for (const auto& definition : topic_configs().all()) {
        bool is_own = own.contains(definition.name);
        if ((definition.internal && !is_own) || !is_wanted(options, definition.name)) continue;
        auto value = to_text(topic.values[definition.name]);
        std::vector<ConfigSynonym> synonyms;
        if (!definition.broker_synonyms.empty()) {
            synonyms = synonyms_of(definition.broker_synonyms.front().name, layers,
                                   definition.sensitive());
        }
        if (is_own) {
            synonyms.insert(synonyms.begin(),
                            {std::string(definition.name), value, ConfigSource::kDynamicTopic});
        }
        rows.push_back(
            described(definition.name, &definition, value, std::move(synonyms), options));
    }
    return rows;
}

std::vector<DescribedConfig> describe_broker(const ConfigValues& values, const BrokerLayers& layers,
                                             const DescribeOptions& options) {
    std::vector<DescribedConfig> rows;
    auto add = [&](std::string_view name, std::optional<std::string> value) {
        const auto* definition = definition_of(name);
        bool sensitive = definition == nullptr || definition->sensitive();
        rows.push_back(describe_broker_config(name, std::move(value),
                                              synonyms_of(name, layers, sensitive), options));
    };
    for (const auto& definition : values.table().all()) {
        if (always_shown(definition) && is_wanted(options, definition.name)) {
            add(definition.name, to_text(values[definition.name]));
        }
    }
    for (const auto& [name, text] : effective_texts(layers)) {
        const auto* definition = values.table().find(name);
        bool shown = definition != nullptr && always_shown(*definition);
        if (!shown && is_wanted(options, name)) add(name, text);
    }
    return rows;
}

std::vector<DescribedConfig> describe_broker_default(const BrokerLayers& layers,
                                                     const DescribeOptions& options) {
    const BrokerLayers only_default{.dynamic_default = layers.dynamic_default};
    std::vector<DescribedConfig> rows;
    for (const auto& [name, text] : layers.dynamic_default) {
        if (!is_wanted(options, name)) continue;
        const auto* definition = definition_of(name);
        bool sensitive = definition == nullptr || definition->sensitive();
        auto synonyms = synonyms_of(name, only_default, sensitive);
        std::erase_if(synonyms, [](const ConfigSynonym& synonym) {
            return synonym.source != ConfigSource::kDynamicDefaultBroker;
        });
        rows.push_back(describe_broker_config(name, text, std::move(synonyms), options));
    }
    return rows;
}

std::vector<DescribedConfig> describe_group(const ConfigMap& own, const ConfigValues& broker,
                                            const BrokerLayers& layers,
                                            const DescribeOptions& options) {
    std::vector<DescribedConfig> rows;
    for (const auto& definition : group_configs().all()) {
        auto set = own.find(definition.name);
        if ((definition.internal && set == own.end()) || !is_wanted(options, definition.name))
            continue;
        std::vector<ConfigSynonym> synonyms;
        if (!definition.broker_synonyms.empty()) {
            synonyms = synonyms_of(definition.broker_synonyms.front().name, layers,
                                   definition.sensitive());
        } else if (auto text = definition.default_text()) {
            synonyms.push_back(
                {std::string(definition.name), std::move(text), ConfigSource::kDefault});
        }
        auto value = inherited_group_value(definition, broker);
        if (set != own.end()) {
            value = canonical(definition, set->second);
            synonyms.insert(synonyms.begin(),
                            {std::string(definition.name), value, ConfigSource::kGroup});
        }
        rows.push_back(described(definition.name, &definition, std::move(value),
                                 std::move(synonyms), options));
    }
    return rows;
}

std::vector<DescribedConfig> describe_client_metrics(const ConfigMap& own,
                                                     const DescribeOptions& options) {
    std::vector<DescribedConfig> rows;
    for (const auto& definition : client_metrics_configs().all()) {
        if (!is_wanted(options, definition.name)) continue;
        auto value = definition.default_text();
        std::vector<ConfigSynonym> synonyms;
        if (auto set = own.find(definition.name); set != own.end()) {
            value = canonical(definition, set->second);
            synonyms.push_back({std::string(definition.name), value, ConfigSource::kClientMetrics});
        }
        rows.push_back(described(definition.name, &definition, std::move(value),
                                 std::move(synonyms), options));
    }
    return rows;
}

}  // namespace kaas::catalog
