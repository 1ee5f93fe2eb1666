// How transactions end: what leaves when, what waits, what a new leadership goes on with, what time
// does.

#include "coordinator/testing_transactions.h"
#include "coordinator/transaction_fixture.h"
#include "coordinator/transaction_requests.h"
#include "coordinator/transaction_slot.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::coordinator {
namespace {

using namespace std::chrono_literals;
using testing::partition;
using testing::producer;
using E = ErrorCode;

class EndingTest : public testing::TransactionFixture {
protected:
    /// A transaction of two partitions, as far as its markers under way.
    void prepare(bool commit = true) {
        init();
        ASSERT_EQ(add(producer(1000, 0), {partition("t", 0), partition("u", 1)}), E::kNone);
        ASSERT_EQ(end(producer(1000, 0), commit).error, E::kNone);
        ASSERT_EQ(markers_.sent.size(), 2);
    }
    [[nodiscard]] std::string state() { return describe().state; }
};

TEST_F(EndingTest, NoMarkerLeavesBeforeTheDecisionIsDurable) {
    init();
    add(producer(1000, 0), {partition("t", 0)});
    std::optional<EndTxnAnswer> answer;
    slot_->end_txn({"pay", producer(1000, 0), true, kEpochBump}, into(answer));
    EXPECT_TRUE(markers_.sent.empty());
    EXPECT_FALSE(answer);
    journal_.settle_all();
    EXPECT_EQ(markers_.sent.size(), 1);
    EXPECT_TRUE(answer);
}

TEST_F(EndingTest, ItIsCompleteOnlyWhenEachPartitionHasItsMarker) {
    prepare();
    auto second = std::move(markers_.sent.back());
    markers_.sent.pop_back();
    markers_.answer_all();
    EXPECT_EQ(state(), "PrepareCommit");
    EXPECT_EQ(describe().partitions, std::vector{second.partition}) << "what still waits";
    second.written(E::kNone);
    EXPECT_TRUE(journal_.anybody_waits()) << "nobody asks for the last line";
    EXPECT_EQ(state(), "CompleteCommit");
    EXPECT_TRUE(describe().partitions.empty());
}

TEST_F(EndingTest, MarkersAreSentUntilEachIsThere) {
    prepare(false);
    markers_.answer_all(E::kNotLeaderOrFollower);
    EXPECT_TRUE(markers_.sent.empty()) << "no pause";
    pass(20ms);
    ASSERT_EQ(markers_.sent.size(), 2);
    // One is taken, the other not, for as long as it takes.
    markers_.sent.front().written(E::kNone);
    markers_.sent.pop_front();
    std::chrono::milliseconds waited{0};
    for (int attempt = 0; attempt < 20; ++attempt) {
        ASSERT_EQ(markers_.answer_all(E::kRequestTimedOut), 1) << attempt;
        for (waited = 0ms; markers_.sent.empty(); waited += 10ms) pass(10ms);
    }
    EXPECT_EQ(waited, TransactionSlot::kLongestRetry) << "pauses that do not stop growing";
    EXPECT_FALSE(markers_.sent.front().marker.commit);
    markers_.answer_all();
    EXPECT_EQ(state(), "CompleteAbort");
}

TEST_F(EndingTest, ADeletedPartitionHoldsNothingUp) {
    prepare();
    markers_.answer_all(E::kUnknownTopicOrPartition);
    EXPECT_EQ(state(), "CompleteCommit");
}

TEST_F(EndingTest, WhatComesBetweenPrepareAndCompleteWaitsForTheEnd) {
    prepare();
    std::optional<ErrorCode> added;
    std::optional<EndTxnAnswer> repeated;
    slot_->end_txn({"pay", producer(1000, 0), true, kEpochBump}, into(repeated));
    slot_->add_partitions({"pay", producer(1000, 1), {partition("t", 0)}, kEpochBump}, into(added));
    pass(400ms);
    journal_.settle_all();
    EXPECT_FALSE(added);
    EXPECT_FALSE(repeated);
    markers_.answer_all();
    EXPECT_FALSE(added) << "before it is durable";
    journal_.settle_all();
    EXPECT_EQ(added, E::kNone);
    ASSERT_TRUE(repeated);
    EXPECT_EQ(repeated->error, E::kNone);
    EXPECT_EQ(repeated->producer, producer(1000, 1));
    EXPECT_EQ(state(), "Ongoing");
}

TEST_F(EndingTest, AProducerWaitsForTheTransactionOfItsPredecessor) {
    prepare();
    std::optional<InitProducerIdAnswer> answer;
    slot_->init_producer_id({.transactional_id = "pay", .transaction_timeout = 1s}, into(answer));
    finish_markers();
    journal_.settle_all();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->producer, producer(1000, 2));
}

