// Goal: administrative requests get Apache's codes and sentences, and change exactly what they
// should. Method: tables; codes and sentences were read off Apache 4.4.0
// (`ReplicationControlManager`, `ControllerApis`).

#include "cluster/topic_admin.h"

#include "base/ids.h"
#include "base/uuid.h"
#include "catalog/change.h"
#include "catalog/model.h"
#include "catalog/slot.h"
#include "cluster/admin.h"
#include "cluster/draft.h"
#include "cluster/error.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kaas::cluster {
namespace {

class TopicAdmin : public ::testing::Test {
protected:
    TopicAdmin() {
        catalog::ImageEditor editor("c");
        for (int id : {1, 2}) {
            catalog::Broker broker{.id = base::BrokerId(id)};
            broker.sessions.emplace("main", base::Incarnation{base::Uuid::random()});
            EXPECT_TRUE(editor.apply(catalog::BrokerRegistered{broker}));
        }
        EXPECT_TRUE(editor.apply(catalog::BrokerRegistered{{.id = base::BrokerId(3)}}));  // gone
        image_ = std::move(editor).finish();
        create({.name = "my.topic", .partitions = 2, .replication_factor = 2});
    }

    CreatedTopic create(NewTopic topic) {
        CreateTopics request;
        request.topics = {std::move(topic)};
        return create(request).front();
    }
    std::vector<CreatedTopic> create(const CreateTopics& request) {
        Draft draft(*image_);
        auto created = plan(request, config_, draft);
        EXPECT_TRUE(created);
        changes_ = draft.changes().size();
        image_ = std::move(draft).finish();
        return std::move(*created);
    }
    Result<void> grow(GrowTopic topic, const Attempt& attempt = {}) {
        Draft draft(*image_);
        CreatePartitions request;
        request.topics = {std::move(topic)};
        request.attempt = attempt;
        auto grown = plan(request, draft);
        EXPECT_TRUE(grown);
        changes_ = draft.changes().size();
        image_ = std::move(draft).finish();
        return grown->front().outcome;
    }
    std::vector<DeletedTopic> remove(std::vector<std::variant<std::string, base::TopicId>> topics,
                                     const Attempt& attempt = {}) {
        Draft draft(*image_);
        DeleteTopics request;
        request.topics = std::move(topics);
        request.attempt = attempt;
        auto deleted = plan(request, draft);
        image_ = std::move(draft).finish();
        return deleted;
    }
    static std::vector<base::BrokerId> brokers(std::initializer_list<int> ids) {
        std::vector<base::BrokerId> list;
        for (int id : ids) list.emplace_back(id);
        return list;
    }
    static void expect_error(const Result<void>& outcome, ErrorCode code,
                             const std::string& message) {
        ASSERT_FALSE(outcome) << message;
        EXPECT_EQ(outcome.error().code, code) << outcome.error().context;
        EXPECT_EQ(outcome.error().context, message);
    }

