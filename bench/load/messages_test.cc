// Goal: frames say their size, patching finds its place, answers with an error are not taken for
// good.
#include "load/messages.h"

#include "common/bytes.h"
#include "load/coordinator_messages.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kaas::bench {
namespace {

const Topic kTopic{.name = "t", .id = {1, 2, 3}, .partitions = 2};

TEST(Messages, EveryFrameSaysItsSize) {
    for (const auto& frame :
         {api_versions_request(), metadata_request({"a", "b"}), create_topic_request("t", 3),
          delete_topic_request("t"), produce_request(kTopic, -1, {{0, "batch"}, {1, "batch"}}),
          fetch_request(kTopic, {{0, 0}}, {}),
          find_coordinator_request("g", CoordinatorKind::kGroup),
          offset_commit_request(kTopic, "g", 2, 7), join_group_request({}, "metadata"),
          sync_group_request({}, {"a", "b"}, "assignment"), heartbeat_request({}),
          leave_group_request({}), init_producer_id_request("t"),
          commit_transaction_request("t", 1, 2)}) {
        EXPECT_EQ(static_cast<size_t>(Reader(frame).i32()), frame.size() - 4);
    }
}

TEST(Messages, FetchOffsetsAreFoundAgain) {
    const auto frame = fetch_request(kTopic, {{0, 0x1111}, {1, 0x2222}}, {});
    EXPECT_EQ(Reader(std::string_view(frame).substr(fetch_offset_at(frame, 0, 2))).i64(), 0x1111);
    EXPECT_EQ(Reader(std::string_view(frame).substr(fetch_offset_at(frame, 1, 2))).i64(), 0x2222);
}

std::string produce_answer(int16_t first_error, int16_t second_error) {
    Writer answer;
    answer.array(1);
    answer.id(kTopic.id);
    answer.array(2);
    for (const auto error : {first_error, second_error}) {
        answer.i32(0);
        answer.i16(error);
        for (int i = 0; i < 3; ++i) answer.i64(7);
        answer.array(0);
        answer.null();
        answer.no_tags();
    }
    answer.no_tags();
    answer.i32(0);
    answer.no_tags();
    return answer.take();
}

TEST(Messages, AnErrorOfAnyPartitionIsFound) {
    const auto good = produce_answer(0, 0);
    Reader good_reader(good);
    const auto found = read_produce(good_reader);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->error, 0);
    EXPECT_EQ(found->partitions, 2);
    EXPECT_EQ(found->last_base_offset, 7);
    const auto bad = produce_answer(0, 6);
    Reader bad_reader(bad);
    EXPECT_EQ(read_produce(bad_reader)->error, 6);
}

TEST(Messages, ATruncatedAnswerIsNone) {
    const auto answer = produce_answer(0, 0);
    for (size_t size = 0; size < answer.size(); ++size) {
        Reader reader(std::string_view(answer).substr(0, size));
        EXPECT_FALSE(read_produce(reader)) << size;
    }
}

TEST(Messages, ALeaderLearnsOfItsMembers) {
    Writer answer;
    answer.i32(0);  // throttle
    answer.i16(0);
    answer.i32(3);  // generation
    answer.compact_string("consumer");
    answer.compact_string("range");
    answer.compact_string("a");
    answer.i8(0);
    answer.compact_string("a");
    answer.array(2);
    for (const auto* id : {"a", "b"}) {
        answer.compact_string(id);
        answer.null();
        answer.compact_string("metadata");
        answer.no_tags();
    }
    answer.no_tags();
    const auto bytes = answer.take();
    Reader reader(bytes);
    const auto found = read_join_group(reader);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->generation, 3);
    EXPECT_EQ(found->leader, "a");
    EXPECT_EQ(found->members, (std::vector<std::string>{"a", "b"}));
}

}  // namespace
}  // namespace kaas::bench
