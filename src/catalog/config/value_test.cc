// Goal: a value means here what it means to Apache, and a wrong one is refused with a sentence that
// helps. Method: texts of every type through parse_value, named by the fault; expectations from
// Apache's ConfigDef.parseType and validators.

#include "catalog/config/value.h"

#include "catalog/config/definition.h"
#include "catalog/config/error.h"
#include "catalog/config/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::catalog {
namespace {

using ::testing::HasSubstr;

const ConfigDefinition& topic(std::string_view name) { return *topic_configs().find(name); }
const ConfigDefinition& broker(std::string_view name) { return *broker_configs().find(name); }
const ConfigDefinition& group(std::string_view name) { return *group_configs().find(name); }

struct Case {
    std::string_view fault;
    const ConfigDefinition* definition;
    std::string text;
    std::string result;  ///< the canonical text, or a piece of the message
    bool good = true;
};
std::ostream& operator<<(std::ostream& out, const Case& one) { return out << one.fault; }

class ParseValue : public ::testing::TestWithParam<Case> {};

TEST_P(ParseValue, GivesTheValueOrSaysWhyNot) {
    const Case& wanted = GetParam();
    auto value = parse_value(*wanted.definition, wanted.text);
    ASSERT_EQ(value.has_value(), wanted.good);
    if (wanted.good) {
        EXPECT_EQ(to_text(*value), wanted.result);
    } else {
        EXPECT_EQ(value.error().code, ConfigFault::kInvalidValue);
        EXPECT_THAT(value.error().context, HasSubstr(wanted.result));
        EXPECT_THAT(value.error().context, HasSubstr(std::string(wanted.definition->name)));
    }
}

INSTANTIATE_TEST_SUITE_P(
    Good, ParseValue,
    ::testing::Values(
        Case{"BlanksAround", &topic("retention.ms"), " \t1000 \n", "1000"},
        Case{"PlusSign", &topic("retention.ms"), "+1000", "1000"},
        Case{"LeadingZeros", &topic("retention.ms"), "0010", "10"},
        Case{"LargestLong", &topic("flush.ms"), "9223372036854775807", "9223372036854775807"},
        Case{"AtTheLeast", &topic("segment.bytes"), "1048576", "1048576"},
        Case{"OutsideButAllowed", &topic("compression.gzip.level"), "-1", "-1"},
        Case{"BooleanInCapitals", &topic("preallocate"), "TRUE", "true"},
        Case{"DoubleAsInteger", &topic("min.cleanable.dirty.ratio"), "1", "1.0"},
        Case{"DoubleWithSuffix", &topic("min.cleanable.dirty.ratio"), "0.25d", "0.25"},
        Case{"DoubleWithExponent", &topic("min.cleanable.dirty.ratio"), "5e-1", "0.5"},
        Case{"DoubleWithoutZero", &topic("min.cleanable.dirty.ratio"), ".5", "0.5"},
        Case{"EmptyList", &topic("cleanup.policy"), "", ""},
        Case{"BlanksInAList", &topic("cleanup.policy"), "compact , delete", "compact,delete"},
        Case{"RepeatedElement", &topic("cleanup.policy"), "delete,delete", "delete"},
        Case{"AnyCase", &broker("group.consumer.migration.policy"), "upgrade", "upgrade"},
        Case{"AllReplicas", &topic("leader.replication.throttled.replicas"), "*", "*"},
        Case{"SomeReplicas", &topic("leader.replication.throttled.replicas"), "0:1,10:2",
             "0:1,10:2"},
        Case{"ResetByDuration", &group("share.auto.offset.reset"), "by_duration:P1DT2H3M4.5S",
             "by_duration:P1DT2H3M4.5S"},
        Case{"SixteenBits", &broker("offsets.topic.replication.factor"), "32767", "32767"}),
    [](const auto& info) { return std::string(info.param.fault); });

INSTANTIATE_TEST_SUITE_P(
    Refused, ParseValue,
    ::testing::Values(
        Case{"NotANumber", &topic("retention.ms"), "soon", "'soon': it must be a 64-bit integer",
             false},
        Case{"NothingAtAll", &topic("retention.ms"), "", "64-bit integer", false},
        Case{"TwoSigns", &topic("retention.ms"), "+-1", "64-bit integer", false},
        Case{"UnitBehind", &topic("retention.ms"), "7d", "64-bit integer", false},
        Case{"TooLargeForInt", &topic("segment.bytes"), "2147483648", "32-bit integer", false},
        Case{"TooLargeForShort", &broker("offsets.topic.replication.factor"), "32768", "16-bit",
             false},
        Case{"BelowTheLeast", &topic("segment.bytes"), "1", "at least 1048576", false},
        Case{"AboveTheMost", &topic("min.cleanable.dirty.ratio"), "2", "0 to 1", false},
        Case{"BetweenRangeAndOther", &topic("compression.gzip.level"), "0", "1 to 9, or -1", false},
        Case{"NotABoolean", &topic("preallocate"), "yes", "true or false", false},
        Case{"NotOfTheSet", &topic("compression.type"), "zip", "uncompressed, zstd, lz4", false},
        Case{"OtherCase", &topic("message.timestamp.type"), "createtime", "CreateTime", false},
        Case{"ElementNotOfTheSet", &topic("cleanup.policy"), "delete,shred", "compact, delete",
             false},
        Case{"MissingElement", &topic("cleanup.policy"), "delete,", "between two commas", false},
        Case{"ListThatMustNotBeEmpty", &broker("log.dirs"), "", "must not be empty", false},
        Case{"WordForReplicas", &topic("leader.replication.throttled.replicas"), "what", "0:1,1:2",
             false},
        Case{"ReplicaWithoutBroker", &topic("leader.replication.throttled.replicas"), "1:", "0:1",
             false},
        Case{"NoDuration", &group("share.auto.offset.reset"), "by_duration:", "PT1H30M", false},
        Case{"DurationBackwards", &group("share.auto.offset.reset"), "by_duration:PT1M1H",
             "PT1H30M", false},
        Case{"NegativeDuration", &group("share.auto.offset.reset"), "by_duration:-PT1H", "PT1H",
             false},
        Case{"HangingT", &group("share.auto.offset.reset"), "by_duration:P1DT", "PT1H30M", false},
        Case{"ResetToNowhere", &group("share.auto.offset.reset"), "none", "latest, earliest",
             false}),
    [](const auto& info) { return std::string(info.param.fault); });

TEST(ParseValue, ASecretIsNotShown) {
    ConfigDefinition secret{.name = "x.password",
                            .type = ConfigType::kPassword,
                            .rule = {.one_of = {}, .not_empty = true},
                            .help = ""};
    auto value = parse_value(secret, "  ");
    ASSERT_FALSE(value);
    EXPECT_THAT(value.error().context, HasSubstr("this value"));
}

TEST(JavaDouble, WritesAsJavaDoes) {
    const std::vector<std::pair<double, std::string>> cases = {
        {0.5, "0.5"},
        {1, "1.0"},
        {-0.0, "-0.0"},
        {0.001, "0.001"},
        {0.0001, "1.0E-4"},
        {9999999, "9999999.0"},
        {1e7, "1.0E7"},
        {1.25e10, "1.25E10"},
        {std::numeric_limits<double>::max(), "1.7976931348623157E308"},
        {std::numeric_limits<double>::infinity(), "Infinity"},
    };
    for (const auto& [value, text] : cases) EXPECT_EQ(java_double(value), text);
}

TEST(ConfigTables, AreSortedAndKeepTheirOwnRules) {
    for (const auto* table :
         {&broker_configs(), &topic_configs(), &group_configs(), &client_metrics_configs()}) {
        ConfigValues defaults(*table);  // asserts that every default is good
        for (const auto& definition : table->all())
            EXPECT_EQ(table->find(definition.name), &definition);
        EXPECT_EQ(table->find("no.such.config"), nullptr);
    }
}

TEST(ConfigTables, KnowAsManyAsApache) {
    auto of_apache = [](const ConfigTable& table) {
        return std::ranges::count_if(table.all(), [](const ConfigDefinition& definition) {
            return !definition.name.starts_with("kaas.") && definition.name != "record.validation";
        });
    };
    EXPECT_EQ(of_apache(broker_configs()), 379 + 3);  // three exist only dynamically
    EXPECT_EQ(of_apache(topic_configs()), 38);
    EXPECT_EQ(of_apache(group_configs()), 27);
    EXPECT_EQ(of_apache(client_metrics_configs()), 3);
}

TEST(ConfigTables, NearestNameForgivesWhatPeopleMistype) {
    const std::vector<std::pair<std::string_view, std::string_view>> cases = {
        {"log.segment.byte", "log.segment.bytes"},
        {"log.segmnet.bytes", "log.segment.bytes"},
        {"LOG_SEGMENT_BYTES", "log.segment.bytes"},
        {"auto.create.topic.enabled", "auto.create.topics.enable"},
        {"listner", "listeners"},
        {"port", ""},
        {"", ""},
    };
    for (const auto& [typed, meant] : cases)
        EXPECT_EQ(broker_configs().nearest(typed), meant) << typed;
}

TEST(SplitList, KeepsEmptyElementsBetweenCommas) {
    EXPECT_THAT(split_list(" a ,b,, c,"), ::testing::ElementsAre("a", "b", "", "c", ""));
    EXPECT_THAT(split_list("  "), ::testing::IsEmpty());
}

}  // namespace
}  // namespace kaas::catalog