    ControllerConfig config_{
        .default_partitions = 3,
        .slot_topics = {{catalog::SlotKind::kGroup,
                         {.slots = 5, .configs = {{"cleanup.policy", "compact"}}}}},
        .slot_volume = "main"};
    catalog::ImagePtr image_;
    std::size_t changes_ = 0;
};

TEST_F(TopicAdmin, DefaultsFillWhatIsNotSaid) {
    const auto made = create({.name = "plain"});
    ASSERT_TRUE(made.outcome);
    EXPECT_EQ(made.partitions, 3);
    EXPECT_EQ(made.replication_factor, 1);
    EXPECT_FALSE(made.id.uuid.is_zero());
    ASSERT_NE(image_->topic("plain"), nullptr);
    EXPECT_EQ(image_->topic("plain")->id, made.id);
    for (const auto& partition : image_->topic("plain")->partitions) {
        EXPECT_EQ(image_->leader(partition), partition.replicas.front());
    }
}

TEST_F(TopicAdmin, SlotsAreMadeAsTheirCoordinatorWantsUnlessARequestSaysMore) {
    const auto made = create({.name = "__consumer_offsets"});
    ASSERT_TRUE(made.outcome);
    EXPECT_EQ(made.partitions, 5);
    EXPECT_EQ(made.replication_factor, 2) << "3, cut to the living brokers";
    EXPECT_EQ(made.configs, (catalog::ConfigMap{{"cleanup.policy", "compact"}}));
    for (const auto& slot : image_->topic("__consumer_offsets")->partitions) {
        EXPECT_EQ(slot.volume(), "main");
    }
    config_.slot_topics[catalog::SlotKind::kTransaction] = {};
    const auto told = create({.name = "__transaction_state",
                              .partitions = 2,
                              .replication_factor = 1,
                              .configs = {{"cleanup.policy", "delete"}}});
    EXPECT_EQ(told.partitions, 2);
    EXPECT_EQ(told.replication_factor, 1);
    EXPECT_EQ(told.configs.at("cleanup.policy"), "delete");
}

TEST_F(TopicAdmin, SlotsAreOnTheirVolumeByHandToo) {
    config_.slot_volume = "elsewhere";
    const auto made = create({.name = "__consumer_offsets", .assignments = {{0, brokers({1})}}});
    ASSERT_FALSE(made.outcome) << "no broker has that volume";
    config_.slot_volume = "main";
    EXPECT_TRUE(create({.name = "__consumer_offsets", .assignments = {{0, brokers({1})}}}).outcome);
}

TEST_F(TopicAdmin, SlotsAreNeitherDeletedNorGrown) {
    const auto made = create({.name = "__consumer_offsets"});
    expect_error(grow({.name = "__consumer_offsets", .count = 9}), ErrorCode::kInvalidTopic,
                 "Ids that are kept in a slot could not be found any more with another number of "
                 "slots.");
    const std::string why = "The slots of coordinators cannot be deleted.";
    expect_error(remove({std::string("__consumer_offsets")})[0].outcome, ErrorCode::kInvalidTopic,
                 why);
    expect_error(remove({made.id})[0].outcome, ErrorCode::kInvalidTopic, why);
    EXPECT_EQ(image_->topic("__consumer_offsets")->partitions.size(), 5U);
}

TEST_F(TopicAdmin, FactorIsCutToTheLivingBrokers) {
    EXPECT_EQ(create({.name = "wide", .replication_factor = 3}).replication_factor, 2);
}

TEST_F(TopicAdmin, FaultyTopicsGetApachesWords) {
    config_.topic_config_fault =
        [](const catalog::ConfigMap& configs) -> std::optional<std::string> {
        if (configs.contains("bad")) return "Unknown topic config name: bad";
        return std::nullopt;
    };
    using Assignments = std::vector<ManualAssignment>;
    const struct {
        NewTopic topic;
        ErrorCode code;
        std::string message;
    } rows[] = {
        {{.name = ""},
         ErrorCode::kInvalidTopic,
         "Topic name is invalid: the empty string is not allowed"},
        {{.name = "my.topic"}, ErrorCode::kTopicAlreadyExists, "Topic 'my.topic' already exists."},
        {{.name = "my_topic"},
         ErrorCode::kInvalidTopic,
         "Topic 'my_topic' collides with existing topic: my.topic"},
        {{.name = "__cluster_metadata"},
         ErrorCode::kInvalidRequest,
         "Creation of internal topic __cluster_metadata is prohibited."},
        {{.name = "a", .partitions = 0},
         ErrorCode::kInvalidPartitions,
         "Number of partitions was set to an invalid non-positive value."},
        {{.name = "a", .partitions = -2},
         ErrorCode::kInvalidPartitions,
         "Number of partitions was set to an invalid non-positive value."},
        {{.name = "a", .replication_factor = 0},
         ErrorCode::kInvalidReplicationFactor,
         "Replication factor must be larger than 0, or -1 to use the default value."},
        {{.name = "a", .configs = {{"x", std::nullopt}, {"y", std::nullopt}}},
         ErrorCode::kInvalidConfig,
         "Null value not supported for topic configs: x,y"},
        {{.name = "a", .configs = {{"bad", "1"}}},
         ErrorCode::kInvalidConfig,
         "Unknown topic config name: bad"},
        {{.name = "a", .configs = {{"x", "\xff"}}},
         ErrorCode::kInvalidConfig,
         "Name or value of a config is not UTF-8 text."},
        {{.name = "a", .replication_factor = 1, .assignments = Assignments{{0, brokers({1})}}},
         ErrorCode::kInvalidRequest,
         "A manual partition assignment was specified, but replication factor was not set to -1."},
        {{.name = "a", .partitions = 1, .assignments = Assignments{{0, brokers({1})}}},
         ErrorCode::kInvalidRequest,
         "A manual partition assignment was specified, but numPartitions was not set to -1."},
        {{.name = "a", .assignments = Assignments{{0, brokers({1})}, {0, brokers({1})}}},
         ErrorCode::kInvalidReplicaAssignment,
         "Found multiple manual partition assignments for partition 0"},
        {{.name = "a", .assignments = Assignments{{0, brokers({1})}, {2, brokers({1})}}},
         ErrorCode::kInvalidReplicaAssignment,
         "partitions should be a consecutive 0-based integer sequence"},
        {{.name = "a", .assignments = Assignments{{0, {}}}},
         ErrorCode::kInvalidReplicaAssignment,
         "The manual partition assignment includes an empty replica list."},
        {{.name = "a", .assignments = Assignments{{0, brokers({1, 8})}}},
         ErrorCode::kInvalidReplicaAssignment,
         "The manual partition assignment includes broker 8, but no such broker is registered."},
        {{.name = "a", .assignments = Assignments{{0, brokers({2, 1, 2})}}},
         ErrorCode::kInvalidReplicaAssignment,
         "The manual partition assignment includes the broker 2 more than once."},
        {{.name = "a", .assignments = Assignments{{0, brokers({1, 2})}, {1, brokers({1})}}},
         ErrorCode::kInvalidReplicaAssignment,
         "The manual partition assignment includes a partition with 1 replica(s), but this is not "
         "consistent with previous partitions, which have 2 replica(s)."},
        {{.name = "a", .assignments = Assignments{{0, brokers({3})}}},
         ErrorCode::kInvalidReplicaAssignment,
         "All brokers specified in the manual partition assignment for partition 0 are fenced or "
         "in "
         "controlled shutdown."},
    };
    for (const auto& row : rows) {
        const auto made = create(row.topic);
        expect_error(made.outcome, row.code, row.message);
        EXPECT_EQ(changes_, 0U) << row.message;
    }
}

TEST_F(TopicAdmin, ManualAssignmentIsKept) {
    const auto made =
        create({.name = "hand", .assignments = {{1, brokers({2, 1})}, {0, brokers({3, 2})}}});
    ASSERT_TRUE(made.outcome) << made.outcome.error().context;
    const auto& partitions = image_->topic("hand")->partitions;
    EXPECT_EQ(partitions[0].replicas, brokers({3, 2}));
    EXPECT_EQ(image_->leader(partitions[0]), base::BrokerId(2)) << "the first that lives";
    EXPECT_EQ(image_->leader(partitions[1]), base::BrokerId(2));
}

TEST_F(TopicAdmin, NamesThatStandTwiceAreNotMadeAtAll) {
    CreateTopics request;
    request.topics = {{.name = "twice"}, {.name = "once"}, {.name = "twice"}};
    const auto made = create(request);
    ASSERT_EQ(made.size(), 2U);
    EXPECT_EQ(made[0].name, "once");
    EXPECT_TRUE(made[0].outcome);
    expect_error(made[1].outcome, ErrorCode::kInvalidRequest, "Duplicate topic name.");
    EXPECT_EQ(image_->topic("twice"), nullptr);
}

TEST_F(TopicAdmin, NewNamesOfOneRequestMayCollide) {
    CreateTopics request;  // as in Apache, which looks only at what stood before
    request.topics = {{.name = "x.y"}, {.name = "x_y"}};
    for (const auto& topic : create(request)) EXPECT_TRUE(topic.outcome) << topic.name;
}

TEST_F(TopicAdmin, ValidateOnlyAnswersButChangesNothing) {
    CreateTopics request;
    request.topics = {{.name = "maybe", .partitions = 4, .configs = {{"a", "b"}}}};
    request.validate_only = true;
    const auto made = create(request);
    ASSERT_TRUE(made[0].outcome);
    EXPECT_EQ(made[0].partitions, 4);
    EXPECT_EQ(made[0].configs, (catalog::ConfigMap{{"a", "b"}}));
    EXPECT_EQ(changes_, 0U);
    EXPECT_EQ(image_->topic("maybe"), nullptr);
}

TEST_F(TopicAdmin, TooManyPartitionsRefuseTheWholeRequest) {
    Draft draft(*image_);
    CreateTopics request;
    request.topics = {{.name = "a", .partitions = 9'999}, {.name = "b", .partitions = 2}};
    auto refused = plan(request, config_, draft);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kPolicyViolation);
    EXPECT_EQ(refused.error().context, "Excessively large number of partitions per request.");
    EXPECT_TRUE(draft.changes().empty());
}

TEST_F(TopicAdmin, NoLivingBrokerMeansNoTopic) {
    image_ = catalog::ImageEditor("c").finish();
    expect_error(
        create({.name = "a"}).outcome, ErrorCode::kInvalidReplicationFactor,
        "Unable to replicate the partition 1 time(s): All brokers are currently fenced, or have "
        "all their log directories cordoned.");
}

TEST_F(TopicAdmin, BrokersWithAllDirectoriesCordonedGetApachesWords) {
    catalog::Broker broker{.id = base::BrokerId(1)};
    broker.sessions.emplace("main", base::Incarnation{base::Uuid::random()});
    broker.volumes["main"].cordoned = true;
    catalog::ImageEditor editor("c");
    ASSERT_TRUE(editor.apply(catalog::BrokerRegistered{broker}));
    image_ = std::move(editor).finish();
    expect_error(create({.name = "a"}).outcome, ErrorCode::kInvalidReplicationFactor,
                 "Unable to replicate the partition 1 time(s): All brokers are currently fenced, "
                 "or have all their log directories cordoned.");
    expect_error(create({.name = "a",
                         .partitions = -1,
                         .replication_factor = -1,
                         .assignments = {{0, brokers({1})}}})
                     .outcome,
                 ErrorCode::kInvalidReplicaAssignment,
                 "The manual partition assignment includes broker 1, but all its log directories "
                 "are cordoned.");
}

TEST_F(TopicAdmin, GrowthFaultsGetApachesWords) {
    const struct {
        GrowTopic topic;
        ErrorCode code;
        std::string message;
    } rows[] = {
        {{"none", 3}, ErrorCode::kUnknownTopicOrPartition, ""},
        {{"my.topic", 2}, ErrorCode::kInvalidPartitions, "Topic already has 2 partition(s)."},
        {{"my.topic", 1},
         ErrorCode::kInvalidPartitions,
         "The topic my.topic currently has 2 partition(s); 1 would not be an increase."},
        {{"my.topic", 4, {{brokers({1, 2})}}},
         ErrorCode::kInvalidReplicaAssignment,
         "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified."},
        {{"my.topic", 3, {{brokers({1})}}},
         ErrorCode::kInvalidReplicaAssignment,
         "The manual partition assignment includes a partition with 1 replica(s), but this is not "
         "consistent with previous partitions, which have 2 replica(s)."},
        {{"my.topic", 3, {{brokers({1, 8})}}},
         ErrorCode::kInvalidReplicaAssignment,
         "The manual partition assignment includes broker 8, but no such broker is registered."},
    };
    for (const auto& row : rows) {
        expect_error(grow(row.topic), row.code, row.message);
        EXPECT_EQ(changes_, 0U);
    }
}

TEST_F(TopicAdmin, GrowthKeepsTheFactor) {
    ASSERT_TRUE(grow({"my.topic", 5}));
    const auto& partitions = image_->topic("my.topic")->partitions;
    ASSERT_EQ(partitions.size(), 5U);
    EXPECT_EQ(partitions[4].replicas.size(), 2U);
    ASSERT_TRUE(grow({"my.topic", 6, {{brokers({2, 1})}}}));
    EXPECT_EQ(image_->topic("my.topic")->partitions[5].replicas, brokers({2, 1}));
}

TEST_F(TopicAdmin, TopicsAreDeletedByNameAndById) {
    const auto other = create({.name = "other"}).id;
    const auto first = image_->topic("my.topic")->id;
    const auto deleted = remove({std::string("my.topic"), other});
    ASSERT_EQ(deleted.size(), 2U);
    for (const auto& topic : deleted) EXPECT_TRUE(topic.outcome);
    EXPECT_EQ(deleted[0].id, first);
    EXPECT_EQ(deleted[1].name, "other");
    EXPECT_EQ(image_->topic_count(), 0U);
    EXPECT_EQ(image_->deletions().size(), 2U);
}

TEST_F(TopicAdmin, DeletionFaultsGetApachesWords) {
    const auto id = image_->topic("my.topic")->id;
    const base::TopicId stranger{base::Uuid::random()};
    const auto only = [&](std::vector<std::variant<std::string, base::TopicId>> topics) {
        const auto deleted = remove(std::move(topics));
        EXPECT_EQ(deleted.size(), 1U);
        return deleted.front().outcome;
    };
    expect_error(only({std::string("none")}), ErrorCode::kUnknownTopicOrPartition,
                 "This server does not host this topic-partition.");
    expect_error(only({stranger}), ErrorCode::kUnknownTopicId,
                 "This server does not host this topic ID.");
    expect_error(only({std::string("my.topic"), std::string("my.topic")}),
                 ErrorCode::kInvalidRequest, "Duplicate topic name.");
    expect_error(only({id, id}), ErrorCode::kInvalidRequest, "Duplicate topic id.");
    expect_error(only({std::string("my.topic"), id}), ErrorCode::kInvalidRequest,
                 "The provided topic name maps to an ID that was already supplied.");
    EXPECT_NE(image_->topic("my.topic"), nullptr);
}

// The controller that made them died before it could say so; who asks the next one must not hear
// that they exist already, and must hear it of what somebody else has made.
TEST_F(TopicAdmin, SecondAttemptFindsWhatTheFirstHasMade) {
    CreateTopics request;
    request.attempt.request = base::Uuid::random();
    request.topics = {{.name = "first", .partitions = 2, .configs = {{"retention.ms", "1"}}},
                      {.name = "second"}};
    const auto made = create(request);
    ASSERT_TRUE(made[0].outcome && made[1].outcome);
    EXPECT_NE(made[0].id, made[1].id);
    request.attempt.again = true;
    request.topics.push_back({.name = "third"});
    const auto answers = create(request);
    EXPECT_EQ(changes_, 1U) << "the third alone";
    for (std::size_t i = 0; i < made.size(); ++i) {
        EXPECT_TRUE(answers[i].outcome);
        EXPECT_EQ(answers[i].id, made[i].id);
        EXPECT_EQ(answers[i].partitions, made[i].partitions);
        EXPECT_EQ(answers[i].replication_factor, made[i].replication_factor);
        EXPECT_EQ(answers[i].configs, made[i].configs);
    }
    EXPECT_TRUE(answers[2].outcome);
}

TEST_F(TopicAdmin, SecondAttemptIsRefusedWhatAnotherRequestHasMade) {
    create({.name = "other"});
    CreateTopics request;
    request.attempt = {.request = base::Uuid::random(), .again = true};
    request.topics = {{.name = "other"}};
    expect_error(create(request).front().outcome, ErrorCode::kTopicAlreadyExists,
                 "Topic 'other' already exists.");
    request.attempt.again = false;
    request.topics = {{.name = "new"}};
    EXPECT_TRUE(create(request).front().outcome);
    expect_error(create(request).front().outcome, ErrorCode::kTopicAlreadyExists,
                 "Topic 'new' already exists.");
}

TEST_F(TopicAdmin, SecondAttemptOfADeletionOrAGrowthIsDone) {
    EXPECT_TRUE(remove({"my.topic"}, {.again = true}).front().outcome);
    EXPECT_EQ(image_->topic("my.topic"), nullptr);
    EXPECT_TRUE(remove({"my.topic"}, {.again = true}).front().outcome);
    EXPECT_FALSE(remove({"my.topic"}).front().outcome);
    create({.name = "grows", .partitions = 2});
    EXPECT_TRUE(grow({.name = "grows", .count = 3}));
    EXPECT_TRUE(grow({.name = "grows", .count = 3}, {.again = true}));
    EXPECT_EQ(changes_, 0U);
    EXPECT_FALSE(grow({.name = "grows", .count = 2}, {.again = true}));
}

TEST_F(TopicAdmin, ConfigsAreCheckedAsAWhole) {
    config_.topic_config_fault =
        [](const catalog::ConfigMap& configs) -> std::optional<std::string> {
        if (configs.contains("a") && configs.contains("b")) return "not both";
        return std::nullopt;
    };
    const auto alter = [&](AlterConfigs request) {
        Draft draft(*image_);
        auto altered = plan(request, config_, draft);
        image_ = std::move(draft).finish();
        return altered;
    };
    const std::string topic = "my.topic";
    ASSERT_TRUE(alter({.resource = topic, .values = {{"a", "1"}}}));
    expect_error(alter({.resource = topic, .values = {{"b", "1"}}}), ErrorCode::kInvalidConfig,
                 "not both");
    ASSERT_TRUE(alter({.resource = topic, .values = {{"b", "2"}, {"a", std::nullopt}}}));
    EXPECT_EQ(image_->topic(topic)->configs, (catalog::ConfigMap{{"b", "2"}}));
    ASSERT_TRUE(alter({.resource = topic, .values = {{"b", "3"}}, .validate_only = true}));
    EXPECT_EQ(image_->topic(topic)->configs, (catalog::ConfigMap{{"b", "2"}}));
    expect_error(alter({.resource = std::string("none"), .values = {}}),
                 ErrorCode::kUnknownTopicOrPartition, "The topic 'none' does not exist.");
    ASSERT_TRUE(alter({.resource = base::BrokerId(1), .values = {{"log.retention.ms", "5"}}}));
    EXPECT_EQ(image_->broker_configs(base::BrokerId(1)).at("log.retention.ms"), "5");
}

}  // namespace
}  // namespace kaas::cluster
