// Goal: members of a group come, get their assignment, are missed and go as Apache's coordinator
// has it, with its codes. Method: one slot with a journal in memory and virtual time; clients are
// written down request by request.

#include "coordinator/testing_members.h"
#include "coordinator/testing_slot.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace kaas::coordinator::testing {
namespace {

TEST(JoinGroup, NewMemberMustComeBackWithTheIdItIsGiven) {
    TestSlot slot;
    const auto id = id_from(slot);
    EXPECT_TRUE(id.starts_with("c-")) << id;
    EXPECT_EQ(id.size(), std::string("c-123e4567-e89b-12d3-a456-426614174000").size());
    auto joined = join(slot, join_request(id));
    EXPECT_FALSE(joined.came());
    slot.pass(seconds(3));
    ASSERT_TRUE(joined.came());
    EXPECT_EQ(joined->error, ErrorCode::kNone);
    EXPECT_EQ(joined->member_id, id);
    EXPECT_EQ(joined->leader, id);
    EXPECT_EQ(joined->generation, 1);
    EXPECT_EQ(joined->protocol_type, "consumer");
    EXPECT_EQ(joined->protocol_name, "range");
    EXPECT_FALSE(joined->skip_assignment);
    ASSERT_EQ(joined->members.size(), 1U);
    EXPECT_EQ(joined->members[0].metadata, subscription({"t"}));
}

TEST(JoinGroup, OldClientsNeedNoSecondStep) {
    TestSlot slot;
    auto request = join_request();
    request.client.version = 3;
    auto joined = join(slot, std::move(request));
    slot.pass(seconds(3));
    EXPECT_EQ(joined->error, ErrorCode::kNone);
    EXPECT_TRUE(joined->member_id.starts_with("c-"));
}

TEST(JoinGroup, IdThatNobodyUsesIsForgotten) {
    TestSlot slot;
    const auto id = id_from(slot);
    slot.pass(seconds(10));
    EXPECT_EQ(join(slot, join_request(id))->error, ErrorCode::kUnknownMemberId);
}

TEST(JoinGroup, UnknownGroupKnowsNoMember) {
    TestSlot slot;
    auto joined = join(slot, join_request("somebody"));
    EXPECT_EQ(joined->error, ErrorCode::kUnknownMemberId);
    EXPECT_EQ(joined->member_id, "somebody");
    EXPECT_EQ(state(slot), "Dead");
}

TEST(JoinGroup, FirstRebalanceWaitsOnWhileMembersCome) {
    TestSlot slot;
    auto first = join_new(slot);
    slot.pass(seconds(2));
    auto second = join_new(slot);
    slot.pass(seconds(2));
    EXPECT_FALSE(first.came()) << "the second member came within the first delay";
    slot.pass(seconds(2));
    ASSERT_TRUE(first.came() && second.came());
    EXPECT_EQ(first->generation, 1);
    EXPECT_EQ(second->generation, 1);
    EXPECT_EQ(first->members.size() + second->members.size(), 2U) << "one leader hears of both";
}

TEST(JoinGroup, FirstRebalanceEndsByTheRebalanceTimeout) {
    TestSlot slot;
    auto request = join_request(id_from(slot));
    request.rebalance_timeout = seconds(7);
    auto first = join(slot, std::move(request));
    for (int i = 0; i < 3; ++i) {
        slot.pass(seconds(2));
        auto more = join_request(id_from(slot));
        more.rebalance_timeout = seconds(7);
        (void)join(slot, std::move(more));
    }
    EXPECT_FALSE(first.came());
    slot.pass(seconds(1));
    EXPECT_TRUE(first.came()) << "3 + 3 + 1 seconds are over";
}

TEST(JoinGroup, WithoutADelayTheFirstComesAlone) {
    GroupConfig config;
    config.initial_rebalance_delay = seconds(0);
    TestSlot slot(config);
    auto joined = join_new(slot);
    slot.pass(seconds(0));
    EXPECT_TRUE(joined.came());
}

TEST(JoinGroup, MemberMustShareAProtocolWithAllOthers) {
    TestSlot slot;
    auto nothing = join_request();
    nothing.protocols.clear();
    EXPECT_EQ(join(slot, nothing)->error, ErrorCode::kInconsistentGroupProtocol);
    auto no_type = join_request();
    no_type.protocol_type.clear();
    EXPECT_EQ(join(slot, no_type)->error, ErrorCode::kInconsistentGroupProtocol);

    (void)stable_group(slot, 1);
    auto other = join_request();
    other.protocols = {{"roundrobin", ""}};
    EXPECT_EQ(join(slot, other)->error, ErrorCode::kInconsistentGroupProtocol);
    other.protocols = {{"roundrobin", ""}, {"range", ""}};
    other.protocol_type = "connect";
    EXPECT_EQ(join(slot, other)->error, ErrorCode::kInconsistentGroupProtocol);
    other.protocol_type = "consumer";
    EXPECT_EQ(join(slot, other)->error, ErrorCode::kMemberIdRequired);
}

TEST(JoinGroup, ProtocolThatMostPutFirstWinsAmongThoseThatAllHave) {
    TestSlot slot;
    std::vector<Reply<JoinGroupAnswer>> joins;
    const std::vector<std::vector<std::string>> lists = {
        {"a", "b", "c"}, {"d", "b", "c"}, {"c", "b"}};
    for (const auto& list : lists) {
        auto request = join_request(id_from(slot, [&] {
            auto asking = join_request();
            asking.protocols.clear();
            for (const auto& name : list) asking.protocols.push_back({name, name});
            return asking;
        }()));
        request.protocols.clear();
        for (const auto& name : list) request.protocols.push_back({name, name});
        joins.push_back(join(slot, std::move(request)));
    }
    slot.pass(seconds(6));
    for (const auto& joined : joins) {
        EXPECT_EQ(joined->protocol_name, "b") << "two of three vote for it, and only b and c fit";
        for (const auto& member : joined->members) EXPECT_EQ(member.metadata, "b");
    }
}

TEST(JoinGroup, ProtocolThatIsNamedTwiceIsNoTwoVotes) {
    TestSlot slot;
    auto request = join_request(id_from(slot));
    request.protocols = {{"range", "1"}, {"range", "2"}};
    auto joined = join(slot, std::move(request));
    slot.pass(seconds(3));
    EXPECT_EQ(joined->protocol_name, "range");
    EXPECT_EQ(joined->members.front().metadata, "1");
}

TEST(JoinGroup, AFullGroupTakesNobody) {
    GroupConfig config;
    config.max_size = 2;
    TestSlot slot(config);
    auto members = stable_group(slot, 2);
    auto refused = join(slot, join_request());
    EXPECT_EQ(refused->error, ErrorCode::kGroupMaxSizeReached);
    EXPECT_EQ(refused->member_id, "");
    // A member of it may come back, and so may two of three who hold ids.
    EXPECT_FALSE(join(slot, join_request(members[0].id)).came());
}

TEST(JoinGroup, WhoeverComesTooLateInARebalanceFindsItFull) {
    GroupConfig config;
    config.max_size = 2;
    TestSlot slot(config);
    const std::string ids[] = {id_from(slot), id_from(slot), id_from(slot)};
    auto first = join(slot, join_request(ids[0]));
    auto second = join(slot, join_request(ids[1]));
    EXPECT_EQ(join(slot, join_request(ids[2]))->error, ErrorCode::kGroupMaxSizeReached);
    slot.pass(seconds(6));
    EXPECT_EQ(first->error, ErrorCode::kNone);
    EXPECT_EQ(second->error, ErrorCode::kNone);
}

TEST(JoinGroup, FollowerThatAsksAgainGetsItsGenerationAndNoRebalance) {
    TestSlot slot;
    auto members = stable_group(slot, 2);
    auto again = join(slot, join_request(members[1].id));
    ASSERT_TRUE(again.came());
    EXPECT_EQ(again->generation, 1);
    EXPECT_TRUE(again->members.empty());
    EXPECT_EQ(again->leader, members[0].id);
    EXPECT_EQ(state(slot), "Stable");
}

TEST(JoinGroup, LeaderThatAsksAgainWantsARebalance) {
    TestSlot slot;
    auto members = stable_group(slot, 2);
    auto again = join(slot, join_request(members[0].id));
    EXPECT_FALSE(again.came());
    EXPECT_EQ(state(slot), "PreparingRebalance");
    EXPECT_EQ(heartbeat(slot, members[1]), ErrorCode::kRebalanceInProgress);
    auto other = join(slot, join_request(members[1].id));
    ASSERT_TRUE(again.came() && other.came()) << "all are there";
    EXPECT_EQ(again->generation, 2);
    EXPECT_EQ(again->leader, members[0].id);
}

TEST(JoinGroup, FollowerWithANewSubscriptionCausesARebalance) {
    TestSlot slot;
    auto members = stable_group(slot, 2);
    auto request = join_request(members[1].id);
    request.protocols = {{"range", subscription({"t", "u"})}};
    EXPECT_FALSE(join(slot, std::move(request)).came());
    EXPECT_EQ(state(slot), "PreparingRebalance");
}

TEST(JoinGroup, AnswerThatGotLostIsGivenAgainWhileAssignmentsAreAwaited) {
    TestSlot slot;
    auto first = join_new(slot);
    auto second = join_new(slot);
    slot.pass(seconds(6));
    for (const auto& before : {*first, *second}) {
        auto again = join(slot, join_request(before.member_id));
        ASSERT_TRUE(again.came());
        EXPECT_EQ(again->generation, 1);
        EXPECT_EQ(again->members.size(), before.members.size());
    }
    EXPECT_EQ(state(slot), "CompletingRebalance");
}

TEST(JoinGroup, RequestThatIsSentAgainTakesThePlaceOfTheFirst) {
    TestSlot slot;
    const auto id = id_from(slot);
    auto lost = join(slot, join_request(id));
    auto again = join(slot, join_request(id));
    EXPECT_EQ(lost->error, ErrorCode::kRebalanceInProgress) << "whoever still reads, comes back";
    slot.pass(seconds(6));
    EXPECT_EQ(again->error, ErrorCode::kNone);
}

TEST(JoinGroup, MemberThatDoesNotComeBackInTimeIsLeftOut) {
    TestSlot slot;
    auto members = stable_group(slot, 2);
    auto leader = join(slot, join_request(members[0].id));
    for (int i = 0; i < 7; ++i) {
        slot.pass(seconds(8));
        if (i < 6) EXPECT_EQ(heartbeat(slot, members[1]), ErrorCode::kRebalanceInProgress);
    }
    EXPECT_FALSE(leader.came());
    slot.pass(seconds(4));
    ASSERT_TRUE(leader.came()) << "the rebalance timeout of a minute is over";
    EXPECT_EQ(leader->members.size(), 1U);
    EXPECT_EQ(heartbeat(slot, members[1]), ErrorCode::kUnknownMemberId);
}

TEST(JoinGroup, LeaderThatDoesNotComeBackIsReplaced) {
    TestSlot slot;
    auto members = stable_group(slot, 2);
    auto request = join_request(members[1].id);
    request.protocols = {{"range", subscription({"u"})}};
    auto follower = join(slot, std::move(request));
    slot.pass(seconds(10));
    ASSERT_TRUE(follower.came()) << "the leader's session is over";
    EXPECT_EQ(follower->leader, members[1].id);
    EXPECT_EQ(follower->members.size(), 1U);
}

TEST(JoinGroup, RebalanceWaitsForWhomAnIdWasGiven) {
    TestSlot slot;
    auto members = stable_group(slot, 1);
    (void)id_from(slot);
    auto leader = join(slot, join_request(members[0].id));
    EXPECT_FALSE(leader.came());
    slot.pass(seconds(10));
    EXPECT_TRUE(leader.came()) << "the id's time is over";
}

TEST(JoinGroup, IdOfADynamicMemberIsNotForAStaticOne) {
    TestSlot slot;
    auto request = join_request(id_from(slot));
    request.member.group_instance_id = "i";
    EXPECT_EQ(join(slot, std::move(request))->error, ErrorCode::kUnknownServerError);
}

TEST(SyncGroup, AssignmentGoesToEveryMemberOnceItIsDurable) {
    TestSlot slot;
    auto first = join_new(slot);
    auto second = join_new(slot);
    slot.pass(seconds(6));
    TestMember leader;
    TestMember follower;
    leader.take(first->members.empty() ? *second : *first);
    follower.take(first->members.empty() ? *first : *second);

    auto follower_synced = sync(slot, sync_request(follower));
    auto leader_synced = sync(slot, sync_request(leader));
    EXPECT_FALSE(leader_synced.came() || follower_synced.came());
    EXPECT_EQ(slot->picture(), slot.reloaded()) << "what is on its way counts as kept";
    slot.settle();
    EXPECT_EQ(leader_synced->assignment, "assigned to " + leader.id);
    EXPECT_EQ(follower_synced->assignment, "assigned to " + follower.id);
    EXPECT_EQ(follower_synced->protocol_type, "consumer");
    EXPECT_EQ(follower_synced->protocol_name, "range");
    EXPECT_EQ(state(slot), "Stable");
    EXPECT_EQ(slot.metrics.rebalances.value(), 1U);

    auto again = sync(slot, sync_request(follower));
    EXPECT_FALSE(again.came()) << "somebody else may lead the slot by now";
    slot.settle();
    EXPECT_EQ(again->assignment, "assigned to " + follower.id);
}

TEST(SyncGroup, MemberThatTheLeaderForgotGetsAnEmptyAssignment) {
    TestSlot slot;
    auto members = stable_group(slot, 2);
    auto one = join(slot, join_request(members[0].id));
    auto two = join(slot, join_request(members[1].id));
    members[0].take(*one);
    members[1].take(*two);
    auto request = sync_request(members[0]);
    request.assignments = {{members[0].id, "all of it"}, {"a stranger", "nothing"}};
    auto leader = sync(slot, std::move(request));
    auto follower = sync(slot, sync_request(members[1]));
    slot.settle();
    EXPECT_EQ(leader->assignment, "all of it");
    EXPECT_EQ(follower->error, ErrorCode::kNone);
    EXPECT_EQ(follower->assignment, "") << "not that of the generation before";
    EXPECT_EQ(slot->picture(), slot.reloaded());
}

TEST(SyncGroup, WhatDoesNotFitIsRefused) {
    TestSlot slot;
    const auto error_of = [&](SyncGroupRequest request) { return sync(slot, request)->error; };
    EXPECT_EQ(error_of(sync_request({.id = "x"})), ErrorCode::kUnknownMemberId) << "no group";
    auto members = stable_group(slot, 1);
    auto good = sync_request(members[0]);
    auto request = good;
    request.member.member_id = "x";
    EXPECT_EQ(error_of(request), ErrorCode::kUnknownMemberId);
    request = good;
    request.generation = 0;
    EXPECT_EQ(error_of(request), ErrorCode::kIllegalGeneration);
    request = good;
    request.protocol_type = "connect";
    EXPECT_EQ(error_of(request), ErrorCode::kInconsistentGroupProtocol);
    request = good;
    request.protocol_name = "roundrobin";
    EXPECT_EQ(error_of(request), ErrorCode::kInconsistentGroupProtocol);
    request = good;
    request.protocol_name.reset();
    request.protocol_type.reset();
    auto old_version = sync(slot, request);
    slot.settle();
    EXPECT_EQ(old_version->error, ErrorCode::kNone) << "versions before 5 do not say";
    (void)join_new(slot);
    EXPECT_EQ(error_of(good), ErrorCode::kRebalanceInProgress);
}

TEST(SyncGroup, RebalanceMeanwhileSendsThoseWhoWaitBack) {
    TestSlot slot;
    auto members = stable_group(slot, 2);
    auto one = join(slot, join_request(members[0].id));
    auto two = join(slot, join_request(members[1].id));
    members[0].take(*one);
    members[1].take(*two);
    auto waiting = sync(slot, sync_request(members[1]));
    (void)join_new(slot);
    EXPECT_EQ(waiting->error, ErrorCode::kRebalanceInProgress);
    EXPECT_EQ(sync(slot, sync_request(members[0]))->error, ErrorCode::kRebalanceInProgress);
}

TEST(SyncGroup, AssignmentThatARebalanceOvertookIsNotGivenOut) {
    TestSlot slot;
    auto members = stable_group(slot, 2);
    auto one = join(slot, join_request(members[0].id));
    auto two = join(slot, join_request(members[1].id));
    members[0].take(*one);
    members[1].take(*two);
    auto leader = sync(slot, sync_request(members[0]));
    (void)join_new(slot);  // before the assignment is durable
    slot.settle();
    EXPECT_EQ(leader->error, ErrorCode::kRebalanceInProgress);
    EXPECT_EQ(state(slot), "PreparingRebalance");
    EXPECT_EQ(slot->picture(), slot.reloaded());
}

TEST(SyncGroup, LeaderThatSendsItsAssignmentTwiceIsTakenByItsFirstWord) {
    TestSlot slot;
    auto joined = join_new(slot);
    slot.pass(seconds(3));
    TestMember leader;
    leader.take(*joined);
    auto lost = sync(slot, sync_request(leader));
    auto second = sync_request(leader);
    second.assignments.front().assignment = "something else";
    auto again = sync(slot, std::move(second));
    slot.settle();
    EXPECT_EQ(lost->error, ErrorCode::kRebalanceInProgress);
    EXPECT_EQ(again->assignment, "assigned to " + leader.id);
    EXPECT_EQ(slot->picture(), slot.reloaded()) << "what is given out is what is kept";
}

TEST(SyncGroup, WhoeverNeverAsksForItsAssignmentIsRemoved) {
    TestSlot slot;
    auto members = stable_group(slot, 2);
    auto one = join(slot, join_request(members[0].id));
    auto two = join(slot, join_request(members[1].id));
    members[0].take(*one);
    members[1].take(*two);
    auto leader = sync(slot, sync_request(members[0]));
    slot.settle();
    for (int i = 0; i < 7; ++i) {
        EXPECT_EQ(heartbeat(slot, members[0]), ErrorCode::kNone);
        EXPECT_EQ(heartbeat(slot, members[1]), ErrorCode::kNone);
        slot.pass(seconds(8));
    }
    EXPECT_EQ(state(slot), "Stable");
    EXPECT_EQ(heartbeat(slot, members[0]), ErrorCode::kNone);
    slot.pass(seconds(4));
    EXPECT_EQ(heartbeat(slot, members[0]), ErrorCode::kRebalanceInProgress);
    EXPECT_EQ(heartbeat(slot, members[1]), ErrorCode::kUnknownMemberId);
}

TEST(Heartbeat, SaysWhatAMemberHasToDo) {
    TestSlot slot;
    EXPECT_EQ(heartbeat(slot, {.id = "x", .generation = 1}), ErrorCode::kUnknownMemberId);
    auto joined = join_new(slot);
    slot.pass(seconds(3));
    TestMember member;
    member.take(*joined);
    EXPECT_EQ(heartbeat(slot, member), ErrorCode::kNone) << "while assignments are awaited";
    EXPECT_EQ(heartbeat(slot, {.id = "x", .generation = 1}), ErrorCode::kUnknownMemberId);
    EXPECT_EQ(heartbeat(slot, {.id = member.id, .generation = 0}), ErrorCode::kIllegalGeneration);
}

TEST(Heartbeat, MemberThatFallsSilentIsRemovedAndTheOthersHearOfIt) {
    TestSlot slot;
    auto members = stable_group(slot, 2);
    slot.pass(seconds(9));
    EXPECT_EQ(heartbeat(slot, members[0]), ErrorCode::kNone);
    slot.pass(seconds(1));
    EXPECT_EQ(heartbeat(slot, members[0]), ErrorCode::kRebalanceInProgress);
    EXPECT_EQ(heartbeat(slot, members[1]), ErrorCode::kUnknownMemberId);
    EXPECT_EQ(slot.metrics.expired_members.value(), 1U);
}

TEST(Heartbeat, GroupWhoseMembersAllFallSilentIsEmpty) {
    TestSlot slot;
    (void)stable_group(slot, 2);
    slot.pass(seconds(10));
    auto group = describe(slot);
    EXPECT_EQ(group.state, "Empty");
    EXPECT_EQ(group.protocol_type, "consumer");
    EXPECT_EQ(group.protocol, "");
    EXPECT_EQ(slot->picture(), slot.reloaded());
}

TEST(Heartbeat, NewMemberThatDiesInItsFirstRebalanceIsMissedAfterFiveMinutes) {
    TestSlot slot;
    auto members = stable_group(slot, 1);
    auto request = join_request(id_from(slot));
    request.rebalance_timeout = std::chrono::minutes(10);
    auto dead = join(slot, std::move(request));
    for (int i = 0; i < 37; ++i) {
        EXPECT_EQ(heartbeat(slot, members[0]), ErrorCode::kRebalanceInProgress);
        slot.pass(seconds(8));
    }
    EXPECT_FALSE(dead.came());
    EXPECT_EQ(heartbeat(slot, members[0]), ErrorCode::kRebalanceInProgress);
    slot.pass(seconds(5));
    EXPECT_EQ(dead->error, ErrorCode::kUnknownMemberId);
}

TEST(LeaveGroup, MemberThatLeavesCausesARebalance) {
    TestSlot slot;
    auto members = stable_group(slot, 2);
    EXPECT_EQ(leave(slot, "x"), ErrorCode::kUnknownMemberId);
    EXPECT_EQ(leave(slot, members[1].id), ErrorCode::kNone);
    EXPECT_EQ(heartbeat(slot, members[0]), ErrorCode::kRebalanceInProgress);
    EXPECT_EQ(leave(slot, members[0].id), ErrorCode::kNone);
    EXPECT_EQ(state(slot), "Empty");
    EXPECT_EQ(leave(slot, members[0].id), ErrorCode::kUnknownMemberId);
}

TEST(LeaveGroup, UnknownGroupHasNoMembers) {
    TestSlot slot;
    Reply<LeaveGroupAnswer> reply;
    slot->leave({.group_id = "nobody's",
                 .members = {{.identity = {.member_id = "a"}}, {.identity = {.member_id = "b"}}}},
                reply.done());
    slot.settle();
    EXPECT_EQ(reply->error, ErrorCode::kNone);
    ASSERT_EQ(reply->members.size(), 2U);
    for (const auto& member : reply->members) EXPECT_EQ(member.error, ErrorCode::kUnknownMemberId);
}

TEST(LeaveGroup, LastOneMissingInARebalanceEndsItByLeaving) {
    TestSlot slot;
    auto members = stable_group(slot, 2);
    auto leader = join(slot, join_request(members[0].id));
    EXPECT_EQ(leave(slot, members[1].id), ErrorCode::kNone);
    ASSERT_TRUE(leader.came());
    EXPECT_EQ(leader->members.size(), 1U);
}

TEST(LeaveGroup, IdThatWasNotUsedYetCanBeGivenBack) {
    TestSlot slot;
    const auto id = id_from(slot);
    EXPECT_EQ(leave(slot, id), ErrorCode::kNone);
    EXPECT_EQ(join(slot, join_request(id))->error, ErrorCode::kUnknownMemberId);
}

TEST(LeaveGroup, MemberThatWaitsForItsAssignmentIsToldThatItIsGone) {
    TestSlot slot;
    auto members = stable_group(slot, 2);
    auto one = join(slot, join_request(members[0].id));
    auto two = join(slot, join_request(members[1].id));
    members[0].take(*one);
    members[1].take(*two);
    auto waiting = sync(slot, sync_request(members[1]));
    EXPECT_EQ(leave(slot, members[1].id), ErrorCode::kNone);
    EXPECT_EQ(waiting->error, ErrorCode::kUnknownMemberId);
}

TEST(Leadership, EndsForWhoeverWaits) {
    TestSlot slot;
    auto members = stable_group(slot, 2);
    auto joining = join(slot, join_request(members[0].id));
    slot->close();
    EXPECT_EQ(joining->error, ErrorCode::kNotCoordinator);
    EXPECT_EQ(slot.timers.size(), 0U);
}

TEST(Leadership, EndsBeforeAnAssignmentIsDurable) {
    TestSlot slot;
    auto joined = join_new(slot);
    slot.pass(seconds(3));
    TestMember leader;
    leader.take(*joined);
    auto synced = sync(slot, sync_request(leader));
    slot->close();
    EXPECT_EQ(synced->error, ErrorCode::kNotCoordinator);
    slot.journal->settle_waiting();
    EXPECT_EQ(slot.timers.size(), 0U) << "no timer begins after the end";
}

TEST(Restart, MemberOfAStableGroupGoesOnWithoutARebalance) {
    TestSlot slot;
    auto members = stable_group(slot, 2);
    slot.restart();
    for (const auto& member : members) EXPECT_EQ(heartbeat(slot, member), ErrorCode::kNone);
    auto synced = sync(slot, sync_request(members[1]));
    slot.settle();
    EXPECT_EQ(synced->assignment, "assigned to " + members[1].id);
    slot.pass(seconds(9));
    EXPECT_EQ(heartbeat(slot, members[0]), ErrorCode::kNone) << "the session began anew";
    slot.pass(seconds(1));
    EXPECT_EQ(heartbeat(slot, members[1]), ErrorCode::kUnknownMemberId);
}

TEST(Restart, InTheMiddleOfARebalanceGoesBackToTheLastAssignment) {
    TestSlot slot;
    auto members = stable_group(slot, 2);
    (void)join(slot, join_request(members[0].id));
    (void)join(slot, join_request(members[1].id));
    EXPECT_EQ(state(slot), "CompletingRebalance");
    slot.restart();
    EXPECT_EQ(state(slot), "Stable");
    EXPECT_EQ(heartbeat(slot, members[0]), ErrorCode::kNone);
    EXPECT_EQ(heartbeat(slot, {.id = members[0].id, .generation = 2}),
              ErrorCode::kIllegalGeneration)
        << "who has seen the lost generation joins again";
}

TEST(Restart, GroupThatIsTooLargeByNowRebalances) {
    TestSlot slot;
    auto members = stable_group(slot, 3);
    slot.config.max_size = 2;
    slot.restart();
    EXPECT_EQ(heartbeat(slot, members[0]), ErrorCode::kRebalanceInProgress);
}

TEST(Restart, GroupThatNobodyHasJoinedToTheEndIsKnown) {
    TestSlot slot;
    (void)id_from(slot);
    slot.restart();
    EXPECT_EQ(state(slot), "Empty");
}

}  // namespace
}  // namespace kaas::coordinator::testing
