// Goal: producers are judged as by Apache 4.4, and what is kept of them brings the same state back.
// Method: tables of what a producer sends, one row a fault or a promise; Apache's answers come from
// a running 4.4 broker (tests/same_request, idempotent_*).

#include "storage/producer_state.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

constexpr auto kLast = std::numeric_limits<std::int32_t>::max();

struct Batch {
    std::int32_t sequence;
    std::int32_t records = 1;
    std::int16_t epoch = 0;
    std::int64_t producer = 7;
    bool transactional = false;
};

[[nodiscard]] wire::BatchHeader header_of(const Batch& batch, std::int64_t offset) {
    wire::BatchHeader header;
    header.base_offset = offset;
    header.last_offset_delta = batch.records - 1;
    header.count = batch.records;
    header.producer_id = batch.producer;
    header.producer_epoch = batch.epoch;
    header.base_sequence = batch.sequence;
    header.max_timestamp = 1000 + offset;
    if (batch.transactional) header.attributes = 0x10;
    return header;
}

/// Appends what is accepted, as a log does.
class Producers {
public:
    [[nodiscard]] Result<std::int64_t> send(const Batch& batch) {
        const auto header = header_of(batch, end_);
        KAAS_TRY_ASSIGN(repeated, state.classify(header, {}));
        if (repeated) return repeated->base_offset.value();
        state.record(header, 0);
        return std::exchange(end_, end_ + batch.records);
    }
    ProducerState state;

private:
    std::int64_t end_ = 0;
};

struct Verdict {
    std::string fault;
    std::vector<Batch> before;
    Batch batch;
    std::optional<ErrorCode> error;
    std::int64_t offset = -1;
};

class ProducerStateTest : public ::testing::TestWithParam<Verdict> {};

