// Goal: offsets are committed by those who may, found again, and go when Apache's would. Method:
// one slot with a journal in memory and virtual time.

#include "base/ids.h"
#include "base/uuid.h"
#include "coordinator/testing_members.h"
#include "coordinator/testing_slot.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace kaas::coordinator::testing {
namespace {

using std::chrono::days;
using std::chrono::minutes;

base::TopicId topic_id(char digit) {
    return {base::Uuid::parse(std::string(21, 'A') + (digit == '1' ? 'Q' : 'g')).value()};
}

OffsetCommitRequest commit_of(const TestMember& member,
                              std::initializer_list<std::int64_t> offsets) {
    return {.version = 9,
            .group_id = kGroup,
            .member = {.member_id = member.id},
            .generation = member.generation,
            .topics = {commit_topic("t", offsets)}};
}

TEST(OffsetCommit, OfSomebodyWithoutAGroupMakesASimpleOne) {
    TestSlot slot;
    EXPECT_EQ(fetched(slot), -1);
    EXPECT_EQ(commit_simple(slot, {5, 6}), ErrorCode::kNone);
    EXPECT_EQ(fetched(slot, 0), 5);
    EXPECT_EQ(fetched(slot, 1), 6);
    EXPECT_EQ(fetched(slot, 2), -1);
    const auto group = describe(slot);
    EXPECT_EQ(group.error, ErrorCode::kNone);
    EXPECT_EQ(group.state, "Empty");
    EXPECT_EQ(group.protocol_type, "");
    slot.restart();
    EXPECT_EQ(fetched(slot, 1), 6);
    EXPECT_EQ(state(slot), "Empty");
}

TEST(OffsetCommit, AnswerComesWhenTheOffsetIsDurable) {
    TestSlot slot;
    Reply<OffsetCommitAnswer> kept;
    slot->commit({.group_id = kGroup, .member = {}, .topics = {commit_topic("t", {1})}},
                 kept.done());
    EXPECT_FALSE(kept.came());
    slot.settle();
    EXPECT_TRUE(kept.came());
    Reply<OffsetCommitAnswer> lost;
    slot->commit({.group_id = kGroup, .member = {}, .topics = {commit_topic("t", {2})}},
                 lost.done());
    slot.journal->settle_waiting(false);
    EXPECT_EQ(lost->topics[0].partitions[0].error, ErrorCode::kNotCoordinator);
}

TEST(OffsetCommit, OnlyMembersOfTheGenerationCommitToARunningGroup) {
    TestSlot slot;
    auto members = stable_group(slot, 1);
    EXPECT_EQ(commit(slot, commit_of(members[0], {3})), ErrorCode::kNone);
    EXPECT_EQ(commit_simple(slot, {4}), ErrorCode::kUnknownMemberId);
    EXPECT_EQ(commit(slot, commit_of({.id = "x", .generation = 1}, {4})),
              ErrorCode::kUnknownMemberId);
    EXPECT_EQ(commit(slot, commit_of({.id = members[0].id, .generation = 0}, {4})),
              ErrorCode::kIllegalGeneration);
    EXPECT_EQ(commit(slot, commit_of({.id = members[0].id, .generation = -1}, {4})),
              ErrorCode::kIllegalGeneration);
    EXPECT_EQ(fetched(slot), 3);
}

TEST(OffsetCommit, UnknownGroupHasNoGeneration) {
    TestSlot slot;
    auto request = commit_of({.id = "m", .generation = 1}, {1});
    EXPECT_EQ(commit(slot, request), ErrorCode::kGroupIdNotFound);
    request.version = 8;
    EXPECT_EQ(commit(slot, request), ErrorCode::kIllegalGeneration);
    EXPECT_EQ(state(slot), "Dead");
}

TEST(OffsetCommit, DuringARebalanceCountsUntilTheNextGenerationBegins) {
    TestSlot slot;
    auto members = stable_group(slot, 2);
    (void)join(slot, join_request(members[0].id));
    EXPECT_EQ(state(slot), "PreparingRebalance");
    EXPECT_EQ(commit(slot, commit_of(members[1], {7})), ErrorCode::kNone);
    auto joined = join(slot, join_request(members[1].id));
    EXPECT_EQ(state(slot), "CompletingRebalance");
    EXPECT_EQ(commit(slot, commit_of(members[1], {8})), ErrorCode::kIllegalGeneration);
    members[1].take(*joined);
    EXPECT_EQ(commit(slot, commit_of(members[1], {8})), ErrorCode::kRebalanceInProgress);
    EXPECT_EQ(fetched(slot), 7);
}

TEST(OffsetCommit, KeepsTheMemberAlive) {
    TestSlot slot;
    auto members = stable_group(slot, 1);
    slot.pass(seconds(9));
    EXPECT_EQ(commit(slot, commit_of(members[0], {1})), ErrorCode::kNone);
    slot.pass(seconds(9));
    EXPECT_EQ(heartbeat(slot, members[0]), ErrorCode::kNone);
}

TEST(OffsetCommit, TooMuchMetadataRefusesItsPartitionAlone) {
    TestSlot slot;
    auto topic = commit_topic("t", {1, 2, 3, 4});
    topic.partitions[0].metadata = std::string(4096, 'x');
    topic.partitions[1].metadata = std::string(4097, 'x');
    // Java counts characters of 16 bits: 4,096 of them here, and 4,098 there.
    std::string umlauts;
    for (int i = 0; i < 4096; ++i) umlauts += "\xC3\xBC";
    topic.partitions[2].metadata = umlauts;
    std::string smileys;
    for (int i = 0; i < 2049; ++i) smileys += "\xF0\x9F\x98\x80";
    topic.partitions[3].metadata = smileys;
    Reply<OffsetCommitAnswer> reply;
    slot->commit({.group_id = kGroup, .member = {}, .topics = {topic}}, reply.done());
    slot.settle();
    const auto& partitions = reply->topics.front().partitions;
    EXPECT_EQ(partitions[0].error, ErrorCode::kNone);
    EXPECT_EQ(partitions[1].error, ErrorCode::kOffsetMetadataTooLarge);
    EXPECT_EQ(partitions[2].error, ErrorCode::kNone);
    EXPECT_EQ(partitions[3].error, ErrorCode::kOffsetMetadataTooLarge);
    EXPECT_EQ(fetched(slot, 0), 1);
    EXPECT_EQ(fetched(slot, 1), -1);
    EXPECT_EQ(slot->picture(), slot.reloaded());
}

TEST(OffsetCommit, GroupOfNothingButRefusedOffsetsIsNone) {
    TestSlot slot;
    auto topic = commit_topic("t", {1});
    topic.partitions[0].metadata = std::string(5000, 'x');
    EXPECT_EQ(commit(slot, {.group_id = kGroup, .member = {}, .topics = {topic}}),
              ErrorCode::kOffsetMetadataTooLarge);
    EXPECT_EQ(state(slot), "Dead");
}

TEST(OffsetFetch, GivesBackAllThatWasCommitted) {
    TestSlot slot;
    CommitTopic topic{.id = topic_id('1'), .name = "t", .partitions = {}};
    topic.partitions.push_back(
        {base::PartitionId{3}, base::Offset{9}, 4, "a \"note\"\n\x01\xC3\xBC"});
    EXPECT_EQ(commit(slot, {.group_id = kGroup, .member = {}, .topics = {topic}}),
              ErrorCode::kNone);
    for (int i = 0; i < 2; ++i) {
        const auto all = fetch(slot, {.group_id = kGroup});
        ASSERT_EQ(all.topics.size(), 1U);
        EXPECT_EQ(all.topics[0].name, "t");
        EXPECT_TRUE(all.topics[0].id.uuid.is_zero());
        ASSERT_EQ(all.topics[0].partitions.size(), 1U);
        const auto& one = all.topics[0].partitions[0];
        EXPECT_EQ(one.partition, base::PartitionId{3});
        EXPECT_EQ(one.offset, base::Offset{9});
        EXPECT_EQ(one.leader_epoch, 4);
        EXPECT_EQ(one.metadata, "a \"note\"\n\x01\xC3\xBC");
        slot.restart();
    }
}

TEST(OffsetFetch, OffsetOfATopicThatHadTheNameBeforeIsNone) {
    TestSlot slot;
    auto topic = commit_topic("t", {5});
    topic.id = topic_id('1');
    EXPECT_EQ(commit(slot, {.group_id = kGroup, .member = {}, .topics = {topic}}),
              ErrorCode::kNone);
    const auto offset_of = [&](base::TopicId id) {
        return fetch(slot, {.group_id = kGroup, .topics = {{{id, "t", {base::PartitionId{0}}}}}})
            .topics[0]
            .partitions[0]
            .offset;
    };
    EXPECT_EQ(offset_of(topic_id('1')), base::Offset{5});
    EXPECT_EQ(offset_of(topic_id('2')), base::Offset{-1});
    EXPECT_EQ(offset_of({}), base::Offset{5}) << "older versions name the topic only";
}

TEST(OffsetFetch, UnknownGroupHasNoOffsetsAndNoError) {
    TestSlot slot;
    EXPECT_EQ(fetched(slot), -1);
    EXPECT_TRUE(fetch(slot, {.group_id = kGroup}).topics.empty());
}

TEST(OffsetFetch, WaitsForACheckOfTheLeadership) {
    TestSlot slot;
    Reply<OffsetFetchAnswer> reply;
    slot->fetch({.group_id = kGroup}, reply.done());
    EXPECT_FALSE(reply.came());
    slot.journal->settle_waiting(false);
    EXPECT_EQ(reply->error, ErrorCode::kNotCoordinator);
}

TEST(OffsetDelete, RemovesWhatNobodyReads) {
    TestSlot slot;
    const auto remove = [&](const std::string& topic) {
        Reply<OffsetDeleteAnswer> reply;
        slot->delete_offsets(
            {.group_id = kGroup, .topics = {{topic, {base::PartitionId{0}, base::PartitionId{7}}}}},
            reply.done());
        slot.settle();
        return *reply;
    };
    EXPECT_EQ(remove("t").error, ErrorCode::kGroupIdNotFound);
    auto members = stable_group(slot, 1);
    auto request = commit_of(members[0], {1});
    request.topics.push_back(commit_topic("u", {2, 3}));
    EXPECT_EQ(commit(slot, request), ErrorCode::kNone);
    EXPECT_EQ(remove("t").topics[0].partitions[0].error, ErrorCode::kGroupSubscribedToTopic);
    const auto answer = remove("u");
    EXPECT_EQ(answer.error, ErrorCode::kNone);
    EXPECT_EQ(answer.topics[0].partitions[0].error, ErrorCode::kNone);
    EXPECT_EQ(answer.topics[0].partitions[1].error, ErrorCode::kNone) << "there was none";
    const auto all = fetch(slot, {.group_id = kGroup});
    ASSERT_EQ(all.topics.size(), 2U);
    EXPECT_EQ(all.topics[1].partitions.size(), 1U) << "partition 1 of u stays";
    EXPECT_EQ(leave(slot, members[0].id), ErrorCode::kNone);
    EXPECT_EQ(remove("t").topics[0].partitions[0].error, ErrorCode::kNone);
    EXPECT_EQ(fetched(slot), -1);
    EXPECT_EQ(slot->picture(), slot.reloaded());
    slot.restart();
    EXPECT_EQ(fetched(slot), -1);
}

TEST(OffsetDelete, NobodyCanTellWhatOtherProtocolsRead) {
    TestSlot slot;
    auto request = join_request();
    request.protocol_type = "connect";
    const auto id = id_from(slot, request);
    request.member.member_id = id;
    (void)join(slot, request);
    slot.pass(seconds(3));
    Reply<OffsetDeleteAnswer> reply;
    slot->delete_offsets({.group_id = kGroup, .topics = {{"t", {base::PartitionId{0}}}}},
                         reply.done());
    EXPECT_EQ(reply->error, ErrorCode::kNonEmptyGroup);
}

TEST(OffsetDelete, SubscriptionThatCannotBeReadCoversEveryTopic) {
    TestSlot slot;
    auto request = join_request(id_from(slot));
    request.protocols = {{"range", "no subscription"}};
    auto joined = join(slot, request);
    slot.pass(seconds(3));
    ASSERT_TRUE(joined.came());
    Reply<OffsetDeleteAnswer> reply;
    slot->delete_offsets({.group_id = kGroup, .topics = {{"other", {base::PartitionId{0}}}}},
                         reply.done());
    slot.settle();
    EXPECT_EQ(reply->topics[0].partitions[0].error, ErrorCode::kGroupSubscribedToTopic);
}

TEST(OffsetExpiry, SimpleGroupLosesEachOffsetByItsOwnAge) {
    TestSlot slot;
    EXPECT_EQ(commit_simple(slot, {1, 1}), ErrorCode::kNone);
    slot.pass(days(4));
    EXPECT_EQ(commit_simple(slot, {2}), ErrorCode::kNone);
    slot.pass(days(3) + minutes(10));
    EXPECT_EQ(fetched(slot, 0), 2);
    EXPECT_EQ(fetched(slot, 1), -1);
    EXPECT_EQ(slot.metrics.expired_offsets.value(), 1U);
    slot.pass(days(4));
    EXPECT_EQ(fetched(slot, 0), -1);
    EXPECT_EQ(state(slot), "Dead") << "a group that has nothing left is gone";
    slot.restart();
    EXPECT_EQ(state(slot), "Dead");
}

TEST(OffsetExpiry, GroupKeepsItsOffsetsFromWhenItWasEmpty) {
    TestSlot slot;
    auto members = stable_group(slot, 1);
    EXPECT_EQ(commit(slot, commit_of(members[0], {1})), ErrorCode::kNone);
    for (int i = 0; i < 8 * 24 * 60 * 60 / 9; ++i) {
        slot.pass(seconds(9));
        if (heartbeat(slot, members[0]) != ErrorCode::kNone) FAIL();
    }
    EXPECT_EQ(fetched(slot), 1) << "older than a week, but its topic is read";
    EXPECT_EQ(leave(slot, members[0].id), ErrorCode::kNone);
    slot.pass(days(6));
    EXPECT_EQ(fetched(slot), 1);
    slot.restart();
    slot.pass(days(1) - minutes(20));
    EXPECT_EQ(fetched(slot), 1);
    slot.pass(minutes(30));
    EXPECT_EQ(fetched(slot), -1);
    EXPECT_EQ(state(slot), "Dead");
}

TEST(OffsetExpiry, RunningGroupLosesOffsetsOfTopicsThatItReadsNoMore) {
    GroupConfig config;
    config.offsets_retention = minutes(30);
    TestSlot slot(config);
    auto members = stable_group(slot, 1);
    auto request = commit_of(members[0], {1});
    request.topics.push_back(commit_topic("u", {2}));
    EXPECT_EQ(commit(slot, request), ErrorCode::kNone);
    for (int i = 0; i < 41 * 60 / 9; ++i) {
        slot.pass(seconds(9));
        (void)heartbeat(slot, members[0]);
    }
    EXPECT_EQ(fetched(slot), 1);
    EXPECT_EQ(fetch(slot, {.group_id = kGroup}).topics.size(), 1U) << "u is gone";
    EXPECT_EQ(state(slot), "Stable");
}

TEST(OffsetExpiry, OldClientsSayHowLong) {
    TestSlot slot;
    EXPECT_EQ(commit(slot, {.version = 3,
                            .group_id = kGroup,
                            .member = {},
                            .retention = minutes(5),
                            .topics = {commit_topic("t", {1})}}),
              ErrorCode::kNone);
    EXPECT_EQ(slot->picture(), slot.reloaded());
    slot.restart();
    EXPECT_EQ(fetched(slot), 1);
    slot.pass(minutes(10));
    EXPECT_EQ(fetched(slot), -1);
}

TEST(OffsetExpiry, EmptyGroupWithoutOffsetsIsRemovedAtTheNextLook) {
    TestSlot slot;
    auto members = stable_group(slot, 1);
    EXPECT_EQ(leave(slot, members[0].id), ErrorCode::kNone);
    EXPECT_EQ(state(slot), "Empty");
    slot.pass(minutes(10));
    EXPECT_EQ(state(slot), "Dead");
    EXPECT_EQ(slot.last_line(), R"({"change":"group-deleted","group":"g"})");
}

TEST(DeletedTopics, TakeTheirOffsetsWithThem) {
    TestSlot slot;
    auto topic = commit_topic("t", {5});
    topic.id = topic_id('1');
    OffsetCommitRequest request{.group_id = kGroup, .member = {}, .topics = {topic}};
    EXPECT_EQ(commit(slot, request), ErrorCode::kNone);
    slot->topics_deleted({{topic_id('2'), "t"}});
    EXPECT_EQ(fetched(slot), 5) << "another topic of this name";
    slot->topics_deleted({{topic_id('1'), "t"}});
    EXPECT_EQ(fetched(slot), -1);
    EXPECT_EQ(slot->picture(), slot.reloaded());
    EXPECT_EQ(commit_simple(slot, {6}), ErrorCode::kNone);
    slot->topics_deleted({{topic_id('2'), "t"}});
    EXPECT_EQ(fetched(slot), -1) << "an offset that does not say of which";
}

TEST(DeletedTopics, ThatWentWhileNobodyLedTheSlotAreFound) {
    TestSlot slot;
    auto old_topic = commit_topic("t", {5});
    old_topic.id = topic_id('1');
    auto kept_topic = commit_topic("u", {6});
    kept_topic.id = topic_id('2');
    EXPECT_EQ(commit(slot, {.group_id = kGroup, .member = {}, .topics = {old_topic, kept_topic}}),
              ErrorCode::kNone);
    slot->keep_topics([](const base::TopicId& id) { return id == topic_id('2'); });
    const auto all = fetch(slot, {.group_id = kGroup});
    ASSERT_EQ(all.topics.size(), 1U);
    EXPECT_EQ(all.topics[0].name, "u");
}

}  // namespace
}  // namespace kaas::coordinator::testing
