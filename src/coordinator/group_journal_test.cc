// Goal: a person can read a group's journal, edit it and put it back, and what is wrong in it is
// found. Method: lines and pictures as text.

#include "base/base64.h"
#include "base/ids.h"
#include "base/uuid.h"
#include "coordinator/testing_members.h"
#include "coordinator/testing_slot.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

namespace kaas::coordinator::testing {
namespace {

namespace json = boost::json;

/// A slot that nothing runs in: for what it makes of a journal.
struct Loaded {
    base::ManualClock clock;
    base::TimerQueue timers;
    base::metrics::Registry registry;
    GroupMetrics metrics{registry};
    GroupConfig config;
    ManualJournal journal;
    GroupSlot slot{journal, timers, clock, config, metrics};

    std::string picture(std::string_view text) {
        auto loaded = slot.load_picture(json::parse(text).as_object());
        return loaded ? "" : loaded.error().context;
    }
    catalog::Result<void> change(std::string_view text) {
        return slot.load_change(json::parse(text).as_object());
    }
};

TEST(GroupJournal, CommitIsOneLineThatAPersonCanRead) {
    TestSlot slot;
    CommitTopic topic{.id = {base::Uuid::parse("AAAAAAAAAAAAAAAAAAAAAQ").value()},
                      .name = "orders",
                      .partitions = {{base::PartitionId{0}, base::Offset{42}, -1, {}},
                                     {base::PartitionId{1}, base::Offset{17}, 3, ""},
                                     {base::PartitionId{2}, base::Offset{5}, -1, "a \"note\""}}};
    EXPECT_EQ(
        commit(slot,
               {.group_id = kGroup, .member = {}, .topics = {topic, commit_topic("other", {1})}}),
        ErrorCode::kNone);
    EXPECT_EQ(slot.last_line(),
              R"({"change":"offsets-committed","group":"g","at":1700000000000,"topics":[)"
              R"({"topic":"orders","id":"AAAAAAAAAAAAAAAAAAAAAQ",)"
              R"("partitions":{"0":42,"1":[17,3],"2":[5,-1,"a \"note\""]}},)"
              R"({"topic":"other","partitions":{"0":1}}]})");
}

TEST(GroupJournal, TransactionIsTwoLines) {
    TestSlot slot;
    Reply<OffsetCommitAnswer> kept;
    slot->commit_in_transaction({.group_id = kGroup,
                                 .member = {},
                                 .producer_id = base::ProducerId{7},
                                 .producer_epoch = base::ProducerEpoch{2},
                                 .topics = {commit_topic("t", {1})}},
                                kept.done());
    EXPECT_EQ(slot.last_line(),
              R"({"change":"offsets-committed","group":"g","at":1700000000000,"producer":7,)"
              R"("epoch":2,"topics":[{"topic":"t","partitions":{"0":1}}]})");
    Reply<ErrorCode> ended;
    slot->end_transaction({.producer = base::ProducerId{7},
                           .epoch = base::ProducerEpoch{2},
                           .coordinator_epoch = 3,
                           .commit = true},
                          ended.done());
    EXPECT_EQ(slot.last_line(),
              R"({"change":"transaction-ended","producer":7,"epoch":2,"coordinator_epoch":3,)"
              R"("at":1700000000000,"commit":true})");
}

TEST(GroupJournal, GroupIsOneLineWithItsMembers) {
    TestSlot slot;
    auto request = join_request();
    request.member.group_instance_id = "i";
    auto joined = join(slot, request);
    slot.pass(seconds(3));
    TestMember member;
    member.take(*joined);
    (void)sync(slot, sync_request(member));
    const auto expected = json::parse(
        R"({"change":"group","group":"g","generation":1,"since":1700000003000,)"
        R"("protocol_type":"consumer","protocol":"range","leader":")" +
        member.id + R"(","members":[{"member":")" + member.id +
        R"(","instance":"i","client":"c","host":"/127.0.0.1","session_timeout_ms":10000,)"
        R"("rebalance_timeout_ms":60000,"metadata":")" +
        base::to_base64(subscription({"t"})) + R"(","assignment":")" +
        base::to_base64("assigned to " + member.id) + R"("}]})");
    EXPECT_EQ(json::parse(slot.last_line()), expected) << slot.last_line();
}

TEST(GroupJournal, DeletionsSayWhatGoes) {
    TestSlot slot;
    EXPECT_EQ(commit_simple(slot, {1, 2, 3}), ErrorCode::kNone);
    Reply<OffsetDeleteAnswer> removed;
    slot->delete_offsets(
        {.group_id = kGroup, .topics = {{"t", {base::PartitionId{2}, base::PartitionId{0}}}}},
        removed.done());
    EXPECT_EQ(slot.last_line(), R"({"change":"offsets-deleted","group":"g","topics":[{"topic":"t",)"
                                R"("partitions":[0,2]}]})");
}

TEST(GroupJournal, PictureSaysWhatWasCommittedTogetherInOnePlace) {
    TestSlot slot;
    EXPECT_EQ(commit_simple(slot, {1, 2}), ErrorCode::kNone);
    slot.pass(seconds(1));
    EXPECT_EQ(commit_simple(slot, {3}), ErrorCode::kNone);
    EXPECT_EQ(json::serialize(slot->picture()),
              R"({"format":1,"groups":[{"group":"g","offsets":[)"
              R"({"at":1700000000000,"topics":[{"topic":"t","partitions":{"1":2}}]},)"
              R"({"at":1700000001000,"topics":[{"topic":"t","partitions":{"0":3}}]}]}],)"
              R"("producers":[]})");
}

