// Goal: DescribeConfigs answers what Apache answers. Method: every row that a real Apache 4.4 gave
// (tests/apache/record_describe_configs.py) is asked of our tables, set up alike; rows that differ
// stand in a list with their reason.

#include "catalog/config/describe.h"

#include "catalog/config/apache_describe_configs.h"
#include "catalog/config/definition.h"
#include "catalog/config/topic_config.h"
#include "catalog/config/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::catalog {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::string> split(std::string_view text, std::string_view by) {
    std::vector<std::string> parts;
    while (!text.empty()) {
        std::size_t end = text.find(by);
        parts.emplace_back(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + by.size());
    }
    return parts;
}

std::optional<std::string> nullable(std::string text) {
    return text == "<null>" ? std::nullopt : std::optional(std::move(text));
}

ConfigSource source_of(std::string_view name) {
    static const std::map<std::string_view, ConfigSource> k_names = {
        {"DYNAMIC_TOPIC_CONFIG", ConfigSource::kDynamicTopic},
        {"DYNAMIC_BROKER_CONFIG", ConfigSource::kDynamicBroker},
        {"DYNAMIC_DEFAULT_BROKER_CONFIG", ConfigSource::kDynamicDefaultBroker},
        {"STATIC_BROKER_CONFIG", ConfigSource::kStaticBroker},
        {"DEFAULT_CONFIG", ConfigSource::kDefault},
        {"DYNAMIC_CLIENT_METRICS_CONFIG", ConfigSource::kClientMetrics},
        {"DYNAMIC_GROUP_CONFIG", ConfigSource::kGroup},
    };
    return k_names.at(name);
}

std::int8_t type_of(std::string_view name) {
    constexpr std::string_view kNames[] = {"UNKNOWN", "BOOLEAN", "STRING", "INT",   "SHORT",
                                           "LONG",    "DOUBLE",  "LIST",   "CLASS", "PASSWORD"};
    const auto* found = std::ranges::find(kNames, name);
    EXPECT_NE(found, std::end(kNames)) << name;
    return static_cast<std::int8_t>(found - kNames);
}

/// SOURCE:name=value
ConfigSynonym synonym_of(const std::string& text) {
    std::size_t colon = text.find(':');
    std::size_t equals = text.find('=');
    return {.name = text.substr(colon + 1, equals - colon - 1),
            .value = nullable(text.substr(equals + 1)),
            .source = source_of(text.substr(0, colon))};
}

struct ApacheRow {
    std::string resource;
    DescribedConfig config;
};

std::vector<ApacheRow> recorded_rows() {
    std::vector<ApacheRow> rows;
    for (const auto& line : split(kApacheDescribeConfigs, "\n")) {
        auto fields = split(line, "\t");
        fields.resize(9);
        DescribedConfig config;
        config.name = fields[1];
        config.type = type_of(fields[2]);
        config.value = nullable(fields[3]);
        config.source = source_of(fields[4]);
        config.read_only = fields[5] == "ro";
        config.sensitive = fields[6] == "secret";
        if (fields[7] == "documented") config.documentation = "";
        if (fields[8] == "-") fields[8].clear();
        for (const auto& synonym : split(fields[8], "; "))
            config.synonyms.push_back(synonym_of(synonym));
        rows.push_back({.resource = fields[0], .config = std::move(config)});
    }
    return rows;
}

/// What the recorded broker had set, read back from the synonyms that it named.
struct ApacheSetup {
    BrokerLayers layers;
    std::map<std::string, ConfigMap> own;  ///< by resource

    explicit ApacheSetup(const std::vector<ApacheRow>& rows) {
        for (const auto& row : rows) {
            for (const auto& synonym : row.config.synonyms) {
                if (auto* place = place_of(row.resource, synonym.source)) {
                    place->insert_or_assign(synonym.name, synonym.value.value_or("hidden"));
                }
            }
        }
    }
    ConfigMap* place_of(const std::string& resource, ConfigSource source) {
        switch (source) {
            case ConfigSource::kDynamicBroker: return &layers.dynamic_broker;
            case ConfigSource::kDynamicDefaultBroker: return &layers.dynamic_default;
            case ConfigSource::kStaticBroker: return &layers.static_broker;
            case ConfigSource::kDefault: return nullptr;
            default: return &own[resource];
        }
    }
    ConfigValues values() const {
        ConfigMap texts = effective_texts(layers);
        std::erase_if(texts, [](const auto& entry) { return !broker_configs().find(entry.first); });
        auto values = ConfigValues::parse(broker_configs(), texts);
        EXPECT_TRUE(values) << values.error().context;
        return *values;
    }
};

std::vector<DescribedConfig> ours(ApacheSetup& setup, const std::string& resource) {
    const DescribeOptions everything{.synonyms = true, .documentation = true};
    const ConfigMap& own = setup.own[resource];
    if (resource.starts_with("TOPIC/")) {
        auto topic = resolve_topic_config(own, setup.values());
        EXPECT_TRUE(topic) << topic.error().context;
        return describe_topic(*topic, own, setup.layers, everything);
    }
    if (resource.starts_with("GROUP/")) {
        return describe_group(own, setup.values(), setup.layers, everything);
    }
    if (resource.starts_with("CLIENT_METRICS/")) return describe_client_metrics(own, everything);
    if (resource == "BROKER/") return describe_broker_default(setup.layers, everything);
    return describe_broker(setup.values(), setup.layers, everything);
}

