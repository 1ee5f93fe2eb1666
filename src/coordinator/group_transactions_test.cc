// Goal: offsets of a transaction count when it is committed, and only then; zombies commit nothing.
// Method: as in group_offsets_test.cc, with markers by hand.

#include "base/ids.h"
#include "coordinator/testing_members.h"
#include "coordinator/testing_slot.h"
#include "storage/producer_state.h"
#include "storage/transaction_marker.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>

namespace kaas::coordinator::testing {
namespace {

constexpr base::ProducerId kOne{1};
constexpr base::ProducerId kTwo{2};
constexpr auto kUnstable = -static_cast<std::int64_t>(ErrorCode::kUnstableOffsetCommit);

base::ProducerEpoch epoch(std::int16_t value) { return base::ProducerEpoch{value}; }

TxnOffsetCommitRequest pending(base::ProducerId producer,
                               std::initializer_list<std::int64_t> offsets,
                               std::int16_t producer_epoch = 0) {
    return {.version = 5,
            .group_id = kGroup,
            .member = {},
            .producer_id = producer,
            .producer_epoch = epoch(producer_epoch),
            .topics = {commit_topic("t", offsets)}};
}
ErrorCode commit_in_transaction(TestSlot& slot, TxnOffsetCommitRequest request) {
    Reply<OffsetCommitAnswer> reply;
    slot->commit_in_transaction(std::move(request), reply.done());
    slot.settle();
    return reply->topics.front().partitions.front().error;
}
ErrorCode end(TestSlot& slot, storage::Marker marker) {
    Reply<ErrorCode> reply;
    slot->end_transaction(marker, reply.done());
    slot.settle();
    return *reply;
}
storage::Marker marker(base::ProducerId producer, bool commit, std::int16_t producer_epoch = 0,
                       std::int32_t coordinator_epoch = 1) {
    return {.producer = producer,
            .epoch = epoch(producer_epoch),
            .coordinator_epoch = coordinator_epoch,
            .commit = commit};
}

TEST(TransactionalOffsets, CountFromTheCommitOn) {
    TestSlot slot;
    EXPECT_EQ(commit_in_transaction(slot, pending(kOne, {5})), ErrorCode::kNone);
    EXPECT_EQ(fetched(slot), -1);
    EXPECT_EQ(fetched(slot, 0, true), kUnstable);
    EXPECT_EQ(fetched(slot, 1, true), -1) << "another partition is stable";
    EXPECT_EQ(slot->picture(), slot.reloaded());
    slot.restart();
    EXPECT_EQ(fetched(slot, 0, true), kUnstable) << "pending after a restart too";
    EXPECT_EQ(end(slot, marker(kOne, true)), ErrorCode::kNone);
    EXPECT_EQ(fetched(slot, 0, true), 5);
    EXPECT_EQ(slot->picture(), slot.reloaded());
    slot.restart();
    EXPECT_EQ(fetched(slot, 0, true), 5);
}

TEST(TransactionalOffsets, AreDroppedByAnAbort) {
    TestSlot slot;
    EXPECT_EQ(commit_simple(slot, {3}), ErrorCode::kNone);
    EXPECT_EQ(commit_in_transaction(slot, pending(kOne, {5})), ErrorCode::kNone);
    EXPECT_EQ(fetched(slot), 3) << "who does not ask for stable ones reads what is committed";
    EXPECT_EQ(fetched(slot, 0, true), kUnstable);
    const auto all = fetch(slot, {.group_id = kGroup, .require_stable = true});
    EXPECT_EQ(all.topics[0].partitions[0].error, ErrorCode::kUnstableOffsetCommit);
    EXPECT_EQ(all.topics[0].partitions[0].offset, base::Offset{-1});
    EXPECT_EQ(end(slot, marker(kOne, false)), ErrorCode::kNone);
    EXPECT_EQ(fetched(slot, 0, true), 3);
    EXPECT_EQ(slot->picture(), slot.reloaded());
}

TEST(TransactionalOffsets, TheLastOneOfATransactionCounts) {
    TestSlot slot;
    EXPECT_EQ(commit_in_transaction(slot, pending(kOne, {5, 6})), ErrorCode::kNone);
    EXPECT_EQ(commit_in_transaction(slot, pending(kOne, {7})), ErrorCode::kNone);
    EXPECT_EQ(end(slot, marker(kOne, true)), ErrorCode::kNone);
    EXPECT_EQ(fetched(slot, 0), 7);
    EXPECT_EQ(fetched(slot, 1), 6);
}

TEST(TransactionalOffsets, OneThatIsOlderThanWhatIsCommittedDoesNotCount) {
    for (const bool with_restart : {false, true}) {
        TestSlot slot;
        EXPECT_EQ(commit_in_transaction(slot, pending(kOne, {5})), ErrorCode::kNone);
        EXPECT_EQ(commit_simple(slot, {9}), ErrorCode::kNone);
        if (with_restart) slot.rotate();
        if (with_restart) slot.restart();
        EXPECT_EQ(fetched(slot, 0, true), kUnstable) << "open all the same";
        EXPECT_EQ(end(slot, marker(kOne, true)), ErrorCode::kNone);
        EXPECT_EQ(fetched(slot), 9);

        EXPECT_EQ(commit_in_transaction(slot, pending(kOne, {10})), ErrorCode::kNone);
        EXPECT_EQ(commit_in_transaction(slot, pending(kTwo, {11})), ErrorCode::kNone);
        if (with_restart) slot.rotate();
        if (with_restart) slot.restart();
        EXPECT_EQ(end(slot, marker(kTwo, true)), ErrorCode::kNone);
        EXPECT_EQ(fetched(slot), 11);
        EXPECT_EQ(fetched(slot, 0, true), kUnstable);
        EXPECT_EQ(end(slot, marker(kOne, true)), ErrorCode::kNone);
        EXPECT_EQ(fetched(slot, 0, true), 11) << "that of producer 1 was written before";
        EXPECT_EQ(slot->picture(), slot.reloaded());
    }
}

TEST(TransactionalOffsets, OfAMemberAreFencedByItsGroup) {
    TestSlot slot;
    auto members = stable_group(slot, 1);
    auto request = pending(kOne, {5});
    request.member.member_id = members[0].id;
    request.generation = 1;
    EXPECT_EQ(commit_in_transaction(slot, request), ErrorCode::kNone);
    request.generation = 0;
    EXPECT_EQ(commit_in_transaction(slot, request), ErrorCode::kIllegalGeneration);
    request.generation = 1;
    request.member.member_id = "x";
    EXPECT_EQ(commit_in_transaction(slot, request), ErrorCode::kUnknownMemberId);
    request.member.group_instance_id = "i";
    EXPECT_EQ(commit_in_transaction(slot, request), ErrorCode::kUnknownMemberId);
    EXPECT_EQ(commit_in_transaction(slot, pending(kOne, {6})), ErrorCode::kNone)
        << "producers from before KIP-447 name no member";
    request = pending(kOne, {7});
    request.group_id = "unknown";
    request.generation = 1;
    EXPECT_EQ(commit_in_transaction(slot, request), ErrorCode::kIllegalGeneration);
    request.version = 6;
    EXPECT_EQ(commit_in_transaction(slot, request), ErrorCode::kGroupIdNotFound);
}

TEST(TransactionalOffsets, CanBeCommittedWhileAssignmentsAreAwaited) {
    TestSlot slot;
    auto joined = join_new(slot);
    slot.pass(seconds(3));
    EXPECT_EQ(state(slot), "CompletingRebalance");
    auto request = pending(kOne, {5});
    request.member.member_id = joined->member_id;
    request.generation = 1;
    EXPECT_EQ(commit_in_transaction(slot, request), ErrorCode::kNone);
}

TEST(TransactionalOffsets, ZombieProducerIsRefused) {
    TestSlot slot;
    EXPECT_EQ(commit_in_transaction(slot, pending(kOne, {5}, 3)), ErrorCode::kNone);
    EXPECT_EQ(commit_in_transaction(slot, pending(kOne, {6}, 2)), ErrorCode::kInvalidProducerEpoch);
    slot.restart();
    EXPECT_EQ(commit_in_transaction(slot, pending(kOne, {6}, 2)), ErrorCode::kInvalidProducerEpoch);
    EXPECT_EQ(end(slot, marker(kOne, true, 2)), ErrorCode::kInvalidProducerEpoch);
    EXPECT_EQ(end(slot, marker(kOne, true, 3)), ErrorCode::kNone);
    slot.restart();
    EXPECT_EQ(commit_in_transaction(slot, pending(kOne, {6}, 2)), ErrorCode::kInvalidProducerEpoch);
    EXPECT_EQ(fetched(slot), 5);
}

TEST(TransactionalOffsets, MarkerOfAFormerCoordinatorIsRefused) {
    TestSlot slot;
    EXPECT_EQ(commit_in_transaction(slot, pending(kOne, {5})), ErrorCode::kNone);
    EXPECT_EQ(end(slot, marker(kOne, true, 0, 7)), ErrorCode::kNone);
    EXPECT_EQ(commit_in_transaction(slot, pending(kOne, {6})), ErrorCode::kNone);
    slot.restart();
    EXPECT_EQ(end(slot, marker(kOne, false, 0, 6)), ErrorCode::kTransactionCoordinatorFenced);
    EXPECT_EQ(end(slot, marker(kOne, true, 0, 8)), ErrorCode::kNone);
    EXPECT_EQ(fetched(slot), 6);
}

TEST(TransactionalOffsets, MarkerUnderABumpedEpochEndsAllAndOneWithoutComesTooLate) {
    TestSlot slot;
    EXPECT_EQ(commit_in_transaction(slot, pending(kOne, {5}, 4)), ErrorCode::kNone);
    auto bumping = marker(kOne, true, 4);
    bumping.transaction_version = 2;
    EXPECT_EQ(end(slot, bumping), ErrorCode::kInvalidProducerEpoch);
    bumping.epoch = epoch(5);
    EXPECT_EQ(end(slot, bumping), ErrorCode::kNone);
    EXPECT_EQ(fetched(slot), 5);
    EXPECT_EQ(end(slot, bumping), ErrorCode::kNone) << "sent again";
}

TEST(TransactionalOffsets, MarkerThatIsSentAgainWritesNothing) {
    TestSlot slot;
    EXPECT_EQ(commit_in_transaction(slot, pending(kOne, {5})), ErrorCode::kNone);
    EXPECT_EQ(end(slot, marker(kOne, true)), ErrorCode::kNone);
    const auto lines = slot.journal->lines.size();
    EXPECT_EQ(end(slot, marker(kOne, true)), ErrorCode::kNone);
    EXPECT_EQ(slot.journal->lines.size(), lines);
}

TEST(TransactionalOffsets, MarkerIsAnsweredWhenItIsDurable) {
    TestSlot slot;
    Reply<ErrorCode> reply;
    slot->end_transaction(marker(kOne, true), reply.done());
    EXPECT_FALSE(reply.came());
    slot.journal->settle_waiting(false);
    EXPECT_EQ(*reply, ErrorCode::kNotCoordinator);
}

TEST(TransactionalOffsets, OfSeveralGroupsEndTogether) {
    TestSlot slot;
    EXPECT_EQ(commit_in_transaction(slot, pending(kOne, {5})), ErrorCode::kNone);
    auto other = pending(kOne, {6});
    other.group_id = "h";
    EXPECT_EQ(commit_in_transaction(slot, other), ErrorCode::kNone);
    slot.rotate();
    slot.restart();
    EXPECT_EQ(end(slot, marker(kOne, true)), ErrorCode::kNone);
    EXPECT_EQ(fetched(slot, 0, true), 5);
    EXPECT_EQ(fetched(slot, 0, true, "h"), 6);
}

TEST(TransactionalOffsets, GoWithTheirGroupAndWithTheirOffset) {
    TestSlot slot;
    EXPECT_EQ(commit_in_transaction(slot, pending(kOne, {5, 6})), ErrorCode::kNone);
    Reply<OffsetDeleteAnswer> removed;
    slot->delete_offsets({.group_id = kGroup, .topics = {{"t", {base::PartitionId{0}}}}},
                         removed.done());
    slot.settle();
    EXPECT_EQ(fetched(slot, 0, true), -1);
    EXPECT_EQ(fetched(slot, 1, true), kUnstable);
    EXPECT_EQ(slot->picture(), slot.reloaded());
    Reply<DeleteGroupsAnswer> deleted;
    slot->delete_groups({kGroup}, deleted.done());
    slot.settle();
    EXPECT_EQ(end(slot, marker(kOne, true)), ErrorCode::kNone);
    EXPECT_EQ(state(slot), "Dead");
    EXPECT_EQ(slot->picture(), slot.reloaded());
}

TEST(TransactionalOffsets, KeepTheirGroupAndTheirPartitionFromExpiring) {
    TestSlot slot;
    EXPECT_EQ(commit_simple(slot, {3}), ErrorCode::kNone);
    EXPECT_EQ(commit_in_transaction(slot, pending(kOne, {5})), ErrorCode::kNone);
    slot.pass(std::chrono::days(9));
    EXPECT_EQ(fetched(slot), 3);
    EXPECT_EQ(end(slot, marker(kOne, false)), ErrorCode::kNone);
    slot.pass(std::chrono::minutes(10));
    EXPECT_EQ(fetched(slot), -1);
}

TEST(Verification, FirstCommitOfATransactionIsAskedFor) {
    TestSlot slot;
    const auto asked = slot->begin_verification(kOne, epoch(0));
    ASSERT_TRUE(asked);
    ASSERT_TRUE(asked->guard);
    EXPECT_EQ(slot->begin_verification(kOne, epoch(0))->guard, asked->guard)
        << "two that ask at once are one question";

    auto request = pending(kOne, {5});
    request.verification = {.guard = std::nullopt, .leadership = asked->leadership};
    EXPECT_EQ(commit_in_transaction(slot, request), ErrorCode::kInvalidTxnState);
    request.verification = *asked;
    EXPECT_EQ(commit_in_transaction(slot, request), ErrorCode::kNone);
    request.verification = *slot->begin_verification(kOne, epoch(0));
    EXPECT_EQ(request.verification->guard, std::nullopt);
    EXPECT_EQ(commit_in_transaction(slot, request), ErrorCode::kNone) << "it is open";

    EXPECT_EQ(end(slot, marker(kOne, false)), ErrorCode::kNone);
    request.verification = *asked;
    EXPECT_EQ(commit_in_transaction(slot, request), ErrorCode::kInvalidTxnState)
        << "what was verified has ended: a late commit would hang for ever";
}

TEST(Verification, ZombieIsRefusedBeforeAnybodyIsAsked) {
    TestSlot slot;
    EXPECT_EQ(commit_in_transaction(slot, pending(kOne, {5}, 3)), ErrorCode::kNone);
    EXPECT_EQ(slot->begin_verification(kOne, epoch(2)).error(), ErrorCode::kInvalidProducerEpoch);
}

TEST(Verification, MarkerMeanwhileEndsTheQuestion) {
    TestSlot slot;
    const auto asked = slot->begin_verification(kOne, epoch(0));
    EXPECT_EQ(end(slot, marker(kOne, false)), ErrorCode::kNone);
    auto request = pending(kOne, {5});
    request.verification = *asked;
    EXPECT_EQ(commit_in_transaction(slot, request), ErrorCode::kInvalidTxnState);
}

TEST(Verification, WhatAnotherLeadershipSaidIsNoErrorOfTheProducer) {
    TestSlot slot;
    auto request = pending(kOne, {5});
    request.verification = *slot->begin_verification(kOne, epoch(0));
    slot.restart();
    EXPECT_EQ(commit_in_transaction(slot, request), ErrorCode::kNotCoordinator);
    // What was open may be lost with the log that it was on its way to.
    EXPECT_EQ(commit_in_transaction(slot, pending(kOne, {5})), ErrorCode::kNone);
    request.verification = *slot->begin_verification(kOne, epoch(0));
    ASSERT_EQ(request.verification->guard, std::nullopt);
    slot.restart(0);
    EXPECT_EQ(commit_in_transaction(slot, request), ErrorCode::kNotCoordinator);
}

TEST(Producers, AreForgottenWhenTheyAreSilentForLong) {
    TestSlot slot;
    EXPECT_EQ(commit_in_transaction(slot, pending(kOne, {5}, 3)), ErrorCode::kNone);
    EXPECT_EQ(commit_in_transaction(slot, pending(kTwo, {6}, 3)), ErrorCode::kNone);
    EXPECT_EQ(end(slot, marker(kOne, true, 3)), ErrorCode::kNone);
    slot.pass(std::chrono::days(2));
    slot.journal->at_append = {};  // no line says who was forgotten: a reader forgets by itself
    EXPECT_EQ(commit_in_transaction(slot, pending(kOne, {7}, 2)), ErrorCode::kNone);
    EXPECT_EQ(commit_in_transaction(slot, pending(kTwo, {8}, 2)), ErrorCode::kInvalidProducerEpoch)
        << "it has an open transaction";
}

}  // namespace
}  // namespace kaas::coordinator::testing
