// What a slot writes of a transactional id: lines that a person can read and mend. Each line is
// held against the object that a picture has, and read again.

#include "coordinator/transaction_metadata.h"

#include "catalog/error.h"
#include "coordinator/testing_transactions.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace kaas::coordinator {
namespace {

namespace json = boost::json;
using testing::partition;
using testing::producer;

TransactionMetadata full() {
    return {.transactional_id = "pay",
            .producer = producer(4'294'967'296, 7),
            .previous_producer_id = base::ProducerId(4'294'967'296),
            .next_producer_id = base::ProducerId(4'294'967'300),
            .last_epoch = base::ProducerEpoch(6),
            .timeout_ms = 60'000,
            .state = TransactionState::kPrepareCommit,
            .partitions = {partition("orders", 0), partition("orders", 11), partition("audit", 3)},
            .start_ms = 1'700'000'000'000,
            .update_ms = 1'700'000'000'100,
            .version = kEpochBump};
}

TransactionMetadata read(std::string_view line) {
    auto parsed = parse_transaction_line(json::parse(line).as_object());
    EXPECT_TRUE(parsed) << line;
    return parsed ? parsed->metadata : TransactionMetadata{};
}

TEST(TransactionLine, ReadsAsAPersonWouldWriteIt) {
    EXPECT_EQ(to_line(full()),
              R"({"transactional_id":"pay","state":"PrepareCommit","producer_id":4294967296,)"
              R"("producer_epoch":7,"timeout_ms":60000,"updated_ms":1700000000100,)"
              R"("started_ms":1700000000000,"last_producer_epoch":6,)"
              R"("previous_producer_id":4294967296,"next_producer_id":4294967300,)"
              R"("transaction_version":2,"partitions":{"audit":[3],"orders":[0,11]}})");
}

TEST(TransactionLine, LeavesOutWhatIsUsual) {
    const TransactionMetadata fresh{
        .transactional_id = "pay", .producer = producer(1, 0), .timeout_ms = 5, .update_ms = 6};
    EXPECT_EQ(to_line(fresh),
              R"({"transactional_id":"pay","state":"Empty","producer_id":1,"producer_epoch":0,)"
              R"("timeout_ms":5,"updated_ms":6})");
    EXPECT_EQ(read(to_line(fresh)), fresh);
}

TEST(TransactionLine, IsWhatThePictureSays) {
    EXPECT_EQ(to_line(full()), json::serialize(to_json(full())));
    EXPECT_EQ(read(to_line(full())), full());
}

TEST(TransactionLine, CarriesAnyIdAndWhatALaterVersionAdded) {
    auto metadata = full();
    metadata.transactional_id = "a\"b\\c\nd\x01 \xc3\xa9 \xf0\x9f\x92\xb8";
    auto line = json::parse(to_line(metadata)).as_object();
    EXPECT_EQ(line.at("transactional_id").as_string(), metadata.transactional_id);
    line["owner"] = "billing";
    const auto read_again = parse_transaction_line(line);
    ASSERT_TRUE(read_again);
    EXPECT_EQ(json::parse(to_line(read_again->metadata)), line);
    EXPECT_EQ(to_json(read_again->metadata), line);
}

TEST(TransactionLine, SaysThatAnIdIsGone) {
    EXPECT_EQ(removal_line("p\"y"), R"({"transactional_id":"p\"y","removed":true})");
    const auto parsed = parse_transaction_line(json::parse(removal_line("p\"y")).as_object());
    ASSERT_TRUE(parsed);
    EXPECT_TRUE(parsed->removed);
    EXPECT_EQ(parsed->metadata.transactional_id, "p\"y");
}

TEST(TransactionLine, RefusesWhatNobodyWrites) {
    struct Case {
        const char* fault;
        const char* line;
    };
    constexpr const char* kGood =
        R"({"transactional_id":"p","state":"Empty","producer_id":1,"producer_epoch":0,)"
        R"("timeout_ms":5,"updated_ms":6})";
    ASSERT_TRUE(parse_transaction_line(json::parse(kGood).as_object()));
    const Case cases[] = {
        {"no id", R"({"state":"Empty","producer_id":1,"producer_epoch":0,"timeout_ms":5,
                      "updated_ms":6})"},
        {"an empty id", R"({"transactional_id":"","state":"Empty","producer_id":1,
                            "producer_epoch":0,"timeout_ms":5,"updated_ms":6})"},
        {"an unknown state", R"({"transactional_id":"p","state":"Closing","producer_id":1,
                                 "producer_epoch":0,"timeout_ms":5,"updated_ms":6})"},
        {"a state that is never kept", R"({"transactional_id":"p","state":"Dead","producer_id":1,
                                 "producer_epoch":0,"timeout_ms":5,"updated_ms":6})"},
        {"an epoch out of range", R"({"transactional_id":"p","state":"Empty","producer_id":1,
                                      "producer_epoch":40000,"timeout_ms":5,"updated_ms":6})"},
        {"no producer", R"({"transactional_id":"p","state":"Empty","producer_id":-1,
                            "producer_epoch":0,"timeout_ms":5,"updated_ms":6})"},
        {"partitions of nothing", R"({"transactional_id":"p","state":"Empty","producer_id":1,
              "producer_epoch":0,"timeout_ms":5,"updated_ms":6,"partitions":{"t":[0]}})"},
        {"a partition that is no number", R"({"transactional_id":"p","state":"Ongoing",
              "producer_id":1,"producer_epoch":0,"timeout_ms":5,"updated_ms":6,
              "partitions":{"t":["0"]}})"},
        {"partitions that are no list", R"({"transactional_id":"p","state":"Ongoing",
              "producer_id":1,"producer_epoch":0,"timeout_ms":5,"updated_ms":6,
              "partitions":{"t":0}})"},
    };
    for (const auto& [fault, line] : cases) {
        const auto parsed = parse_transaction_line(json::parse(line).as_object());
        ASSERT_FALSE(parsed) << fault;
        EXPECT_EQ(parsed.error().code, catalog::ErrorCode::kMalformed) << fault;
    }
}

}  // namespace
}  // namespace kaas::coordinator
