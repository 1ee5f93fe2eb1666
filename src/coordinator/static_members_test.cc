// Goal: static members (KIP-345) come back without a rebalance, and the one that has their place is
// the only one. Method: as in classic_protocol_test.cc.

#include "coordinator/testing_members.h"
#include "coordinator/testing_slot.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace kaas::coordinator::testing {
namespace {

JoinGroupRequest static_join(std::string instance, std::string member_id = {}) {
    auto request = join_request(std::move(member_id));
    request.member.group_instance_id = std::move(instance);
    return request;
}

/// A stable group of static members "a" (who leads) and "b".
struct Pair {
    TestMember a;
    TestMember b;
};
Pair stable_pair(TestSlot& slot) {
    Pair pair;
    auto a = join(slot, static_join("a"));
    auto b = join(slot, static_join("b"));
    slot.pass(seconds(6));
    pair.a.take(*a);
    pair.b.take(*b);
    EXPECT_TRUE(pair.a.leads);
    for (const auto& member : {pair.a, pair.b}) (void)sync(slot, sync_request(member));
    slot.settle();
    for (const auto& member : {pair.a, pair.b})
        EXPECT_EQ(heartbeat(slot, member), ErrorCode::kNone);
    return pair;
}

std::string assignment_of(TestSlot& slot, const std::string& member_id) {
    for (const auto& member : describe(slot).members) {
        if (member.member.member_id == member_id) return member.assignment;
    }
    return "no such member";
}

TEST(StaticMembers, ComeInOneStepUnderTheirOwnName) {
    TestSlot slot;
    auto joined = join(slot, static_join("a"));
    slot.pass(seconds(3));
    EXPECT_EQ(joined->error, ErrorCode::kNone);
    EXPECT_TRUE(joined->member_id.starts_with("a-")) << joined->member_id;
    ASSERT_EQ(joined->members.size(), 1U);
    EXPECT_EQ(joined->members[0].member.group_instance_id, "a");
}

TEST(StaticMembers, RestartedFollowerKeepsItsPlaceWithoutARebalance) {
    TestSlot slot;
    auto [a, b] = stable_pair(slot);
    auto again = join(slot, static_join("b"));
    EXPECT_FALSE(again.came()) << "the new id must be kept first";
    slot.settle();
    ASSERT_TRUE(again.came());
    EXPECT_EQ(again->error, ErrorCode::kNone);
    EXPECT_NE(again->member_id, b.id);
    EXPECT_EQ(again->generation, 1);
    EXPECT_EQ(again->leader, a.id);
    EXPECT_FALSE(again->skip_assignment);
    EXPECT_TRUE(again->members.empty());
    EXPECT_EQ(state(slot), "Stable");
    EXPECT_EQ(assignment_of(slot, again->member_id), "assigned to " + b.id);
    EXPECT_EQ(heartbeat(slot, a), ErrorCode::kNone);
    EXPECT_EQ(slot->picture(), slot.reloaded());
}

TEST(StaticMembers, RestartedLeaderHearsOfAllAndLeavesTheAssignmentAsItIs) {
    TestSlot slot;
    auto [a, b] = stable_pair(slot);
    auto again = join(slot, static_join("a"));
    slot.settle();
    EXPECT_EQ(again->leader, again->member_id);
    EXPECT_TRUE(again->skip_assignment);
    EXPECT_EQ(again->members.size(), 2U);
    TestMember back;
    back.take(*again);
    auto synced = sync(slot, sync_request(back));
    slot.settle();
    EXPECT_EQ(synced->assignment, "assigned to " + a.id) << "that of the generation";
}

TEST(StaticMembers, RestartedLeaderOfAnOldVersionIsNotToldThatItLeads) {
    TestSlot slot;
    auto [a, b] = stable_pair(slot);
    auto request = static_join("a");
    request.client.version = 8;
    auto again = join(slot, std::move(request));
    slot.settle();
    EXPECT_EQ(again->leader, a.id);
    EXPECT_FALSE(again->skip_assignment);
    EXPECT_TRUE(again->members.empty());
}

TEST(StaticMembers, RestartWithOtherProtocolsThatChangeTheChoiceRebalances) {
    TestSlot slot;
    std::vector<Reply<JoinGroupAnswer>> joins;
    for (const auto* instance : {"a", "b"}) {
        auto request = static_join(instance);
        request.protocols = {{"range", ""}, {"sticky", ""}};
        joins.push_back(join(slot, std::move(request)));
    }
    slot.pass(seconds(6));
    TestMember leader;
    leader.take(*joins[0]);
    (void)sync(slot, sync_request(leader));
    slot.settle();
    EXPECT_EQ(state(slot), "Stable");
    auto request = static_join("b");
    request.protocols = {{"sticky", ""}};
    auto again = join(slot, std::move(request));
    EXPECT_FALSE(again.came());
    EXPECT_EQ(state(slot), "PreparingRebalance");
    auto other = join_request(leader.id);
    other.protocols = {{"range", ""}, {"sticky", ""}};
    (void)join(slot, std::move(other));
    EXPECT_EQ(again->protocol_name, "sticky");
}

TEST(StaticMembers, RestartWithAnotherSubscriptionKeepsTheGeneration) {
    TestSlot slot;
    auto [a, b] = stable_pair(slot);
    auto request = static_join("b");
    request.protocols = {{"range", subscription({"u"})}};
    auto again = join(slot, std::move(request));
    slot.settle();
    EXPECT_EQ(again->generation, 1);
    EXPECT_EQ(state(slot), "Stable");
    slot.restart();
    EXPECT_EQ(heartbeat(slot, {.id = again->member_id, .generation = 1}), ErrorCode::kNone);
}

TEST(StaticMembers, ReplacedOneIsFencedEverywhere) {
    TestSlot slot;
    auto [a, b] = stable_pair(slot);
    auto again = join(slot, static_join("b"));
    slot.settle();
    const MemberIdentity fenced{.member_id = b.id, .group_instance_id = "b"};
    Reply<ErrorCode> beat;
    slot->heartbeat({.group_id = kGroup, .member = fenced, .generation = 1}, beat.done());
    EXPECT_EQ(*beat, ErrorCode::kFencedInstanceId);
    auto request = sync_request(b);
    request.member = fenced;
    EXPECT_EQ(sync(slot, request)->error, ErrorCode::kFencedInstanceId);
    EXPECT_EQ(join(slot, static_join("b", b.id))->error, ErrorCode::kFencedInstanceId);
    EXPECT_EQ(commit(slot, {.group_id = kGroup,
                            .member = fenced,
                            .generation = 1,
                            .topics = {commit_topic("t", {1})}}),
              ErrorCode::kFencedInstanceId);
    Reply<LeaveGroupAnswer> left;
    slot->leave({.group_id = kGroup, .members = {{.identity = fenced}}}, left.done());
    slot.settle();
    EXPECT_EQ(left->members.front().error, ErrorCode::kFencedInstanceId);
    // Without its instance id it is nobody.
    EXPECT_EQ(heartbeat(slot, b), ErrorCode::kUnknownMemberId);
}

TEST(StaticMembers, ReplacedOneThatWaitsIsFenced) {
    TestSlot slot;
    auto [a, b] = stable_pair(slot);
    auto joining = join(slot, static_join("a", a.id));
    auto thief = join(slot, static_join("a"));
    EXPECT_EQ(joining->error, ErrorCode::kFencedInstanceId);
    EXPECT_EQ(joining->member_id, a.id);
    auto other = join(slot, static_join("b", b.id));
    TestMember follower;
    follower.take(*other);
    auto syncing = sync(slot, sync_request(follower));
    (void)join(slot, static_join("b"));
    EXPECT_EQ(syncing->error, ErrorCode::kFencedInstanceId);
}

TEST(StaticMembers, UnknownInstanceIsNoMember) {
    TestSlot slot;
    auto [a, b] = stable_pair(slot);
    Reply<ErrorCode> beat;
    slot->heartbeat({.group_id = kGroup,
                     .member = {.member_id = a.id, .group_instance_id = "c"},
                     .generation = 1},
                    beat.done());
    EXPECT_EQ(*beat, ErrorCode::kUnknownMemberId);
}

TEST(StaticMembers, RestartWhileAssignmentsAreAwaitedRebalances) {
    TestSlot slot;
    auto a = join(slot, static_join("a"));
    auto b = join(slot, static_join("b"));
    slot.pass(seconds(6));
    auto again = join(slot, static_join("b"));
    EXPECT_EQ(state(slot), "PreparingRebalance");
    auto other = join(slot, static_join("a", a->member_id));
    EXPECT_EQ(again->generation, 2);
    EXPECT_EQ(other->members.size(), 2U);
}

TEST(StaticMembers, StayThroughARebalanceThatTheyMiss) {
    TestSlot slot;
    auto [a, b] = stable_pair(slot);
    auto request = static_join("a", a.id);
    request.session_timeout = std::chrono::minutes(30);
    auto leader = join(slot, request);
    for (int i = 0; i < 8; ++i) {
        slot.pass(seconds(8));
        Reply<ErrorCode> beat;
        slot->heartbeat({.group_id = kGroup,
                         .member = {.member_id = b.id, .group_instance_id = "b"},
                         .generation = leader.came() ? 2 : 1},
                        beat.done());
        EXPECT_NE(*beat, ErrorCode::kUnknownMemberId);
    }
    ASSERT_TRUE(leader.came());
    EXPECT_EQ(leader->members.size(), 2U) << "b did not join, and is in it";
}

TEST(StaticMembers, RebalanceThatNoneOfThemTakesPartInWaitsOn) {
    TestSlot slot;
    auto [a, b] = stable_pair(slot);
    auto dynamic = join_new(slot);
    slot.settle();
    EXPECT_EQ(leave(slot, "x"), ErrorCode::kUnknownMemberId);
    // The only one that joins goes away again; the two static ones live, but do not join.
    const auto described = describe(slot);
    for (const auto& member : described.members) {
        if (!member.member.group_instance_id) {
            EXPECT_EQ(leave(slot, member.member.member_id), ErrorCode::kNone);
        }
    }
    EXPECT_EQ(dynamic->error, ErrorCode::kUnknownMemberId);
    for (int i = 0; i < 10; ++i) {
        slot.pass(seconds(8));
        for (const auto& [id, instance] : {std::pair(a.id, "a"), std::pair(b.id, "b")}) {
            Reply<ErrorCode> beat;
            slot->heartbeat({.group_id = kGroup,
                             .member = {.member_id = id, .group_instance_id = instance},
                             .generation = 1},
                            beat.done());
            EXPECT_EQ(*beat, ErrorCode::kRebalanceInProgress);
        }
    }
    EXPECT_EQ(state(slot), "PreparingRebalance");
    auto back = join(slot, static_join("a", a.id));
    slot.pass(seconds(60));
    EXPECT_TRUE(back.came());
}

TEST(StaticMembers, AreRemovedByTheirInstanceIdWithOthersInOneRequest) {
    TestSlot slot;
    auto [a, b] = stable_pair(slot);
    Reply<LeaveGroupAnswer> left;
    slot->leave({.group_id = kGroup,
                 .members = {{.identity = {.member_id = "", .group_instance_id = "b"}},
                             {.identity = {.member_id = "", .group_instance_id = "c"}},
                             {.identity = {.member_id = ""}},
                             {.identity = {.member_id = a.id, .group_instance_id = "a"}}}},
                left.done());
    slot.settle();
    EXPECT_EQ(left->error, ErrorCode::kNone);
    ASSERT_EQ(left->members.size(), 4U);
    EXPECT_EQ(left->members[0].error, ErrorCode::kNone);
    EXPECT_EQ(left->members[0].identity.group_instance_id, "b");
    EXPECT_EQ(left->members[1].error, ErrorCode::kUnknownMemberId);
    EXPECT_EQ(left->members[2].error, ErrorCode::kUnknownMemberId);
    EXPECT_EQ(left->members[3].error, ErrorCode::kNone);
    EXPECT_EQ(state(slot), "Empty");
}

TEST(StaticMembers, KeepTheirAssignmentWhenTheBrokerDies) {
    TestSlot slot;
    auto [a, b] = stable_pair(slot);
    slot.restart();
    auto again = join(slot, static_join("b"));
    slot.settle();
    EXPECT_EQ(again->generation, 1);
    TestMember back;
    back.take(*again);
    auto synced = sync(slot, sync_request(back));
    slot.settle();
    EXPECT_EQ(synced->assignment, "assigned to " + b.id);
}

TEST(StaticMembers, NewIdThatWasNotKeptIsNotGivenOut) {
    TestSlot slot;
    auto [a, b] = stable_pair(slot);
    auto again = join(slot, static_join("b"));
    slot.journal->settle_waiting(false);
    EXPECT_EQ(again->error, ErrorCode::kNotCoordinator);
}

}  // namespace
}  // namespace kaas::coordinator::testing
