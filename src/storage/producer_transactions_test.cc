// Goal: transactional producers and the markers of their coordinators are judged as by Apache 4.4
// (`ProducerAppendInfo`, `UnifiedLog.analyzeAndValidateProducerState`, KIP-890), and readers of
// committed data stop at the first transaction that is open.
// Method: short scripts of what a producer and its coordinator do, one row a fault or a promise;
// the last step of a script is the one that is judged.

#include "storage/producer_state.h"
#include "storage/transaction_marker.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace kaas::storage {
namespace {

constexpr base::ProducerId kProducer{7};
constexpr auto kLastEpoch = std::numeric_limits<std::int16_t>::max();

enum class Kind { kAsk, kSend, kPlain, kStray, kUnchecked, kMarker };

struct Step {
    Kind kind;
    std::int16_t epoch = 0;
    std::int32_t sequence = 0;  ///< of a marker, the coordinator's epoch
    std::int8_t version = 1;    ///< of transactions
};

[[nodiscard]] Step ask(std::int16_t epoch, std::int32_t sequence, std::int8_t version = 1) {
    return {Kind::kAsk, epoch, sequence, version};
}
/// With the guard that was asked for last.
[[nodiscard]] Step send(std::int16_t epoch, std::int32_t sequence) {
    return {Kind::kSend, epoch, sequence};
}
/// Outside of transactions.
[[nodiscard]] Step plain(std::int16_t epoch, std::int32_t sequence) {
    return {Kind::kPlain, epoch, sequence};
}
/// Without a guard.
[[nodiscard]] Step stray(std::int16_t epoch, std::int32_t sequence) {
    return {Kind::kStray, epoch, sequence};
}
/// Where verification is switched off.
[[nodiscard]] Step unchecked(std::int16_t epoch, std::int32_t sequence) {
    return {Kind::kUnchecked, epoch, sequence};
}
[[nodiscard]] Step marker(std::int16_t epoch, std::int32_t coordinator, std::int8_t version = 1) {
    return {Kind::kMarker, epoch, coordinator, version};
}

/// A log's side of it.
class Partition {
public:
    [[nodiscard]] Result<void> run(const Step& step) {
        switch (step.kind) {
            case Kind::kAsk: return begin(step);
            case Kind::kSend: return append(step, true, guard_);
            case Kind::kPlain: return append(step, false, VerificationGuard{});
            case Kind::kStray: return append(step, true, VerificationGuard{});
            case Kind::kUnchecked: return append(step, true, std::nullopt);
            case Kind::kMarker: return end(step);
        }
        return {};
    }
    ProducerState state;

private:
    [[nodiscard]] Result<void> begin(const Step& step) {
        KAAS_TRY_ASSIGN(asked, state.begin_verification(kProducer, base::ProducerEpoch{step.epoch},
                                                        step.sequence, step.version >= 2, 0));
        const auto* guard = std::get_if<VerificationGuard>(&asked);
        guard_ = guard == nullptr ? VerificationGuard{} : *guard;
        return {};
    }
    [[nodiscard]] Result<void> append(const Step& step, bool transactional,
                                      std::optional<VerificationGuard> shown) {
        wire::BatchHeader header;
        header.base_offset = end_;
        header.count = 1;
        header.producer_id = kProducer.value();
        header.producer_epoch = step.epoch;
        header.base_sequence = step.sequence;
        if (transactional) header.attributes = 0x10;
        KAAS_TRY_ASSIGN(repeated, state.classify(header, shown));
        if (repeated) return {};
        state.record(header, 0);
        ++end_;
        return {};
    }
    [[nodiscard]] Result<void> end(const Step& step) {
        const Marker marker{.producer = kProducer,
                            .epoch = base::ProducerEpoch{step.epoch},
                            .coordinator_epoch = step.sequence,
                            .commit = true,
                            .transaction_version = step.version};
        KAAS_TRY(state.check_marker(marker));
        (void)state.end_transaction(marker, base::Offset{end_++}, 0, 0);
        return {};
    }