TEST(GroupJournal, EmptySlotAndOneWithoutAPastAreAlike) {
    Loaded loaded;
    EXPECT_EQ(loaded.picture("{}"), "");
    EXPECT_EQ(json::serialize(loaded.slot.picture()), R"({"format":1,"groups":[],"producers":[]})");
}

TEST(GroupJournal, KeysThatThisVersionDoesNotKnowAreKept) {
    Loaded loaded;
    const std::string picture =
        R"({"format":1,"groups":[{"group":"g","generation":4,"protocol_type":"consumer","members":[],)"
        R"("note":"by hand","offsets":[{"at":1,"topics":[{"topic":"t","partitions":{"0":9}}]}]}],)"
        R"("producers":[],"later":{"a":1}})";
    ASSERT_EQ(loaded.picture(picture), "");
    EXPECT_EQ(loaded.slot.picture(), json::parse(picture).as_object());
    EXPECT_TRUE(
        loaded.change(R"({"change":"group","group":"g","generation":5,"members":[],"x":1})"));
    EXPECT_TRUE(loaded.slot.picture().contains("later"));
}

TEST(GroupJournal, UnknownKeysOfAGroupOutliveItsNextGeneration) {
    TestSlot slot;
    ASSERT_TRUE(slot->load_change(
        json::parse(R"({"change":"group","group":"g","generation":4,"members":[],"note":"kept"})")
            .as_object()));
    (void)join_new(slot);
    slot.pass(seconds(10));
    slot.pass(seconds(300));
    EXPECT_TRUE(slot.last_line().contains(R"("note":"kept")")) << slot.last_line();
}

TEST(GroupJournal, LinesOfALaterVersionStopUs) {
    Loaded loaded;
    const auto refused = loaded.change(R"({"change":"group-frozen","group":"g"})");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, catalog::ErrorCode::kNewerFormat);
    const auto picture = loaded.slot.load_picture({{"format", 2}});
    ASSERT_FALSE(picture);
    EXPECT_EQ(picture.error().code, catalog::ErrorCode::kNewerFormat);
}

TEST(GroupJournal, WhatIsWrongIsSaid) {
    const std::pair<std::string_view, std::string_view> rows[] = {
        {R"({"format":"x"})", "format"},
        {R"({"groups":7})", "groups"},
        {R"({"groups":[7]})", "no object"},
        {R"({"groups":[{}]})", "'group'"},
        {R"({"groups":[{"group":"g"},{"group":"g"}]})", "twice"},
        {R"({"groups":[{"group":"g","generation":"x"}]})", "generation"},
        {R"({"groups":[{"group":"g","generation":1,"members":[{}]}]})", "member"},
        {R"({"groups":[{"group":"g","offsets":[{"topics":[]}]}]})", "'at'"},
        {R"({"groups":[{"group":"g","offsets":[{"at":1,"topics":[{"topic":"t",)"
         R"("partitions":{"x":1}}]}]}]})",
         "'x'"},
        {R"({"groups":[{"group":"g","offsets":[{"at":1,"topics":[{"topic":"t",)"
         R"("partitions":{"-1":1}}]}]}]})",
         "'-1'"},
        {R"({"groups":[{"group":"g","offsets":[{"at":1,"topics":[{"topic":"t",)"
         R"("partitions":{"0":[]}}]}]}]})",
         "partition '0'"},
        {R"({"groups":[{"group":"g","offsets":[{"at":1,"topics":[{"topic":"t",)"
         R"("partitions":{"0":[1,2,3]}}]}]}]})",
         "partition '0'"},
        {R"({"groups":[{"group":"g","pending":[{"at":1,"topics":[]}]}]})", "no producer"},
        {R"({"producers":[{"producer":1}]})", "epoch"},
    };
    for (const auto& [text, expected] : rows) {
        Loaded loaded;
        const auto fault = loaded.picture(text);
        EXPECT_TRUE(fault.contains(expected)) << text << ": " << fault;
    }
}

TEST(GroupJournal, MembersMustFitTogether) {
    const auto member = [](std::string_view id, std::string_view instance = {}) {
        return R"({"member":")" + std::string(id) + R"(",)" +
               (instance.empty() ? "" : R"("instance":")" + std::string(instance) + R"(",)") +
               R"("client":"c","host":"h","session_timeout_ms":1,"rebalance_timeout_ms":1,)"
               R"("metadata":"","assignment":""})";
    };
    const auto error_of = [&](const std::string& head, const std::string& members) {
        Loaded loaded;
        auto result = loaded.change(R"({"change":"group","group":"g","generation":1,)" + head +
                                    R"("members":[)" + members + "]}");
        return result ? std::string() : result.error().context;
    };
    const std::string head = R"("protocol_type":"consumer","protocol":"range","leader":"a",)";
    EXPECT_EQ(error_of(head, member("a") + "," + member("b")), "");
    EXPECT_TRUE(error_of(head, member("b")).contains("no leader"));
    EXPECT_TRUE(error_of(head, member("a") + "," + member("a")).contains("a member twice"));
    EXPECT_TRUE(
        error_of(head, member("a", "i") + "," + member("b", "i")).contains("instance id twice"));
    EXPECT_TRUE(error_of("", member("a")).contains("no protocol"));
    auto no_base64 = member("a");
    no_base64.replace(no_base64.find(R"("metadata":"")"), 13, R"("metadata":"*")");
    EXPECT_TRUE(error_of(head, no_base64).contains("base64"));
}

}  // namespace
}  // namespace kaas::coordinator::testing