struct Difference {
    std::string_view name;
    std::string_view reason;
};
constexpr Difference kDifferences[] = {
    {"broker.heartbeat.interval.ms", "500: often enough for a session timeout of 6000"},
    {"broker.id", "has a default, 1: nothing needs to be configured"},
    {"broker.session.timeout.ms", "6000: a silent broker is replaced sooner"},
    {"controller.listener.names", "has a default, none: there is no KRaft controller"},
    {"flush.messages", "1: every acknowledged record is synced"},
    {"listeners", "the default listens on this machine alone"},
    {"log.dir", "./kaas-data: kept over a restart, unlike /tmp"},
    {"log.flush.interval.messages", "1: every acknowledged record is synced"},
    {"node.id", "has a default, 1: nothing needs to be configured"},
    {"num.network.threads", "one for each processor"},
    {"process.roles", "has a default, broker"},
};

bool is_difference(std::string_view name) {
    return std::ranges::find(kDifferences, name, &Difference::name) != std::end(kDifferences);
}

class DescribeLikeApache : public ::testing::TestWithParam<const char*> {};

TEST_P(DescribeLikeApache, EveryRow) {
    auto rows = recorded_rows();
    ApacheSetup setup(rows);
    std::map<std::string, DescribedConfig> answer;
    for (auto& row : ours(setup, GetParam())) answer.emplace(row.name, row);
    std::size_t compared = 0;
    for (const auto& [resource, apache] : rows) {
        if (resource != GetParam()) continue;
        auto found = answer.find(apache.name);
        ASSERT_NE(found, answer.end()) << apache.name;
        DescribedConfig mine = found->second;
        answer.erase(found);
        EXPECT_EQ(mine.type, apache.type) << apache.name;
        EXPECT_EQ(mine.read_only, apache.read_only) << apache.name;
        EXPECT_EQ(mine.sensitive, apache.sensitive) << apache.name;
        EXPECT_EQ(mine.documentation.has_value(), apache.documentation.has_value()) << apache.name;
        ++compared;
        bool same = mine.value == apache.value && mine.source == apache.source &&
                    mine.synonyms == apache.synonyms;
        EXPECT_EQ(!same, is_difference(apache.name))
            << apache.name << " is " << mine.value.value_or("null") << " here and "
            << apache.value.value_or("null") << " at Apache, or their synonyms differ";
    }
    EXPECT_GE(compared, 3U);
    for (const auto& [name, row] : answer) EXPECT_TRUE(name.starts_with("kaas.")) << name;
}

INSTANTIATE_TEST_SUITE_P(Resources, DescribeLikeApache,
                         ::testing::Values("TOPIC/plain", "TOPIC/own", "BROKER/1", "BROKER/",
                                           "GROUP/plain", "GROUP/own", "CLIENT_METRICS/own"),
                         [](const auto& info) {
                             std::string name(info.param);
                             std::ranges::replace(name, '/', '_');
                             return name;
                         });

TEST(Describe, OnlyTheNamesThatWereAskedFor) {
    ConfigValues broker(broker_configs());
    auto topic = resolve_topic_config({}, broker);
    ASSERT_TRUE(topic);
    auto rows = describe_topic(*topic, {}, {}, {.names = {"retention.ms", "no.such.config"}});
    ASSERT_THAT(rows, SizeIs(1));
    EXPECT_EQ(rows.front().value, "604800000");
    EXPECT_THAT(rows.front().synonyms, IsEmpty());
    EXPECT_FALSE(rows.front().documentation);
    EXPECT_EQ(rows.front().source, ConfigSource::kDefault);
}

TEST(Describe, InternalConfigsShowOnlyWhenTheyAreSet) {
    const ConfigMap own{{"internal.segment.bytes", "1000"}};
    auto topic = resolve_topic_config(own, ConfigValues(broker_configs()));
    ASSERT_TRUE(topic);
    auto rows = describe_topic(*topic, own, {}, {.names = {"internal.segment.bytes"}});
    ASSERT_THAT(rows, SizeIs(1));
    EXPECT_EQ(rows.front().value, "1000");
    EXPECT_THAT(describe_topic(*resolve_topic_config({}, ConfigValues(broker_configs())), {}, {},
                               {.names = {"internal.segment.bytes"}}),
                IsEmpty());
}

TEST(EffectiveTexts, ADynamicValueSilencesItsStandIns) {
    BrokerLayers layers{.dynamic_broker = {{"log.roll.ms", "5"}},
                        .dynamic_default = {{"log.roll.ms", "6"}, {"message.max.bytes", "7"}},
                        .static_broker = {{"log.roll.hours", "8"}, {"num.partitions", "9"}}};
    EXPECT_EQ(
        effective_texts(layers),
        (ConfigMap{{"log.roll.ms", "5"}, {"message.max.bytes", "7"}, {"num.partitions", "9"}}));
}

}  // namespace
}  // namespace kaas::catalog
