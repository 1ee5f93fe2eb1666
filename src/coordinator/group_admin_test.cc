// Goal: tools see groups as they are, and remove only those that nobody uses. Method: one slot with
// a journal in memory and virtual time.

#include "base/ids.h"
#include "coordinator/testing_members.h"
#include "coordinator/testing_slot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace kaas::coordinator::testing {
namespace {

TEST(DescribeGroups, StableGroupShowsWhatItsMembersToldAndGot) {
    TestSlot slot;
    const auto members = stable_group(slot, 2);
    const auto group = describe(slot);
    EXPECT_EQ(group.error, ErrorCode::kNone);
    EXPECT_EQ(group.state, "Stable");
    EXPECT_EQ(group.protocol_type, "consumer");
    EXPECT_EQ(group.protocol, "range");
    ASSERT_EQ(group.members.size(), 2U);
    for (const auto& member : group.members) {
        EXPECT_EQ(member.client_id, "c");
        EXPECT_EQ(member.client_host, "/127.0.0.1");
        EXPECT_EQ(member.metadata, subscription({"t"}));
        EXPECT_EQ(member.assignment, "assigned to " + member.member.member_id);
    }
}

TEST(DescribeGroups, GroupInARebalanceHasNoProtocolYet) {
    TestSlot slot;
    const auto members = stable_group(slot, 2);
    (void)join(slot, join_request(members[0].id));
    const auto group = describe(slot);
    EXPECT_EQ(group.state, "PreparingRebalance");
    EXPECT_EQ(group.protocol_type, "consumer");
    EXPECT_EQ(group.protocol, "");
    ASSERT_EQ(group.members.size(), 2U);
    EXPECT_EQ(group.members[0].metadata, "");
    EXPECT_EQ(group.members[0].assignment, "assigned to " + group.members[0].member.member_id);
}

TEST(DescribeGroups, UnknownGroupIsDead) {
    TestSlot slot;
    const auto group = describe(slot, "nobody's");
    EXPECT_EQ(group.error, ErrorCode::kGroupIdNotFound);
    EXPECT_EQ(group.group_id, "nobody's");
    EXPECT_EQ(group.state, "Dead");
}

TEST(DescribeGroups, WhoeverDoesNotLeadSaysSo) {
    TestSlot slot;
    Reply<DescribeGroupsAnswer> reply;
    slot->describe({kGroup, "h"}, reply.done());
    slot.journal->settle_waiting(false);
    ASSERT_EQ(reply->size(), 2U);
    EXPECT_EQ((*reply)[1].error, ErrorCode::kNotCoordinator);
    EXPECT_EQ((*reply)[1].group_id, "h");
}

std::vector<std::string> listed(TestSlot& slot, std::vector<std::string> states,
                                std::vector<std::string> types) {
    Reply<ListGroupsAnswer> reply;
    slot->list({std::move(states), std::move(types)}, reply.done());
    slot.settle();
    std::vector<std::string> ids;
    for (const auto& group : reply->groups) {
        EXPECT_EQ(group.type, "classic");
        ids.push_back(group.group_id + ":" + group.state + ":" + group.protocol_type);
    }
    std::ranges::sort(ids);
    return ids;
}

TEST(ListGroups, FiltersByStateAndTypeInAnyCase) {
    TestSlot slot;
    (void)stable_group(slot, 1);
    EXPECT_EQ(commit_simple(slot, {1}, "simple"), ErrorCode::kNone);
    using Ids = std::vector<std::string>;
    EXPECT_EQ(listed(slot, {}, {}), (Ids{"g:Stable:consumer", "simple:Empty:"}));
    EXPECT_EQ(listed(slot, {" STABLE "}, {}), Ids{"g:Stable:consumer"});
    EXPECT_EQ(listed(slot, {"empty", "dead"}, {"Classic"}), Ids{"simple:Empty:"});
    EXPECT_EQ(listed(slot, {"no such state"}, {}), Ids{});
    EXPECT_EQ(listed(slot, {}, {"consumer"}), Ids{});
    EXPECT_EQ(listed(slot, {}, {"no such type", "classic"}).size(), 2U);
}

ErrorCode remove(TestSlot& slot, const std::string& group) {
    Reply<DeleteGroupsAnswer> reply;
    slot->delete_groups({group}, reply.done());
    slot.settle();
    EXPECT_EQ(reply->front().group_id, group);
    return reply->front().error;
}

TEST(DeleteGroups, OnlyEmptyOnesGoAndTheirOffsetsWithThem) {
    TestSlot slot;
    EXPECT_EQ(remove(slot, kGroup), ErrorCode::kGroupIdNotFound);
    auto members = stable_group(slot, 1);
    EXPECT_EQ(commit(slot, {.version = 9,
                            .group_id = kGroup,
                            .member = {.member_id = members[0].id},
                            .generation = 1,
                            .topics = {commit_topic("t", {1, 2})}}),
              ErrorCode::kNone);
    EXPECT_EQ(remove(slot, kGroup), ErrorCode::kNonEmptyGroup);
    EXPECT_EQ(leave(slot, members[0].id), ErrorCode::kNone);
    EXPECT_EQ(slot.metrics.offsets.value(), 2);
    EXPECT_EQ(remove(slot, kGroup), ErrorCode::kNone);
    EXPECT_EQ(slot.metrics.offsets.value(), 0);
    EXPECT_EQ(slot.metrics.deleted_offsets.value(), 2U);
    EXPECT_EQ(remove(slot, kGroup), ErrorCode::kGroupIdNotFound);
    EXPECT_EQ(fetched(slot), -1);
    EXPECT_EQ(slot->picture(), slot.reloaded());
    slot.restart();
    EXPECT_EQ(state(slot), "Dead");
}

TEST(DeleteGroups, IdThatWasHandedOutDiesWithItsGroup) {
    TestSlot slot;
    const auto id = id_from(slot);
    EXPECT_EQ(remove(slot, kGroup), ErrorCode::kNone);
    EXPECT_EQ(join(slot, join_request(id))->error, ErrorCode::kUnknownMemberId);
    slot.pass(seconds(60));  // its timer is gone too
}

TEST(GroupMetricsTest, CountGroupsByState) {
    TestSlot slot;
    EXPECT_EQ(commit_simple(slot, {1}, "simple"), ErrorCode::kNone);
    auto members = stable_group(slot, 1);
    EXPECT_EQ(slot.metrics.of(GroupState::kEmpty).value(), 1);
    EXPECT_EQ(slot.metrics.of(GroupState::kStable).value(), 1);
    slot.restart();
    EXPECT_EQ(slot.metrics.of(GroupState::kEmpty).value(), 1);
    EXPECT_EQ(slot.metrics.of(GroupState::kStable).value(), 1);
    EXPECT_EQ(slot.metrics.offsets.value(), 1);
}

TEST(Lag, EveryCommittedOffsetIsShown) {
    TestSlot slot;
    EXPECT_EQ(commit_simple(slot, {4, 5}), ErrorCode::kNone);
    std::vector<std::string> seen;
    slot->visit_offsets([&](const GroupSlot::CommittedOffset& one) {
        seen.push_back(std::string(one.group_id) + "/" + std::string(one.topic) + "/" +
                       std::to_string(one.partition.value()) + "=" +
                       std::to_string(one.offset.value()));
        return true;
    });
    EXPECT_EQ(seen, (std::vector<std::string>{"g/t/0=4", "g/t/1=5"}));
    int count = 0;
    slot->visit_offsets([&](const GroupSlot::CommittedOffset& /*one*/) { return ++count < 1; });
    EXPECT_EQ(count, 1) << "no further than is wanted";
}

}  // namespace
}  // namespace kaas::coordinator::testing
