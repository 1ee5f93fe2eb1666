// Goal: a topic runs with what was asked for it, and with its broker's values where nothing was.
// Method: own configs and broker values, named by the fault.

#include "catalog/config/topic_config.h"

#include "catalog/config/definition.h"
#include "catalog/config/error.h"
#include "catalog/config/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

namespace kaas::catalog {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ConfigValues broker_with(const ConfigMap& texts) {
    auto values = ConfigValues::parse(broker_configs(), texts);
    EXPECT_TRUE(values) << values.error().context;
    return *values;
}

TEST(TopicConfig, OwnDefaultsAreTheHonestOnes) {
    auto topic = resolve_topic_config({}, broker_with({}));
    ASSERT_TRUE(topic);
    EXPECT_EQ(topic->settings.flush_messages, 1);
    EXPECT_EQ(topic->settings.segment_ms, std::chrono::days(7));
    EXPECT_TRUE(topic->deletes());
    EXPECT_FALSE(topic->compacts());
}

TEST(TopicConfig, OwnValueBeatsTheBrokers) {
    auto topic = resolve_topic_config({{"max.message.bytes", "5"}},
                                      broker_with({{"message.max.bytes", "7"}}));
    ASSERT_TRUE(topic);
    EXPECT_EQ(topic->settings.max_message_bytes, 5);
}

TEST(TopicConfig, FinerUnitOfTheBrokerBeatsTheCoarser) {
    auto broker = broker_with({{"log.retention.hours", "1"}, {"log.retention.minutes", "2"}});
    EXPECT_EQ(inherited_topic_values(broker).get<std::int64_t>("retention.ms"), 120'000);
    broker = broker_with({{"log.retention.hours", "1"}});
    EXPECT_EQ(inherited_topic_values(broker).get<std::int64_t>("retention.ms"), 3'600'000);
    broker = broker_with({{"log.retention.hours", "-1"}});
    EXPECT_EQ(inherited_topic_values(broker).get<std::int64_t>("retention.ms"), -1);
}

TEST(TopicConfig, EmptyPolicyMeansNeither) {
    auto topic = resolve_topic_config({{"cleanup.policy", ""}}, broker_with({}));
    ASSERT_TRUE(topic);
    EXPECT_FALSE(topic->deletes());
    EXPECT_FALSE(topic->compacts());
}

TEST(TopicConfig, BothPolicies) {
    auto topic = resolve_topic_config({{"cleanup.policy", "compact,delete"}}, broker_with({}));
    ASSERT_TRUE(topic);
    EXPECT_THAT(topic->settings.cleanup_policy, ElementsAre("compact", "delete"));
    EXPECT_TRUE(topic->deletes());
    EXPECT_TRUE(topic->compacts());
}

TEST(TopicConfig, MisspeltNameIsRefused) {
    auto topic = resolve_topic_config({{"retention.mss", "1"}}, broker_with({}));
    ASSERT_FALSE(topic);
    EXPECT_EQ(topic.error().code, ConfigFault::kUnknownName);
    EXPECT_THAT(topic.error().context,
                HasSubstr("unknown topic config 'retention.mss'; did you mean 'retention.ms'?"));
}

TEST(TopicConfig, LagsThatCrossAreRefused) {
    auto topic = resolve_topic_config(
        {{"min.compaction.lag.ms", "100"}, {"max.compaction.lag.ms", "10"}}, broker_with({}));
    ASSERT_FALSE(topic);
    EXPECT_EQ(topic.error().code, ConfigFault::kConflict);
}

TEST(TopicConfig, LagThatCrossesTheBrokersIsRefused) {
    auto broker = broker_with({{"log.cleaner.max.compaction.lag.ms", "10"}});
    EXPECT_FALSE(resolve_topic_config({{"min.compaction.lag.ms", "100"}}, broker));
}

TEST(TopicConfig, TieringIsRefused) {
    auto topic = resolve_topic_config({{"remote.storage.enable", "true"}}, broker_with({}));
    ASSERT_FALSE(topic);
    EXPECT_THAT(topic.error().context, HasSubstr("no tiered storage"));
}

}  // namespace
}  // namespace kaas::catalog