TEST_F(EndingTest, NobodyWaitsForever) {
    prepare();
    std::optional<ErrorCode> added;
    std::optional<EndTxnAnswer> repeated;
    std::optional<EndTxnAnswer> fixed;
    std::optional<InitProducerIdAnswer> fresh;
    slot_->add_partitions({"pay", producer(1000, 1), {partition("t", 0)}, kEpochBump}, into(added));
    slot_->end_txn({"pay", producer(1000, 0), true, kEpochBump}, into(repeated));
    slot_->end_txn({"pay", producer(1000, 1), true, kFixedEpoch}, into(fixed));
    slot_->init_producer_id({.transactional_id = "pay", .transaction_timeout = 1s}, into(fresh));
    pass(TransactionSlot::kPatience);
    journal_.settle_all();
    EXPECT_EQ(added, E::kConcurrentTransactions);
    EXPECT_EQ(repeated->error, E::kConcurrentTransactions);
    EXPECT_EQ(fixed->error, E::kConcurrentTransactions);
    EXPECT_EQ(fresh->error, E::kConcurrentTransactions);
    finish_markers();
    EXPECT_EQ(state(), "CompleteCommit");
}

TEST_F(EndingTest, WhoeverWaitsHearsOfTheEndOfTheLeadership) {
    prepare();
    std::optional<ErrorCode> added;
    slot_->add_partitions({"pay", producer(1000, 1), {partition("t", 0)}, kEpochBump}, into(added));
    auto late = std::move(markers_.sent);
    slot_->close();
    EXPECT_EQ(added, E::kNotCoordinator);
    const auto lines = journal_.lines.size();
    for (auto& one : late) one.written(E::kNone);
    EXPECT_EQ(journal_.lines.size(), lines) << "a line after the end";
    slot_.reset();
    EXPECT_EQ(timers_.size(), 0);
}

TEST_F(EndingTest, MarkersThatComeBackTooLateHurtNobody) {
    prepare();
    auto late = std::move(markers_.sent);
    slot_.reset();
    for (auto& one : late) one.written(E::kNone);
}

// Crashes

TEST_F(EndingTest, ANewLeadershipSendsTheMarkersUnderItsEpoch) {
    for (const bool commit : {true, false}) {
        prepare(commit);
        markers_.sent.front().written(E::kNone);  // and the other never
        lead(5);
        EXPECT_TRUE(markers_.sent.empty()) << "before this leadership is known to stand";
        journal_.settle_all();
        ASSERT_EQ(markers_.sent.size(), 2) << "who knows which of them had theirs?";
        for (const auto& one : markers_.sent) {
            EXPECT_EQ(one.marker.coordinator_epoch, 5);
            EXPECT_EQ(one.marker.commit, commit);
            EXPECT_EQ(one.marker.epoch, base::ProducerEpoch(1));
            EXPECT_EQ(one.marker.producer, base::ProducerId(1000));
            EXPECT_EQ(one.marker.transaction_version, kEpochBump);
        }
        finish_markers();
        EXPECT_EQ(state(), commit ? "CompleteCommit" : "CompleteAbort");
        journal_ = {};
        ids_ = {};
        lead(1);
    }
}

TEST_F(EndingTest, WhatWasNotDurableWasNeverDecided) {
    init();
    add(producer(1000, 0), {partition("t", 0)});
    std::optional<EndTxnAnswer> answer;
    slot_->end_txn({"pay", producer(1000, 0), true, kEpochBump}, into(answer));
    lead(2);
    EXPECT_EQ(state(), "Ongoing");
    EXPECT_EQ(end(producer(1000, 0), false).error, E::kNone);
}

TEST_F(EndingTest, APictureIsAllOfIt) {
    prepare();
    init({}, "a2");
    add(producer(1001, 0), {partition("t", 0)}, kFixedEpoch, "a2");
    auto picture = slot_->picture();
    picture["owner"] = "a later version";
    picture["transactions"].as_array().emplace_back(boost::json::parse(
        R"({"transactional_id":"z","state":"Empty","producer_id":1,"producer_epoch":0,
            "timeout_ms":5,"updated_ms":6,"team":"billing"})"));
    lead(2);
    // Loading replaces nothing here: a slot is loaded once.
    journal_ = {};
    lead(2);
    ASSERT_TRUE(slot_->load_picture(picture));
    auto again = slot_->picture();
    EXPECT_EQ(again.at("owner"), "a later version");
    const auto text = boost::json::serialize(again);
    EXPECT_NE(text.find(R"("team":"billing")"), std::string::npos);
    EXPECT_NE(text.find(R"("transactional_id":"a2")"), std::string::npos);
    EXPECT_NE(text.find(R"("state":"PrepareCommit")"), std::string::npos);
    EXPECT_EQ(again.at("transactions").as_array().size(), 3);
}

