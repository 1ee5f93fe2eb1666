// What a transaction coordinator answers, in each state that a transactional id can be in. Codes
// are Apache 4.4's (`TransactionCoordinator`).

#include "coordinator/transaction_slot.h"

#include "coordinator/testing_transactions.h"
#include "coordinator/transaction_fixture.h"
#include "coordinator/transaction_requests.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

namespace kaas::coordinator {
namespace {

using namespace std::chrono_literals;
using testing::partition;
using testing::producer;
using E = ErrorCode;

class TransactionSlotTest : public testing::TransactionFixture {
protected:
    /// An id whose producer has no epochs left but the given one.
    void restart_exhausted(std::int16_t epoch, const std::string& more = "") {
        restart_with(R"({"transactional_id":"pay","state":"CompleteCommit","producer_id":7,)"
                     R"("producer_epoch":)" +
                     std::to_string(epoch) + R"(,"timeout_ms":60000,"updated_ms":1)" + more + "}");
    }
};

// InitProducerId

TEST_F(TransactionSlotTest, ANewIdIsAnsweredOnlyWhenItIsDurable) {
    std::optional<InitProducerIdAnswer> answer;
    slot_->init_producer_id({.transactional_id = "pay", .transaction_timeout = 1s}, into(answer));
    EXPECT_EQ(journal_.lines.size(), 1);
    EXPECT_FALSE(answer);
    journal_.settle_all();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->error, E::kNone);
    EXPECT_EQ(answer->producer, producer(1000, 0));
}

TEST_F(TransactionSlotTest, AProducerThatComesAgainFencesItsPredecessor) {
    init();
    EXPECT_EQ(init().producer, producer(1000, 1));
    EXPECT_EQ(add(producer(1000, 0), {partition("t", 0)}), E::kProducerFenced);
    EXPECT_EQ(init({}, "other").producer, producer(1001, 0));
}

TEST_F(TransactionSlotTest, AProducerThatNamesItsEpochGoesOnUntilItIsFenced) {
    init();
    EXPECT_EQ(init(producer(1000, 0)).producer, producer(1000, 1));
    // The answer was lost: it asks again, and is given the same.
    EXPECT_EQ(init(producer(1000, 0)).producer, producer(1000, 1));
    EXPECT_EQ(init(producer(1000, 1)).producer, producer(1000, 2));
    EXPECT_EQ(init(producer(1000, 0)).error, E::kProducerFenced);
    EXPECT_EQ(init(producer(999, 2)).error, E::kProducerFenced);
    EXPECT_EQ(init(producer(1000, 3)).error, E::kProducerFenced);
    // Whoever names nothing leaves no way back.
    init();
    EXPECT_EQ(init(producer(1000, 2)).error, E::kProducerFenced);
}

TEST_F(TransactionSlotTest, AnExpiredProducerMayComeBackWithWhatItHad) {
    EXPECT_EQ(init(producer(17, 4)).producer, producer(1000, 0));
}

TEST_F(TransactionSlotTest, AUsedUpEpochGivesANewId) {
    restart_exhausted(32'766);
    EXPECT_EQ(init().producer, producer(1000, 0));
    EXPECT_EQ(init(producer(7, 32'766)).error, E::kProducerFenced) << "nobody kept the way back";
}

TEST_F(TransactionSlotTest, AUsedUpEpochGivesANewIdToItsOwner) {
    restart_exhausted(32'766);
    EXPECT_EQ(init(producer(7, 32'766)).producer, producer(1000, 0));
    EXPECT_EQ(init(producer(7, 32'766)).producer, producer(1000, 0)) << "the answer was lost";
}

TEST_F(TransactionSlotTest, TheLastEpochIsGivenOut) {
    restart_exhausted(32'765);
    EXPECT_EQ(init().producer, producer(7, 32'766));
}

TEST_F(TransactionSlotTest, AnOlderEpochOfAUsedUpIdIsWhatApacheMakesOfIt) {
    restart_exhausted(32'766, R"(,"last_producer_epoch":32765)");
    EXPECT_EQ(init(producer(7, 32'765)).error, E::kUnknownServerError);
}

TEST_F(TransactionSlotTest, WhatIsOngoingIsAbortedBeforeANewProducerBegins) {
    init();
    ASSERT_EQ(add(producer(1000, 0), {partition("t", 0), partition("u", 1)}), E::kNone);
    EXPECT_EQ(init().error, E::kConcurrentTransactions);
    ASSERT_EQ(markers_.sent.size(), 2);
    EXPECT_FALSE(markers_.sent[0].marker.commit);
    EXPECT_EQ(markers_.sent[0].marker.producer, base::ProducerId(1000));
    EXPECT_EQ(markers_.sent[0].marker.epoch, base::ProducerEpoch(1));
    EXPECT_EQ(markers_.sent[0].marker.coordinator_epoch, 1);
    EXPECT_EQ(markers_.sent[0].marker.transaction_version, kEpochBump);
    finish_markers();
    EXPECT_EQ(describe().state, "CompleteAbort");
    EXPECT_EQ(init().producer, producer(1000, 2));
}

TEST_F(TransactionSlotTest, WhatIsOngoingUnderTheLastEpochEndsUnderANewId) {
    restart_exhausted(32'766);
    ASSERT_EQ(add(producer(7, 32'766), {partition("t", 0)}), E::kNone);
    EXPECT_EQ(init().error, E::kConcurrentTransactions);
    EXPECT_EQ(markers_.sent.at(0).marker.epoch, base::ProducerEpoch(32'767));
    EXPECT_EQ(markers_.sent.at(0).marker.producer, base::ProducerId(7));
    finish_markers();
    EXPECT_EQ(describe().producer, producer(1000, 0));
}

TEST_F(TransactionSlotTest, RefusesWhatNoProducerMayAskFor) {
    struct Case {
        const char* fault;
        InitProducerIdRequest request;
        ErrorCode error;
    };
    const Case cases[] = {
        {"an empty id", {.transactional_id = "", .transaction_timeout = 1s}, E::kInvalidRequest},
        {"no timeout",
         {.transactional_id = "p", .transaction_timeout = 0s},
         E::kInvalidTransactionTimeout},
        {"a timeout in the past",
         {.transactional_id = "p", .transaction_timeout = -1ms},
         E::kInvalidTransactionTimeout},
        {"too long a timeout",
         {.transactional_id = "p", .transaction_timeout = 900'001ms},
         E::kInvalidTransactionTimeout},
        {"two-phase commit, which is off",
         {.transactional_id = "p", .transaction_timeout = 1s, .enable_two_phase_commit = true},
         E::kTransactionalIdAuthorizationFailed},
        {"a prepared transaction",
         {.transactional_id = "p", .transaction_timeout = 1s, .keep_prepared = true},
         E::kUnsupportedVersion},
    };
    for (const auto& [fault, request, error] : cases) {
        EXPECT_EQ(TransactionSlot::check(request, config_), error) << fault;
    }
    EXPECT_EQ(TransactionSlot::check({.transactional_id = "p", .transaction_timeout = 900'000ms},
                                     config_),
              E::kNone);
}

TEST_F(TransactionSlotTest, WaitsForAProducerId) {
    ids_.at_once = false;
    std::optional<InitProducerIdAnswer> first;
    std::optional<InitProducerIdAnswer> second;
    slot_->init_producer_id({.transactional_id = "pay", .transaction_timeout = 1s}, into(first));
    slot_->init_producer_id({.transactional_id = "pay", .transaction_timeout = 1s}, into(second));
    for (auto& got : ids_.waiting) got(ids_.next());
    journal_.settle_all();
    EXPECT_EQ(first->producer, producer(1000, 0));
    EXPECT_EQ(second->producer, producer(1000, 1)) << "two incarnations with one epoch";
}

TEST_F(TransactionSlotTest, SaysWhyThereIsNoProducerId) {
    ids_.error = E::kCoordinatorLoadInProgress;
    EXPECT_EQ(init().error, E::kCoordinatorLoadInProgress);
    ids_.error = E::kNone;
    EXPECT_EQ(init().producer, producer(1000, 0));
}

// AddPartitionsToTxn

TEST_F(TransactionSlotTest, KnowsWhoMayAddPartitions) {
    init();
    init();
    const std::vector<TransactionPartition> t0{partition("t", 0)};
    EXPECT_EQ(add(producer(1000, 1), t0, kEpochBump, ""), E::kInvalidRequest);
    EXPECT_EQ(add(producer(1000, 1), t0, kEpochBump, "other"), E::kInvalidProducerIdMapping);
    EXPECT_EQ(add(producer(1001, 1), t0), E::kInvalidProducerIdMapping);
    EXPECT_EQ(add(producer(1000, 0), t0), E::kProducerFenced);
    EXPECT_EQ(add(producer(1000, 2), t0), E::kProducerFenced);
    EXPECT_EQ(add(producer(1000, 1), t0), E::kNone);
}

TEST_F(TransactionSlotTest, PartitionsThatWereAddedCostNothing) {
    init();
    ASSERT_EQ(add(producer(1000, 0), {partition("t", 0)}), E::kNone);
    EXPECT_NE(journal_.lines.back().find(R"("transaction_version":2)"), std::string::npos);
    const auto lines = journal_.lines.size();
    ASSERT_EQ(add(producer(1000, 0), {partition("t", 0)}), E::kNone);
    EXPECT_EQ(journal_.lines.size(), lines);
    ASSERT_EQ(add(producer(1000, 0), {partition("t", 0), partition("t", 1)}), E::kNone);
    EXPECT_EQ(journal_.lines.size(), lines + 1);
}

TEST_F(TransactionSlotTest, ATransactionBeginsWithItsFirstPartitionAndKeepsItsStart) {
    init();
    EXPECT_EQ(describe().start_ms, -1);
    const auto began = clock_.wall_ms();
    add(producer(1000, 0), {partition("t", 0)});
    clock_.advance(5s);
    add(producer(1000, 0), {partition("a", 2)});
    const auto now = describe();
    EXPECT_EQ(now.start_ms, began);
    EXPECT_EQ(now.state, "Ongoing");
    EXPECT_EQ(now.timeout_ms, 60'000);
    EXPECT_EQ(now.producer, producer(1000, 0));
    EXPECT_EQ(now.partitions, (std::vector{partition("a", 2), partition("t", 0)}));
}

TEST_F(TransactionSlotTest, AnEmptyListBeginsATransaction) {
    init();
    EXPECT_EQ(add(producer(1000, 0), {}, kFixedEpoch), E::kNone);
    EXPECT_EQ(describe().state, "Ongoing");
    EXPECT_EQ(end(producer(1000, 0), true, kFixedEpoch).error, E::kNone);
    EXPECT_EQ(describe().state, "CompleteCommit");
}

TEST_F(TransactionSlotTest, VerifiesWhatWasAdded) {
    init();
    add(producer(1000, 0), {partition("t", 0)});
    struct Case {
        const char* fault;
        std::string id;
        ProducerIdAndEpoch who;
        std::vector<ErrorCode> errors;
    };
    const Case cases[] = {
        {"what was not added", "pay", producer(1000, 0), {E::kNone, E::kTransactionAbortable}},
        {"no id", "", producer(1000, 0), {E::kInvalidRequest, E::kInvalidRequest}},
        {"an unknown id",
         "other",
         producer(1000, 0),
         {E::kInvalidProducerIdMapping, E::kInvalidProducerIdMapping}},
        {"another producer",
         "pay",
         producer(999, 0),
         {E::kInvalidProducerIdMapping, E::kInvalidProducerIdMapping}},
        {"another epoch", "pay", producer(1000, 1), {E::kProducerFenced, E::kProducerFenced}},
    };
    for (const auto& [fault, id, who, errors] : cases) {
        std::optional<std::vector<ErrorCode>> answer;
        slot_->verify_partitions({id, who, {partition("t", 0), partition("t", 1)}}, into(answer));
        journal_.settle_all();
        EXPECT_EQ(answer, errors) << fault;
    }
    end(producer(1000, 0), true, kFixedEpoch);
    std::optional<std::vector<ErrorCode>> answer;
    slot_->verify_partitions({"pay", producer(1000, 0), {partition("t", 0)}}, into(answer));
    journal_.settle_all();
    EXPECT_EQ(answer, std::vector{E::kConcurrentTransactions});
}

TEST_F(TransactionSlotTest, NobodyVerifiesForALeadershipThatIsOver) {
    init();
    add(producer(1000, 0), {partition("t", 0)});
    std::optional<std::vector<ErrorCode>> answer;
    slot_->verify_partitions({"pay", producer(1000, 0), {partition("t", 0)}}, into(answer));
    EXPECT_FALSE(answer);
    journal_.settle_one(false);
    EXPECT_EQ(answer, std::vector{E::kNotCoordinator});
}

// EndTxn

/// One question in one state.
struct EndCase {
    const char* fault;
    bool commit;
    std::int16_t epoch;
    ErrorCode error;
};

class EndTxnTest : public TransactionSlotTest {
protected:
    /// Looks at each case from the same state.
    void expect(TransactionVersion version, const std::vector<EndCase>& cases,
                std::int64_t id = 7) {
        for (const auto& one : cases) {
            lead(2);
            const auto answer = end(producer(id, one.epoch), one.commit, version);
            EXPECT_EQ(answer.error, one.error) << one.fault;
        }
    }
    void restart_in(const std::string& state, const std::string& more = "") {
        restart_with(R"({"transactional_id":"pay","state":")" + state +
                     R"(","producer_id":7,"producer_epoch":4,"timeout_ms":60000,"updated_ms":1)" +
                     more + "}");
        durable_ = journal_.lines;
    }
    void lead(std::int32_t epoch) {
        journal_.lines = durable_;
        journal_.durable = durable_.size();
        TransactionSlotTest::lead(epoch);
    }

private:
    std::vector<std::string> durable_;
};

TEST_F(EndTxnTest, OfTheFixedEpochInEachState) {
    restart_in("Empty");
    expect(kFixedEpoch, {{"nothing to commit", true, 4, E::kInvalidTxnState},
                         {"nothing to abort", false, 4, E::kInvalidTxnState},
                         {"an older epoch", true, 3, E::kProducerFenced},
                         {"a newer epoch", true, 5, E::kProducerFenced}});
    expect(kFixedEpoch, {{"another id", true, 4, E::kInvalidProducerIdMapping}}, 8);
    restart_in("Ongoing");
    expect(kFixedEpoch, {{"commit", true, 4, E::kNone},
                         {"abort", false, 4, E::kNone},
                         {"a newer epoch", true, 5, E::kProducerFenced}});
    restart_in("CompleteCommit");
    expect(kFixedEpoch, {{"committed again", true, 4, E::kNone},
                         {"aborted after commit", false, 4, E::kInvalidTxnState},
                         {"an older epoch", true, 3, E::kProducerFenced}});
    restart_in("CompleteAbort");
    expect(kFixedEpoch, {{"committed after abort", true, 4, E::kInvalidTxnState},
                         {"aborted again", false, 4, E::kNone}});
}

TEST_F(EndTxnTest, OfABumpedEpochInEachState) {
    restart_in("Empty");
    expect(kEpochBump, {{"nothing to commit", true, 4, E::kInvalidTxnState},
                        {"an abort for a new epoch", false, 4, E::kNone},
                        {"an older epoch", false, 3, E::kProducerFenced},
                        {"a newer epoch", false, 5, E::kProducerFenced}});
    expect(kEpochBump, {{"another id", true, 4, E::kInvalidProducerIdMapping}}, 8);
    restart_in("Ongoing");
    expect(kEpochBump, {{"commit", true, 4, E::kNone},
                        {"abort", false, 4, E::kNone},
                        {"an older epoch", true, 3, E::kProducerFenced}});
    restart_in("CompleteCommit");
    expect(kEpochBump,
           {{"the epoch before one that does not change", true, 3, E::kProducerFenced}});
    restart_in("CompleteCommit", R"(,"transaction_version":2)");
    expect(kEpochBump, {{"committed again, the answer was lost", true, 3, E::kNone},
                        {"aborted after commit", false, 3, E::kInvalidTxnState},
                        {"nothing to commit", true, 4, E::kInvalidTxnState},
                        {"an abort for a new epoch", false, 4, E::kNone},
                        {"an older epoch", true, 2, E::kProducerFenced}});
    restart_in("CompleteAbort", R"(,"transaction_version":2)");
    expect(kEpochBump, {{"committed after abort", true, 3, E::kInvalidTxnState},
                        {"aborted again, the answer was lost", false, 3, E::kNone},
                        {"nothing to commit", true, 4, E::kInvalidTxnState},
                        {"an abort for a new epoch", false, 4, E::kNone}});
}

TEST_F(EndTxnTest, OfNoId) {
    EXPECT_EQ(end(producer(7, 0), true, kFixedEpoch, "").error, E::kInvalidRequest);
    EXPECT_EQ(end(producer(7, 0), true, kEpochBump, "").error, E::kInvalidRequest);
    EXPECT_EQ(end(producer(7, 0), true, kFixedEpoch).error, E::kInvalidProducerIdMapping);
    EXPECT_EQ(end(producer(7, 0), true, kEpochBump).error, E::kInvalidProducerIdMapping);
}

TEST_F(EndTxnTest, AFixedEpochStaysAndABumpedOneIsTold) {
    init();
    add(producer(1000, 0), {partition("t", 0)}, kFixedEpoch);
    EXPECT_EQ(end(producer(1000, 0), true, kFixedEpoch).producer, ProducerIdAndEpoch{});
    EXPECT_EQ(markers_.sent.at(0).marker.epoch, base::ProducerEpoch(0));
    EXPECT_EQ(markers_.sent.at(0).marker.transaction_version, kFixedEpoch);
    EXPECT_TRUE(markers_.sent.at(0).marker.commit);
    finish_markers();
    EXPECT_EQ(describe().producer, producer(1000, 0));

    add(producer(1000, 0), {partition("t", 0)});
    EXPECT_EQ(end(producer(1000, 0), false).producer, producer(1000, 1));
    EXPECT_EQ(markers_.sent.at(0).marker.epoch, base::ProducerEpoch(1));
    EXPECT_EQ(markers_.sent.at(0).marker.transaction_version, kEpochBump);
    finish_markers();
    EXPECT_EQ(describe().producer, producer(1000, 1));
    // Of what has ended, the next producer epoch is told again.
    EXPECT_EQ(end(producer(1000, 0), false).producer, producer(1000, 1));
    EXPECT_TRUE(markers_.sent.empty()) << "a repeated EndTxn gave more markers";
}

TEST_F(EndTxnTest, TheLastEpochEndsWithANewId) {
    restart_exhausted(32'766);
    add(producer(7, 32'766), {partition("t", 0)});
    EXPECT_EQ(end(producer(7, 32'766), true).producer, producer(1000, 0));
    EXPECT_EQ(markers_.sent.at(0).marker.epoch, base::ProducerEpoch(32'767));
    EXPECT_EQ(markers_.sent.at(0).marker.producer, base::ProducerId(7));
    finish_markers();
    EXPECT_EQ(end(producer(7, 32'766), true).producer, producer(1000, 0)) << "answer lost";
    EXPECT_EQ(init(producer(7, 32'766)).producer, producer(1000, 0)) << "answer lost";
    EXPECT_EQ(add(producer(1000, 0), {partition("t", 0)}), E::kNone);
    EXPECT_EQ(end(producer(7, 32'766), true).error, E::kInvalidProducerIdMapping);
}

TEST_F(EndTxnTest, OneThatLostALeadershipAnswersNothingElse) {
    init();
    add(producer(1000, 0), {partition("t", 0)});
    std::optional<EndTxnAnswer> answer;
    slot_->end_txn({"pay", producer(1000, 0), true, kEpochBump}, into(answer));
    while (journal_.settle_one(false)) {
    }
    EXPECT_EQ(answer->error, E::kNotCoordinator);
    EXPECT_EQ(answer->producer, ProducerIdAndEpoch{});
    EXPECT_TRUE(markers_.sent.empty()) << "a marker of a decision that may not stand";
}

TEST_F(EndTxnTest, AnAbortOfNothingIsATransactionOfItsOwn) {
    init();
    clock_.advance(5s);
    EXPECT_EQ(end(producer(1000, 0), false).producer, producer(1000, 1));
    EXPECT_EQ(describe().state, "CompleteAbort");
    EXPECT_EQ(describe().start_ms, clock_.wall_ms());
    EXPECT_TRUE(markers_.sent.empty());
    EXPECT_EQ(init().producer, producer(1000, 2));
    EXPECT_EQ(describe().state, "Empty");
    EXPECT_EQ(describe().start_ms, -1);
}

// DescribeTransactions, ListTransactions

TEST_F(TransactionSlotTest, DescribesOnlyWhatIsThere) {
    EXPECT_EQ(describe("").error, E::kInvalidRequest);
    EXPECT_EQ(describe("pay").error, E::kTransactionalIdNotFound);
    EXPECT_EQ(describe("pay").transactional_id, "pay");
}

TEST_F(TransactionSlotTest, ListsByEachFilter) {
    init({}, "a1");
    init({}, "a2");
    add(producer(1001, 0), {partition("t", 0)}, kEpochBump, "a2");
    init({}, "b1");
    add(producer(1002, 0), {partition("t", 0)}, kEpochBump, "b1");
    end(producer(1002, 0), true, kEpochBump, "b1");
    clock_.advance(10s);
    const auto list = [this](const TransactionFilter& filter) {
        std::optional<std::expected<std::vector<TransactionListing>, ErrorCode>> answer;
        slot_->list(filter, into(answer));
        journal_.settle_all();
        std::string ids;
        for (const auto& one : **answer) ids += one.transactional_id + " ";
        return ids;
    };
    using State = TransactionState;
    EXPECT_EQ(list({}), "a1 a2 b1 ");
    EXPECT_EQ(list({.states = {{State::kOngoing}}}), "a2 ");
    EXPECT_EQ(list({.states = {{State::kEmpty, State::kPrepareCommit}}}), "a1 b1 ");
    EXPECT_EQ(list({.states = {{}}}), "") << "only unknown states were asked for";
    EXPECT_EQ(list({.producers = {base::ProducerId(1000), base::ProducerId(1002)}}), "a1 b1 ");
    EXPECT_EQ(list({.longer_than_ms = 9'999}), "a1 a2 b1 ") << "a1 never began (Apache)";
    EXPECT_EQ(list({.longer_than_ms = 10'000}), "a1 ");
    EXPECT_EQ(list({.id_matches = [](const std::string& id) { return id.ends_with('1'); }}),
              "a1 b1 ");
}

}  // namespace
}  // namespace kaas::coordinator
