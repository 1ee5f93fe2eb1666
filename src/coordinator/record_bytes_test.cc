// Goal: what Apache could not keep in one record of `__consumer_offsets` is refused here as there,
// costs nobody else anything, and is not kept. Method: as in classic_protocol_test.cc, with a limit
// of 1,000 bytes; the sizes of records are those of real ones.

#include "coordinator/record_bytes.h"

#include "coordinator/testing_members.h"
#include "coordinator/testing_slot.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace kaas::coordinator::testing {
namespace {

constexpr std::size_t kLimit = 1'000;

SyncGroupRequest with_assignment(const TestMember& member, std::string assignment) {
    auto request = sync_request(member);
    request.assignments = {{member.id, std::move(assignment)}};
    return request;
}

TestMember joined_alone(TestSlot& slot) {
    auto reply = join_new(slot);
    slot.pass(seconds(10));
    TestMember member;
    member.take(*reply);
    return member;
}

TEST(RecordBytes, AnAssignmentThatIsTooLargeIsRefusedToAllWhoWait) {
    TestSlot slot({.record_max_bytes = kLimit});
    auto members = stable_group(slot, 2);
    auto first = join(slot, join_request(members[0].id));
    auto second = join(slot, join_request(members[1].id));
    members[0].take(*first);
    members[1].take(*second);
    auto follower = sync(slot, sync_request(members[1]));
    const auto lines = slot.journal->lines.size();
    auto leader = sync(slot, with_assignment(members[0], std::string(kLimit, 'x')));
    EXPECT_EQ(leader->error, ErrorCode::kUnknownServerError);
    EXPECT_EQ(follower->error, ErrorCode::kUnknownServerError);
    EXPECT_EQ(slot.journal->lines.size(), lines) << "nothing of it is kept";
    EXPECT_EQ(state(slot), "PreparingRebalance");
    for (const auto& member : members)
        EXPECT_EQ(heartbeat(slot, member), ErrorCode::kRebalanceInProgress);
}

TEST(RecordBytes, AGroupThatWasRefusedAnAssignmentMayTryASmallerOne) {
    TestSlot slot({.record_max_bytes = kLimit});
    auto member = joined_alone(slot);
    (void)sync(slot, with_assignment(member, std::string(kLimit, 'x')));
    auto again = join(slot, join_request(member.id));
    member.take(*again);
    auto synced = sync(slot, with_assignment(member, std::string(kLimit / 2, 'x')));
    slot.settle();
    EXPECT_EQ(synced->error, ErrorCode::kNone);
    EXPECT_EQ(state(slot), "Stable");
}

TEST(RecordBytes, TheMetadataOfTheMembersCountsWithTheirAssignments) {
    TestSlot slot({.record_max_bytes = kLimit});
    auto request = join_request();
    request.protocols = {{"range", std::string(kLimit / 2, 'm')}};
    request.member.member_id = id_from(slot, request);
    auto reply = join(slot, request);
    slot.pass(seconds(10));
    TestMember member;
    member.take(*reply);
    auto synced = sync(slot, with_assignment(member, std::string(kLimit / 2, 'x')));
    EXPECT_EQ(synced->error, ErrorCode::kUnknownServerError);
}

TEST(RecordBytes, MetadataThatCouldNeverBeKeptIsRefusedAtOnce) {
    TestSlot slot({.record_max_bytes = kLimit});
    auto request = join_request();
    request.protocols = {{"range", std::string(kLimit, 'm')}};
    auto reply = join(slot, request);
    EXPECT_EQ(reply->error, ErrorCode::kUnknownServerError);
    EXPECT_EQ(describe(slot).error, ErrorCode::kGroupIdNotFound);
}

TEST(RecordBytes, AStaticMemberThatComesBackTooLargeFencesNobody) {
    TestSlot slot({.record_max_bytes = kLimit});
    auto request = join_request();
    request.member.group_instance_id = "i";
    auto reply = join(slot, request);
    slot.pass(seconds(10));
    TestMember member;
    member.take(*reply);
    (void)sync(slot, with_assignment(member, std::string(kLimit / 2, 'x')));
    slot.settle();
    request.protocols = {{"range", std::string(kLimit / 2, 'm')}};
    auto again = join(slot, request);
    EXPECT_EQ(again->error, ErrorCode::kUnknownServerError);
    EXPECT_EQ(again->generation, member.generation);
    EXPECT_EQ(heartbeat(slot, member), ErrorCode::kNone);
    EXPECT_EQ(state(slot), "Stable");
}

TEST(RecordBytes, ACommitIsKeptAsAWholeOrNotAtAll) {
    TestSlot slot({.record_max_bytes = kLimit});
    EXPECT_EQ(commit_simple(slot, {1, 2, 3}), ErrorCode::kNone);
    EXPECT_EQ(commit_simple(slot, {9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9}),
              ErrorCode::kUnknownServerError);
    EXPECT_EQ(fetched(slot, 2), 3);
    EXPECT_EQ(fetched(slot, 3), -1);
}

TEST(RecordBytes, AStrangersCommitIsRefusedForWhatItIs) {
    TestSlot slot({.record_max_bytes = 100});
    EXPECT_EQ(commit(slot, {.version = 9,
                            .group_id = "none",
                            .member = {.member_id = "m"},
                            .generation = 1,
                            .topics = {commit_topic("t", {1})}}),
              ErrorCode::kGroupIdNotFound);
}

TEST(RecordBytes, ACommitIsAsLargeAsApachesRecords) {
    std::vector<CommitTopic> topics{commit_topic("topic", {1, 2})};
    topics[0].partitions[0].metadata = "meta";
    EXPECT_EQ(commit_record_bytes("group", topics), 61 + 2 * 72 + 4);
}

}  // namespace
}  // namespace kaas::coordinator::testing