TEST_P(ProducerStateTest, JudgesAsApache) {
    const auto& row = GetParam();
    Producers producers;
    for (const auto& batch : row.before) ASSERT_TRUE(producers.send(batch)) << "the row is wrong";
    const auto answer = producers.send(row.batch);
    if (row.error) {
        ASSERT_FALSE(answer);
        EXPECT_EQ(answer.error().code, *row.error);
    } else {
        ASSERT_TRUE(answer) << answer.error().context;
        EXPECT_EQ(*answer, row.offset);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Rules, ProducerStateTest,
    ::testing::Values(
        Verdict{"UnknownProducerMayStartAnywhere", {}, {.sequence = 17}, {}, 0},
        Verdict{"NextSequenceGoesOn", {{.sequence = 0, .records = 3}}, {.sequence = 3}, {}, 3},
        Verdict{
            "GapIsOutOfOrder", {{.sequence = 0}}, {.sequence = 2}, ErrorCode::kOutOfOrderSequence},
        Verdict{"RepetitionGetsItsFirstOffset",
                {{.sequence = 0, .records = 3}, {.sequence = 3}},
                {.sequence = 0, .records = 3},
                {},
                0},
        Verdict{"SameStartOtherSizeIsNoRepetition",
                {{.sequence = 0, .records = 3}},
                {.sequence = 0, .records = 2},
                ErrorCode::kOutOfOrderSequence},
        Verdict{
            "FifthToLastIsRemembered",
            {{.sequence = 0}, {.sequence = 1}, {.sequence = 2}, {.sequence = 3}, {.sequence = 4}},
            {.sequence = 0},
            {},
            0},
        Verdict{"SixthToLastIsForgotten",
                {{.sequence = 0},
                 {.sequence = 1},
                 {.sequence = 2},
                 {.sequence = 3},
                 {.sequence = 4},
                 {.sequence = 5}},
                {.sequence = 0},
                ErrorCode::kOutOfOrderSequence},
        Verdict{"ZeroFollowsTheLastSequence",
                {{.sequence = kLast - 1, .records = 2}},
                {.sequence = 0},
                {},
                2},
        Verdict{"BatchAcrossTheWrapGoesOnBehindIt",
                {{.sequence = kLast - 1, .records = 4}},
                {.sequence = 2},
                {},
                4},
        Verdict{"RepetitionAcrossTheWrap",
                {{.sequence = kLast - 1, .records = 4}},
                {.sequence = kLast - 1, .records = 4},
                {},
                0},
        Verdict{"NewEpochStartsAtZero", {{.sequence = 5}}, {.sequence = 0, .epoch = 1}, {}, 1},
        Verdict{"NewEpochElsewhereIsOutOfOrder",
                {{.sequence = 5}},
                {.sequence = 6, .epoch = 1},
                ErrorCode::kOutOfOrderSequence},
        Verdict{"OldEpochIsInvalid",
                {{.sequence = 0, .epoch = 3}},
                {.sequence = 1, .epoch = 2},
                ErrorCode::kInvalidProducerEpoch},
        Verdict{"EpochForgetsTheBatchesOfTheOneBefore",
                {{.sequence = 0}, {.sequence = 0, .epoch = 1}},
                {.sequence = 0, .epoch = 0},
                ErrorCode::kInvalidProducerEpoch},
        Verdict{"EpochBelowNoneIsInvalidEvenForTheUnknown",
                {},
                {.sequence = 0, .epoch = -2},
                ErrorCode::kInvalidProducerEpoch},
        Verdict{"WithoutEpochAnySequenceIsTaken",
                {{.sequence = 4, .epoch = -1}},
                {.sequence = 9, .epoch = -1},
                {},
                1},
        Verdict{"ProducersDoNotMix",
                {{.sequence = 0}, {.sequence = 1}},
                {.sequence = 0, .producer = 8},
                {},
                2}),
    [](const auto& row) { return row.param.fault; });

TEST(ProducerImageTest, LoadedStateJudgesLikeTheOriginal) {
    std::mt19937_64 random(5);
    for (int round = 0; round < 50; ++round) {
        Producers original;
        std::map<std::int64_t, std::int32_t> next;
        for (int i = 0; i < 40; ++i) {
            const auto producer = static_cast<std::int64_t>(random() % 5);
            const auto records = static_cast<std::int32_t>(1 + random() % 3);
            ASSERT_TRUE(original.send(
                {.sequence = next[producer], .records = records, .producer = producer}));
            next[producer] += records;
        }
        ProducerState copy;
        copy.load(original.state.images());
        for (int i = 0; i < 200; ++i) {
            const Batch probe{.sequence = static_cast<std::int32_t>(random() % 40),
                              .records = static_cast<std::int32_t>(1 + random() % 3),
                              .epoch = static_cast<std::int16_t>(random() % 2),
                              .producer = static_cast<std::int64_t>(random() % 6)};
            const auto a = original.state.classify(header_of(probe, 1000), {});
            const auto b = copy.classify(header_of(probe, 1000), {});
            ASSERT_EQ(a.has_value(), b.has_value());
            if (!a) continue;
            ASSERT_EQ(a->has_value(), b->has_value());
            if (*a) ASSERT_EQ((*a)->base_offset, (*b)->base_offset);
        }
    }
}

TEST(ProducerStateExpiry, TheSilentAreForgottenButNotInATransaction) {
    ProducerState state;
    state.record(header_of({.sequence = 0, .producer = 1}, 0), 0);
    state.record(header_of({.sequence = 0, .producer = 2, .transactional = true}, 1), 0);
    state.expire(99, 100);
    EXPECT_NE(state.find(base::ProducerId{1}), nullptr);
    state.expire(100, 100);
    EXPECT_EQ(state.find(base::ProducerId{1}), nullptr);
    EXPECT_NE(state.find(base::ProducerId{2}), nullptr);
}

TEST(ProducerStateExpiry, KnowsTheTransactionWhoseProducerIsSilentForLongest) {
    ProducerState state;
    EXPECT_EQ(state.longest_open_ms(), std::nullopt);
    state.record(header_of({.sequence = 0, .producer = 1}, 0), 10);
    EXPECT_EQ(state.longest_open_ms(), std::nullopt);
    state.record(header_of({.sequence = 0, .producer = 2, .transactional = true}, 1), 20);
    state.record(header_of({.sequence = 0, .producer = 3, .transactional = true}, 2), 30);
    EXPECT_EQ(state.longest_open_ms(), 20);
    state.record(header_of({.sequence = 1, .producer = 2, .transactional = true}, 3), 40);
    EXPECT_EQ(state.longest_open_ms(), 30) << "the older transaction, whose producer goes on";
    (void)state.end_transaction(
        {.producer = base::ProducerId{3}, .epoch = base::ProducerEpoch{0}, .coordinator_epoch = 0},
        base::Offset{4}, 50, 50);
    EXPECT_EQ(state.longest_open_ms(), 40);
}

TEST(ProducerSnapshotTest, IsApachesFormat) {
    ProducerState state;
    state.record(header_of({.sequence = 3, .records = 2, .epoch = 1, .producer = 258}, 40), 0);
    const auto bytes = encode_snapshot(state.images());
    // int16 version, uint32 CRC-32C of the rest, int32 count; id, epoch, last sequence, last
    // offset, offset delta, timestamp, coordinator epoch, start of the transaction.
    const std::string rest(
        "\0\0\0\1"
        "\0\0\0\0\0\0\1\2"
        "\0\1"
        "\0\0\0\4"
        "\0\0\0\0\0\0\0\51"
        "\0\0\0\1"
        "\0\0\0\0\0\0\4\20"
        "\377\377\377\377"
        "\377\377\377\377\377\377\377\377",
        50);
    ASSERT_EQ(bytes.size(), 6 + rest.size());
    EXPECT_EQ(base::load_be<std::int16_t>(bytes.data()), 1);
    EXPECT_EQ(base::as_text(base::ByteView(bytes).subspan(6)), rest);
    const auto decoded = decode_snapshot(bytes);
    ASSERT_TRUE(decoded) << decoded.error().context;
    ASSERT_EQ(decoded->size(), 1);
    EXPECT_EQ(decoded->front().entry.last_sequence(), 4);
}

TEST(ProducerSnapshotTest, EveryFlippedByteIsNoticed) {
    ProducerState state;
    state.record(header_of({.sequence = 0}, 0), 0);
    const auto good = encode_snapshot(state.images());
    for (std::size_t i = 0; i < good.size(); ++i) {
        auto bad = good;
        bad[i] ^= std::byte{0x40};
        EXPECT_FALSE(decode_snapshot(bad)) << "at " << i;
    }
    for (std::size_t i = 0; i < good.size(); ++i)
        EXPECT_FALSE(decode_snapshot(base::ByteView(good).first(i)));
}

}  // namespace
}  // namespace kaas::storage
