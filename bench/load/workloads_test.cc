// Goal: a Fetch answer is understood however it is cut into pieces, and a wrong one ends the run.
// Method: an answer of two partitions, given one byte more at a time; records are taken out as the
// connection does it.
#include "load/workloads.h"

#include "common/bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace kaas::bench {
namespace {

constexpr size_t kRecords = 40;

std::string fetch_answer(int64_t second_offset, int16_t second_error = 0) {
    Writer answer;
    answer.i32(1);  // correlation id
    answer.no_tags();
    answer.i32(0);
    answer.i16(0);
    answer.i32(0);
    answer.array(1);
    answer.id({});
    answer.array(2);
    for (int partition = 0; partition < 2; ++partition) {
        answer.i32(partition);
        answer.i16(partition == 1 ? second_error : int16_t{0});
        answer.i64(100);
        answer.i64(100);
        answer.i64(0);
        answer.null();
        answer.i32(-1);
        answer.uvarint(kRecords + 1);
        answer.i64(partition == 1 ? second_offset : 16);
        answer.raw(std::string(kRecords - 8, 'x'));
        answer.no_tags();
    }
    answer.no_tags();
    answer.no_tags();
    return answer.take();
}

FetchSeen read_in_steps(const std::string& whole) {
    const FetchReader reader({{0, 16}, {1, 32}});
    std::string arrived;
    FetchSeen seen;
    int cuts = 0;
    size_t dropping = 0;
    for (const char byte : whole) {
        if (dropping > 0) {
            --dropping;
            continue;
        }
        arrived.push_back(byte);
        auto parsed = reader.parse(arrived, cuts, seen);
        if (parsed.kind == Parsed::Kind::kCut) {
            const auto here = std::min(parsed.length, arrived.size() - parsed.at);
            arrived.erase(parsed.at, here);
            dropping = parsed.length - here;
            ++cuts;
        }
        if (parsed.kind == Parsed::Kind::kDone) {
            EXPECT_EQ(cuts, 2);
            return seen;
        }
    }
    ADD_FAILURE() << "the answer never ended";
    return seen;
}

TEST(FetchReader, TakesRecordsOutByteByByte) {
    const auto seen = read_in_steps(fetch_answer(32));
    EXPECT_EQ(seen.bytes, 2 * kRecords);
    EXPECT_EQ(seen.partitions, 2U);
    EXPECT_EQ(seen.high_watermark, 100);
}

TEST(FetchReader, RecordsOfAnotherOffsetEndTheRun) {
    EXPECT_EXIT(read_in_steps(fetch_answer(31)), testing::ExitedWithCode(1), "another offset");
}

TEST(FetchReader, AnErrorCodeEndsTheRun) {
    EXPECT_EXIT(read_in_steps(fetch_answer(32, 1)), testing::ExitedWithCode(1), "error code 1");
}

}  // namespace
}  // namespace kaas::bench