TEST_F(EndingTest, APictureOfALaterFormatIsNotTouched) {
    const auto loaded = slot_->load_picture({{"format", 2}});
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, catalog::ErrorCode::kNewerFormat);
    EXPECT_FALSE(slot_->load_picture({{"transactions", {1}}}));
    EXPECT_FALSE(slot_->load_picture({{"transactions", 1}}));
}

// Time

TEST_F(EndingTest, ATransactionThatTakesTooLongIsAbortedAndItsProducerFenced) {
    init();
    add(producer(1000, 0), {partition("t", 0)}, kFixedEpoch);
    pass(60s);
    EXPECT_EQ(state(), "Ongoing") << "exactly its timeout is not too long";
    pass(10s);
    journal_.settle_all();
    ASSERT_EQ(markers_.sent.size(), 1);
    EXPECT_FALSE(markers_.sent.at(0).marker.commit);
    EXPECT_EQ(markers_.sent.at(0).marker.epoch, base::ProducerEpoch(1));
    finish_markers();
    EXPECT_EQ(metrics_.timed_out.value(), 1);
    // The zombie, in either protocol.
    EXPECT_EQ(add(producer(1000, 0), {partition("t", 0)}), E::kProducerFenced);
    EXPECT_EQ(end(producer(1000, 0), true, kFixedEpoch).error, E::kProducerFenced);
    EXPECT_EQ(end(producer(1000, 0), true, kEpochBump).error, E::kInvalidTxnState);
    EXPECT_EQ(end(producer(1000, 0), false, kEpochBump).producer, producer(1000, 1));
    EXPECT_EQ(init(producer(1000, 0)).producer, producer(1000, 1)) << "KIP-360";
}

TEST_F(EndingTest, ANewLeadershipCountsTheTimeFromTheStart) {
    init();
    add(producer(1000, 0), {partition("t", 0)});
    clock_.advance(61s);
    lead(2);
    pass(config_.abort_interval);
    journal_.settle_all();
    EXPECT_EQ(markers_.sent.size(), 1);
}

TEST_F(EndingTest, ATransactionOfAnotherCoordinatorNeverTimesOut) {
    config_.two_phase_commit = true;
    std::optional<InitProducerIdAnswer> answer;
    slot_->init_producer_id(
        {.transactional_id = "pay", .transaction_timeout = 1s, .enable_two_phase_commit = true},
        into(answer));
    journal_.settle_all();
    add(producer(1000, 0), {partition("t", 0)});
    EXPECT_EQ(describe().timeout_ms, 2'147'483'647);
    pass(24h);
    EXPECT_EQ(state(), "Ongoing");
}

TEST_F(EndingTest, ATimeoutUnderTheLastEpochWaitsForAnId) {
    restart_with(R"({"transactional_id":"pay","state":"Ongoing","producer_id":7,)"
                 R"("producer_epoch":32766,"timeout_ms":1000,"updated_ms":1,"started_ms":1})");
    ids_.at_once = false;
    pass(config_.abort_interval);
    pass(config_.abort_interval);
    ASSERT_EQ(ids_.waiting.size(), 2);
    EXPECT_EQ(state(), "Ongoing");
    for (auto& got : ids_.waiting) got(ids_.next());
    journal_.settle_all();
    EXPECT_EQ(state(), "CompleteAbort");
    EXPECT_EQ(describe().producer, producer(1000, 0));
}

TEST_F(EndingTest, IdsThatNobodyUsesAreForgotten) {
    init({}, "idle");
    init({}, "open");
    add(producer(1001, 0), {partition("t", 0)}, kEpochBump, "open");
    config_.abort_interval = 24h * 365;
    pass(config_.id_expiration - 1h);
    init({}, "fresh");
    pass(1h);
    journal_.settle_all();
    EXPECT_EQ(describe("idle").error, E::kTransactionalIdNotFound);
    EXPECT_EQ(describe("fresh").error, E::kNone);
    EXPECT_EQ(metrics_.expired_ids.value(), 1);
    lead(2);
    EXPECT_EQ(describe("idle").error, E::kTransactionalIdNotFound) << "it came back";
    pass(config_.id_expiration);
    EXPECT_EQ(describe("fresh").error, E::kTransactionalIdNotFound);
}

TEST_F(EndingTest, ASlotWithoutIdsCostsNothing) {
    EXPECT_EQ(timers_.size(), 0);
    init();
    EXPECT_EQ(timers_.size(), 1);
    pass(config_.id_expiration + 1h);
    EXPECT_EQ(timers_.size(), 0);
}

}  // namespace
}  // namespace kaas::coordinator