    VerificationGuard guard_;
    std::int64_t end_ = 0;
};

struct Script {
    std::string fault;
    std::vector<Step> steps;
    std::optional<ErrorCode> error{};
};

class ProducerTransactions : public ::testing::TestWithParam<Script> {};

TEST_P(ProducerTransactions, AreJudgedAsByApache) {
    const auto& [fault, steps, error] = GetParam();
    Partition partition;
    for (const auto& step : steps) {
        const auto outcome = partition.run(step);
        const bool judged = &step == &steps.back();
        if (judged && error) {
            ASSERT_FALSE(outcome);
            EXPECT_EQ(outcome.error().code, *error);
        } else {
            ASSERT_TRUE(outcome) << outcome.error().context;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
    Verification, ProducerTransactions,
    ::testing::Values(
        Script{"BeginningUnverified", {stray(0, 0)}, ErrorCode::kInvalidTxnState},
        Script{"BeginningWithoutTheGuardThatWasAskedFor",
               {ask(0, 0), stray(0, 0)},
               ErrorCode::kInvalidTxnState},
        Script{"BeginningVerified", {ask(0, 0), send(0, 0)}},
        Script{"GoingOnNeedsNoGuard", {ask(0, 0), send(0, 0), stray(0, 1)}},
        Script{"BeginningUnverifiedWhereNobodyVerifies", {unchecked(0, 0)}},
        Script{"AGuardBeginsOneTransactionOnly",
               {ask(0, 0), send(0, 0), marker(0, 1), send(0, 1)},
               ErrorCode::kInvalidTxnState},
        Script{"AMarkerTakesTheGuardBack",
               {ask(0, 0), marker(0, 1), send(0, 0)},
               ErrorCode::kInvalidTxnState},
        Script{"NextTransactionIsVerifiedAgain",
               {ask(0, 0), send(0, 0), marker(0, 1), ask(0, 1), send(0, 1)}},
        Script{"ANewEpochIsVerifiedAgain",
               {ask(0, 0), send(0, 0), stray(1, 0)},
               ErrorCode::kInvalidTxnState},
        Script{"ANewEpochGoesOnOnceVerified", {ask(0, 0), send(0, 0), ask(1, 0), send(1, 0)}},
        Script{"AskingUnderAnOldEpoch",
               {ask(3, 0), send(3, 0), ask(2, 0)},
               ErrorCode::kInvalidProducerEpoch},
        Script{"BeginningUnderAnOldEpoch",
               {ask(3, 0), send(3, 0), marker(3, 1), stray(2, 0)},
               ErrorCode::kInvalidProducerEpoch},
        Script{"APlainBatchWithinATransaction",
               {ask(0, 0), send(0, 0), plain(0, 1)},
               ErrorCode::kInvalidTxnState},
        Script{"RepetitionIsNoBeginning", {ask(0, 0), send(0, 0), marker(0, 1), stray(0, 0)}}),
    [](const auto& info) { return info.param.fault; });

INSTANTIATE_TEST_SUITE_P(
    Sequences, ProducerTransactions,
    ::testing::Values(
        Script{"BehindTheLowestVerified",
               {ask(0, 0), ask(0, 1), send(0, 1)},
               ErrorCode::kOutOfOrderSequence},
        Script{"TheLowestVerifiedComesFirst", {ask(0, 3), ask(0, 2), send(0, 2)}},
        Script{"ANewEpochForgetsTheLowest", {ask(0, 0), ask(1, 4), send(1, 4)}},
        Script{"AnOldEpochDoesNotLowerIt", {ask(1, 4), ask(0, 0), send(1, 4)}},
        Script{
            "VersionTwoBeginsAtZero", {ask(0, 5, 2), send(0, 5)}, ErrorCode::kOutOfOrderSequence},
        Script{"VersionTwoBeginsAtZeroBehindEachMarker",
               {ask(0, 0, 2), send(0, 0), marker(1, 1, 2), ask(1, 1, 2), send(1, 1)},
               ErrorCode::kOutOfOrderSequence},
        Script{"VersionOneMayBeginAnywhere", {ask(0, 5), send(0, 5)}},
        Script{"VersionOneGoesOnBehindTheMarker",
               {ask(0, 0), send(0, 0), marker(0, 1), ask(0, 0), send(0, 2)},
               ErrorCode::kOutOfOrderSequence},
        Script{"GapWithinATransaction",
               {ask(0, 0), send(0, 0), send(0, 2)},
               ErrorCode::kOutOfOrderSequence},
        // Apache `isV2NextTransactionStarted`: the marker overtook nobody, the next transaction has
        // begun to verify under the epoch that the marker brings.
        Script{"VersionTwoKeepsTheGuardOfTheNextTransaction",
               {ask(0, 0, 2), send(0, 0), ask(1, 0, 2), marker(1, 1, 2), send(1, 0)}}),
    [](const auto& info) { return info.param.fault; });

INSTANTIATE_TEST_SUITE_P(
    Markers, ProducerTransactions,
    ::testing::Values(
        Script{"OfAnOldProducerEpoch",
               {ask(3, 0), send(3, 0), marker(2, 1)},
               ErrorCode::kInvalidProducerEpoch},
        Script{"OfTheSameEpochInVersionOne", {ask(3, 0), send(3, 0), marker(3, 1)}},
        Script{"OfTheSameEpochInVersionTwo",
               {ask(3, 0, 2), send(3, 0), marker(3, 1, 2)},
               ErrorCode::kInvalidProducerEpoch},
        Script{"OfTheNextEpochInVersionTwo", {ask(3, 0, 2), send(3, 0), marker(4, 1, 2)}},
        Script{"RepeatedInVersionTwo",
               {ask(3, 0, 2), send(3, 0), marker(4, 1, 2), marker(4, 1, 2)}},
        Script{"WhenEpochsAreUsedUp",
               {ask(kLastEpoch, 0, 2), send(kLastEpoch, 0), marker(kLastEpoch, 1, 2)}},
        Script{"OfASucceededCoordinator",
               {ask(0, 0), send(0, 0), marker(0, 5), ask(0, 1), send(0, 1), marker(0, 4)},
               ErrorCode::kTransactionCoordinatorFenced},
        Script{"OfTheSameCoordinator",
               {ask(0, 0), send(0, 0), marker(0, 5), ask(0, 1), send(0, 1), marker(0, 5)}},
        Script{"OfAProducerThatIsNotKnown", {marker(0, 5, 2)}},
        Script{"ABatchUnderTheEpochBeforeItsMarker",
               {ask(0, 0, 2), send(0, 0), marker(1, 1, 2), stray(0, 1)},
               ErrorCode::kInvalidProducerEpoch}),
    [](const auto& info) { return info.param.fault; });

class Producers : public ::testing::Test {
protected:
    void send(std::int64_t producer, std::int64_t offset) {
        wire::BatchHeader header;
        header.base_offset = offset;
        header.count = 1;
        header.producer_id = producer;
        header.producer_epoch = 0;
        header.base_sequence = static_cast<std::int32_t>(offset);
        header.attributes = 0x10;
        state_.record(header, 0);
    }
    std::optional<CompletedTransaction> end(std::int64_t producer, std::int64_t offset) {
        return state_.end_transaction({.producer = base::ProducerId{producer},
                                       .epoch = base::ProducerEpoch{0},
                                       .coordinator_epoch = 3},
                                      base::Offset{offset}, 0, 0);
    }
    ProducerState state_;
};

TEST_F(Producers, ReadersStopAtTheFirstOpenTransaction) {
    send(1, 10);
    send(2, 11);
    EXPECT_EQ(state_.first_unstable(base::Offset{12}), base::Offset{10});
    const auto ended = end(1, 12);
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->first_offset, base::Offset{10});
    EXPECT_TRUE(ended->aborted);
    // The marker counts only once it is durable itself.
    EXPECT_EQ(state_.first_unstable(base::Offset{12}), base::Offset{10});
    EXPECT_EQ(state_.first_unstable(base::Offset{13}), base::Offset{11});
}

TEST_F(Producers, WhatIsVerifiedForTooLongIsForgotten) {
    const auto asked =
        state_.begin_verification(base::ProducerId{1}, base::ProducerEpoch{0}, 0, false, 1000);
    ASSERT_TRUE(asked);
    state_.expire(1099, 100);
    const auto again =
        state_.begin_verification(base::ProducerId{1}, base::ProducerEpoch{0}, 0, false, 1099);
    EXPECT_EQ(std::get<VerificationGuard>(*again), std::get<VerificationGuard>(*asked));
    state_.expire(1100, 100);
    const auto later =
        state_.begin_verification(base::ProducerId{1}, base::ProducerEpoch{0}, 0, false, 1100);
    EXPECT_NE(std::get<VerificationGuard>(*later), std::get<VerificationGuard>(*asked));
}

}  // namespace
}  // namespace kaas::storage
