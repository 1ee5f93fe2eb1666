#pragma once

// Members of a group, as clients behave: what a test does not say is what they usually do.

#include "coordinator/group_requests.h"
#include "coordinator/testing_slot.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::coordinator::testing {

inline const std::string kGroup = "g";

[[nodiscard]] inline JoinGroupRequest join_request(std::string member_id = {}) {
    return {.client = {.version = 9, .client_id = "c", .client_host = "/127.0.0.1"},
            .group_id = kGroup,
            .member = {.member_id = std::move(member_id)},
            .session_timeout = seconds(10),
            .rebalance_timeout = seconds(60),
            .protocol_type = "consumer",
            .protocols = {{"range", subscription({"t"})}}};
}

/// A client's side of one member.
struct TestMember {
    std::string id;
    std::int32_t generation = kNoGeneration;
    bool leads = false;
    std::vector<std::string> others{};  ///< all members, if it leads

    void take(const JoinGroupAnswer& answer) {
        ASSERT_EQ(answer.error, ErrorCode::kNone);
        id = answer.member_id;
        generation = answer.generation;
        leads = answer.leader == id;
        others.clear();
        for (const auto& member : answer.members) others.push_back(member.member.member_id);
    }
};

/// Asks for an id as a new member does.
[[nodiscard]] inline std::string id_from(TestSlot& slot,
                                         JoinGroupRequest request = join_request()) {
    Reply<JoinGroupAnswer> reply;
    slot->join(std::move(request), reply.done());
    EXPECT_TRUE(reply.came());
    EXPECT_EQ(reply->error, ErrorCode::kMemberIdRequired);
    return reply->member_id;
}

[[nodiscard]] inline Reply<JoinGroupAnswer> join(TestSlot& slot, JoinGroupRequest request) {
    Reply<JoinGroupAnswer> reply;
    slot->join(std::move(request), reply.done());
    return reply;
}
/// One that is new: with an id that it has just got.
[[nodiscard]] inline Reply<JoinGroupAnswer> join_new(TestSlot& slot) {
    return join(slot, join_request(id_from(slot)));
}

[[nodiscard]] inline SyncGroupRequest sync_request(const TestMember& member) {
    SyncGroupRequest request{.group_id = kGroup,
                             .member = {.member_id = member.id},
                             .generation = member.generation,
                             .protocol_type = "consumer",
                             .protocol_name = "range",
                             .assignments = {}};
    for (const auto& other : member.others) {
        request.assignments.push_back({other, "assigned to " + other});
    }
    return request;
}
[[nodiscard]] inline Reply<SyncGroupAnswer> sync(TestSlot& slot, SyncGroupRequest request) {
    Reply<SyncGroupAnswer> reply;
    slot->sync(std::move(request), reply.done());
    return reply;
}
[[nodiscard]] inline ErrorCode heartbeat(TestSlot& slot, const TestMember& member) {
    Reply<ErrorCode> reply;
    slot->heartbeat(
        {.group_id = kGroup, .member = {.member_id = member.id}, .generation = member.generation},
        reply.done());
    return *reply;
}
[[nodiscard]] inline ErrorCode leave(TestSlot& slot, const std::string& member_id) {
    Reply<LeaveGroupAnswer> reply;
    slot->leave({.group_id = kGroup, .members = {{.identity = {.member_id = member_id}}}},
                reply.done());
    slot.settle();
    return reply->error != ErrorCode::kNone ? reply->error : reply->members.front().error;
}
[[nodiscard]] inline DescribedGroup describe(TestSlot& slot, const std::string& group = kGroup) {
    Reply<DescribeGroupsAnswer> reply;
    slot->describe({group}, reply.done());
    slot.settle();
    return reply->front();
}
[[nodiscard]] inline std::string state(TestSlot& slot, const std::string& group = kGroup) {
    return describe(slot, group).state;
}

/// A stable group of so many members, the leader first.
[[nodiscard]] inline std::vector<TestMember> stable_group(TestSlot& slot, std::size_t size) {
    std::vector<Reply<JoinGroupAnswer>> joins;
    for (std::size_t i = 0; i < size; ++i) joins.push_back(join_new(slot));
    slot.pass(seconds(10));
    std::vector<TestMember> members(size);
    for (std::size_t i = 0; i < size; ++i) {
        EXPECT_TRUE(joins[i].came());
        members[i].take(*joins[i]);
    }
    std::ranges::partition(members, &TestMember::leads);
    for (const auto& member : members) {
        auto synced = sync(slot, sync_request(member));
        slot.settle();
        EXPECT_EQ(synced->error, ErrorCode::kNone);
        EXPECT_EQ(synced->assignment, "assigned to " + member.id);
    }
    EXPECT_EQ(state(slot), "Stable");
    for (const auto& member : members) EXPECT_EQ(heartbeat(slot, member), ErrorCode::kNone);
    return members;
}

[[nodiscard]] inline CommitTopic commit_topic(std::string name,
                                              std::initializer_list<std::int64_t> offsets) {
    CommitTopic topic{.id = {}, .name = std::move(name), .partitions = {}};
    std::int32_t partition = 0;
    for (const auto offset : offsets) {
        topic.partitions.push_back(
            {base::PartitionId{partition++}, base::Offset{offset}, kNoLeaderEpochKnown, {}});
    }
    return topic;
}
[[nodiscard]] inline ErrorCode commit(TestSlot& slot, OffsetCommitRequest request) {
    Reply<OffsetCommitAnswer> reply;
    slot->commit(std::move(request), reply.done());
    slot.settle();
    return reply->topics.front().partitions.front().error;
}
/// Of partitions 0, 1, ... of "t", by somebody without a member id.
[[nodiscard]] inline ErrorCode commit_simple(TestSlot& slot,
                                             std::initializer_list<std::int64_t> offsets,
                                             std::string group = kGroup) {
    return commit(slot, {.version = 9,
                         .group_id = std::move(group),
                         .member = {},
                         .topics = {commit_topic("t", offsets)}});
}
[[nodiscard]] inline OffsetFetchAnswer fetch(TestSlot& slot, OffsetFetchRequest request) {
    Reply<OffsetFetchAnswer> reply;
    slot->fetch(std::move(request), reply.done());
    slot.settle();
    return *reply;
}
/// Of one partition; negative: none, or an error's code.
[[nodiscard]] inline std::int64_t fetched(TestSlot& slot, std::int32_t partition = 0,
                                          bool require_stable = false,
                                          const std::string& group = kGroup) {
    auto answer = fetch(slot, {.group_id = group,
                               .topics = {{{{}, "t", {base::PartitionId{partition}}}}},
                               .require_stable = require_stable});
    const auto& one = answer.topics.front().partitions.front();
    return one.error == ErrorCode::kNone ? one.offset.value()
                                         : -static_cast<std::int64_t>(one.error);
}

}  // namespace kaas::coordinator::testing
