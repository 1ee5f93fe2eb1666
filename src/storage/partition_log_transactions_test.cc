// Goal: transactions begin and end in a log as in Apache 4.4's, and readers of committed data get
// to the last stable offset: no further, not less, and are woken when it moves. Method: a log in
// memory; bytes that Apache's own classes gave.

#include "storage/testing_committed.h"
#include "storage/testing_log.h"
#include "storage/testing_transactions.h"
#include "storage/transaction_marker.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace kaas::storage {
namespace {

using testing::Answer;
using testing::BatchOptions;
using testing::committed_offsets;
using ::testing::ElementsAre;
using testing::TransactionsTest;

[[nodiscard]] std::string hex(base::ByteView bytes) {
    std::string text;
    for (const auto byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
    return text;
}

TEST(TransactionMarkerTest, IsApachesToTheByte) {
    Marker marker{.producer = base::ProducerId{7777},
                  .epoch = base::ProducerEpoch{3},
                  .coordinator_epoch = 9,
                  .commit = true};
    auto bytes = encode_marker(marker, 1'700'000'000'000);
    wire::set_base_offset(bytes, 42);
    wire::set_partition_leader_epoch(bytes, 5);
    EXPECT_EQ(hex(bytes),
              "000000000000002a0000004200000005021c9388e20030000000000000018bcfe568000000018bcfe568"
              "000000000000001e610003ffffffff000000012000000008000000010c00000000000900");
    marker.commit = false;
    bytes = encode_marker(marker, 1'700'000'000'000);
    wire::set_base_offset(bytes, 42);
    wire::set_partition_leader_epoch(bytes, 5);
    EXPECT_EQ(hex(bytes),
              "000000000000002a000000420000000502e8ad5eaa0030000000000000018bcfe568000000018bcfe568"
              "000000000000001e610003ffffffff000000012000000008000000000c00000000000900");
}

// ---- the last stable offset -------------------------------------------------------------------

TEST_F(TransactionsTest, CommittedReadsGoOnBehindTheMarker) {
    auto log = open(0);
    begin(*log, 1);
    append_durably(*log, {});
    EXPECT_EQ(log->view().last_stable_offset, base::Offset{0});
    end(*log, 1, true);
    EXPECT_EQ(log->view().last_stable_offset, base::Offset{3});
    EXPECT_THAT(*committed_offsets(*log), ElementsAre(0, 1));
    EXPECT_EQ(log->latest(Isolation::kReadCommitted)->offset, base::Offset{3});
}

TEST_F(TransactionsTest, TheStableOffsetWaitsForTheOldestTransaction) {
    auto log = open(0);
    begin(*log, 1);
    begin(*log, 2);
    end(*log, 2, true);
    EXPECT_EQ(log->view().last_stable_offset, base::Offset{0});
    begin(*log, 3);
    end(*log, 1, false);
    EXPECT_EQ(log->view().last_stable_offset, base::Offset{3});
}

TEST_F(TransactionsTest, AMarkerCountsOnlyOnceItIsDurable) {
    auto log = open(0);
    begin(*log, 1);
    Answer answer;
    ASSERT_TRUE(append_marker(
        *log, {.producer = base::ProducerId{1}, .epoch = base::ProducerEpoch{0}}, answer));
    EXPECT_EQ(log->view().last_stable_offset, base::Offset{0});
    EXPECT_FALSE(answer.value);
    broker_->commit_all();
    EXPECT_EQ(log->view().last_stable_offset, base::Offset{2});
    EXPECT_TRUE(answer.good());
}

TEST_F(TransactionsTest, AMarkerOfAFencedBrokerIsNotAnswered) {
    auto log = open(0);
    begin(*log, 1);
    broker_->session.fenced = true;
    Answer answer;
    ASSERT_TRUE(append_marker(
        *log, {.producer = base::ProducerId{1}, .epoch = base::ProducerEpoch{0}}, answer));
    broker_->commit_all();
    ASSERT_TRUE(answer.value);
    EXPECT_EQ(answer.value->error().code, ErrorCode::kFenced);
    EXPECT_EQ(log->view().last_stable_offset, base::Offset{0});
}

TEST_F(TransactionsTest, AMarkerIsSyncedThoughDataNeedNotBe) {
    LogConfig config;
    config.flush_messages = 1000;
    auto log = open(0, config);
    begin(*log, 1);
    end(*log, 1, true);
    kill_and_reopen(log, config);
    EXPECT_EQ(log->view().last_stable_offset, base::Offset{2})
        << "its coordinator has forgotten the transaction";
}

TEST_F(TransactionsTest, AnOpenTransactionOutlivesItsBroker) {
    auto log = open(0);
    append_durably(*log, {});
    begin(*log, 1);
    append_durably(*log, {});
    ASSERT_TRUE(log->release(std::chrono::seconds(1)));
    restart();
    log = open(1);
    EXPECT_EQ(log->view().last_stable_offset, base::Offset{1});
    kill_and_reopen(log);
    EXPECT_EQ(log->view().last_stable_offset, base::Offset{1});
    end(*log, 1, false);
    EXPECT_EQ(log->view().last_stable_offset, base::Offset{4});
    EXPECT_THAT(*committed_offsets(*log), ElementsAre(0, 2));
    kill_and_reopen(log);
    EXPECT_EQ(log->view().last_stable_offset, base::Offset{4});
    EXPECT_THAT(*committed_offsets(*log), ElementsAre(0, 2));
}

TEST_F(TransactionsTest, DeletingPastAnOpenTransactionMovesTheStableOffset) {
    auto log = open(0);
    begin(*log, 1);
    append_durably(*log, {});
    append_durably(*log, {});
    std::optional<Result<base::Offset>> start;
    log->delete_records(base::Offset{2}, broker_->executor,
                        [&](Result<base::Offset> answer) { start = std::move(answer); });
    broker_->commit_all();
    ASSERT_TRUE(start && *start);
    EXPECT_EQ(log->view().last_stable_offset, base::Offset{2});
    append_durably(*log, {});
    EXPECT_EQ(log->view().last_stable_offset, base::Offset{2}) << "it is open still";
    kill_and_reopen(log);
    EXPECT_EQ(log->view().last_stable_offset, base::Offset{2});
    end(*log, 1, true);
    EXPECT_EQ(log->view().last_stable_offset, base::Offset{5});
}

TEST_F(TransactionsTest, AskingForATimeFindsNothingThatIsNotStable) {
    auto log = open(0);
    const auto time = BatchOptions{}.timestamp_ms;
    append_durably(*log, {.timestamp_ms = time});
    append_durably(*log, {.timestamp_ms = time + 10,
                          .producer_id = 1,
                          .producer_epoch = 0,
                          .sequence = 0,
                          .transactional = true});
    EXPECT_FALSE(*log->first_at_or_after(time + 5, Isolation::kReadCommitted));
    EXPECT_TRUE(*log->first_at_or_after(time + 5, Isolation::kReadUncommitted));
    end(*log, 1, true);
    EXPECT_EQ((*log->first_at_or_after(time + 5, Isolation::kReadCommitted))->offset,
              base::Offset{1});
}

TEST_F(TransactionsTest, ProducersTellOfTheirTransactions) {
    auto log = open(0);
    append_durably(*log, {});
    begin(*log, 1);
    EXPECT_EQ(log->producers().at(0).entry.transaction_start, base::Offset{1});
    EXPECT_EQ(log->producers().at(0).entry.coordinator_epoch, -1);
    end(*log, 1, true);
    EXPECT_EQ(log->producers().at(0).entry.transaction_start, std::nullopt);
    EXPECT_EQ(log->producers().at(0).entry.coordinator_epoch, 1);
}

TEST_F(TransactionsTest, RefusedOnesChangeNothing) {
    auto log = open(0);
    Answer answer;
    auto request = testing::to_append(
        testing::make_batch(
            {.producer_id = 1, .producer_epoch = 0, .sequence = 0, .transactional = true}),
        Acks::kAll, broker_->executor, answer.receiver());
    EXPECT_EQ(log->append(std::move(request)).error().code, ErrorCode::kInvalidTxnState);
    begin(*log, 1);
    end(*log, 1, true);
    EXPECT_EQ(append_marker(*log,
                            {.producer = base::ProducerId{1},
                             .epoch = base::ProducerEpoch{0},
                             .coordinator_epoch = 0},
                            answer)
                  .error()
                  .code,
              ErrorCode::kTransactionCoordinatorFenced);
    broker_->commit_all();
    EXPECT_EQ(log->view().high_watermark, base::Offset{2});
    log->abandon(ErrorCode::kClosed);
    EXPECT_FALSE(append_marker(*log, {.producer = base::ProducerId{1}}, answer));
    EXPECT_FALSE(log->begin_verification(base::ProducerId{1}, base::ProducerEpoch{0}, 0, false));
    EXPECT_FALSE(answer.value);
}

// ---- waiting ----------------------------------------------------------------------------------

TEST_F(TransactionsTest, WhoWaitsForCommittedDataIsWokenByTheMarker) {
    auto log = open(0);
    append_durably(*log, {});
    begin(*log, 1);
    int woken = 0;
    std::ignore = log->watch({.beyond = base::Offset{1},
                              .isolation = Isolation::kReadCommitted,
                              .home = &broker_->executor,
                              .wake = [&] { ++woken; }});
    append_durably(*log, {});
    begin(*log, 1);
    EXPECT_EQ(woken, 0);
    end(*log, 1, true);
    EXPECT_EQ(woken, 1);
}

TEST_F(TransactionsTest, WhoWaitsForCommittedBytesIsWokenOnceTheyAreThere) {
    auto log = open(0);
    const auto one = testing::make_batch({}).size();
    begin(*log, 1);
    begin(*log, 2);
    append_durably(*log, {});
    int woken = 0;
    std::ignore = log->watch({.beyond = base::Offset{0},
                              .min_bytes = 2 * one,
                              .isolation = Isolation::kReadCommitted,
                              .home = &broker_->executor,
                              .wake = [&] { ++woken; }});
    end(*log, 1, true);  // readers get to the second transaction
    EXPECT_EQ(log->view().last_stable_offset, base::Offset{1});
    EXPECT_EQ(woken, 0);
    end(*log, 2, true);
    EXPECT_EQ(woken, 1);
}

TEST_F(TransactionsTest, WhoWaitsBehindATransactionOfAnEarlierLifeIsWoken) {
    auto log = open(0);
    begin(*log, 1);
    append_durably(*log, {});
    kill_and_reopen(log);
    int woken = 0;
    std::ignore = log->watch({.beyond = base::Offset{0},
                              .min_bytes = 100'000,
                              .isolation = Isolation::kReadCommitted,
                              .home = &broker_->executor,
                              .wake = [&] { ++woken; }});
    append_durably(*log, {});
    EXPECT_EQ(woken, 0);
    end(*log, 1, true);
    EXPECT_EQ(woken, 1);
}

}  // namespace
}  // namespace kaas::storage
