// Goal: a coordinator in another broker is asked for what the leader wants to know, and its answers
// reach the right askers. Method: the calls are scripted.
#include "broker/peers/remote_verification.h"

#include "base/ids.h"
#include "client/channel.h"
#include "client/error.h"
#include "wire/error_code.h"
#include "wire/messages/add_partitions_to_txn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using base::BrokerId;
using testing::ElementsAre;
using wire::ErrorCode;
using Request = wire::AddPartitionsToTxnRequest;

VerificationRequest request_of(const std::string& id) {
    return {
        .transactional_id = id,
        .producer = {base::ProducerId(11), base::ProducerEpoch(3)},
        .partitions = {
            {"a", base::PartitionId(1)}, {"a", base::PartitionId(0)}, {"b", base::PartitionId(0)}}};
}

class RemoteVerificationTest : public testing::Test {
protected:
    struct Sent {
        Request request;
        client::Channel::Done<Request> done;
    };

    void ask(const std::string& name, VerificationRequest request) {
        verification_.ask(
            BrokerId(2), std::move(request),
            [this, name](std::vector<ErrorCode> errors) { told_[name] = std::move(errors); });
    }
    /// As `add_partitions_to_txn` lays an answer out; the errors go over all partitions in turn.
    void answer(std::deque<ErrorCode> errors) {
        auto sent = std::move(calls_.front());
        calls_.pop_front();
        wire::AddPartitionsToTxnResponse response;
        for (const auto& transaction : sent.request.transactions) {
            auto& out = response.results_by_transaction.emplace_back();
            out.transactional_id = transaction.transactional_id;
            for (const auto& topic : transaction.topics) {
                auto& result = out.topic_results.emplace_back();
                result.name = topic.name;
                for (const auto partition : topic.partitions) {
                    result.results_by_partition.push_back({partition, errors.front()});
                    errors.pop_front();
                }
            }
        }
        sent.done(&response);
    }

    std::deque<Sent> calls_;
    std::map<std::string, std::vector<ErrorCode>> told_;
    RemoteVerification verification_{[this](BrokerId, const Request& request, auto done) {
        calls_.push_back({request, std::move(done)});
    }};
};

TEST_F(RemoteVerificationTest, VerifyingDoesNotAdd) {
    ask("one", request_of("id"));
    auto adding = request_of("id");
    adding.adds = true;
    ask("two", adding);
    ASSERT_EQ(calls_.size(), 1);
    const auto& asked = calls_[0].request.transactions.at(0);
    EXPECT_TRUE(asked.verify_only);
    EXPECT_EQ(asked.transactional_id, "id");
    EXPECT_EQ(asked.producer_id, 11);
    EXPECT_EQ(asked.producer_epoch, 3);
    ASSERT_EQ(asked.topics.size(), 2);
    EXPECT_EQ(asked.topics[0].name, "a");
    EXPECT_THAT(asked.topics[0].partitions, ElementsAre(1, 0));
    answer({ErrorCode::kNone, ErrorCode::kNone, ErrorCode::kNone});
    EXPECT_FALSE(calls_.at(0).request.transactions.at(0).verify_only);
}

TEST_F(RemoteVerificationTest, EachPartitionHearsItsOwnError) {
    ask("one", request_of("id"));
    answer({ErrorCode::kNone, ErrorCode::kTransactionAbortable, ErrorCode::kNone});
    EXPECT_THAT(told_["one"],
                ElementsAre(ErrorCode::kNone, ErrorCode::kTransactionAbortable, ErrorCode::kNone));
}

TEST_F(RemoteVerificationTest, TwoOfOneProducerInOneCallAreNotTakenForEachOther) {
    ask("first", request_of("other"));
    ask("second", {"id", {}, {{"a", base::PartitionId(0)}}});
    ask("third", {"id", {}, {{"a", base::PartitionId(1)}}});
    ASSERT_EQ(calls_.size(), 1);
    answer({ErrorCode::kNone, ErrorCode::kNone, ErrorCode::kNone});
    answer({ErrorCode::kNone, ErrorCode::kConcurrentTransactions});
    EXPECT_THAT(told_["second"], ElementsAre(ErrorCode::kNone));
    EXPECT_THAT(told_["third"], ElementsAre(ErrorCode::kConcurrentTransactions));
}

TEST_F(RemoteVerificationTest, ALostConnectionIsSaidToWhoWaitsForIt) {
    ask("one", request_of("id"));
    ask("two", {"id", {}, {{"a", base::PartitionId(0)}}});
    auto lost = std::move(calls_.front());
    calls_.pop_front();
    lost.done(client::fail(client::ErrorCode::kDown, "gone"));
    EXPECT_EQ(told_["one"], std::vector(3, ErrorCode::kNetworkException));
    EXPECT_FALSE(told_.contains("two"));
    EXPECT_EQ(calls_.size(), 1);
}

TEST_F(RemoteVerificationTest, AnErrorOfTheWholeAnswerHoldsForAll) {
    ask("one", request_of("id"));
    wire::AddPartitionsToTxnResponse response;
    response.error_code = ErrorCode::kNotCoordinator;
    calls_[0].done(&response);
    EXPECT_EQ(told_["one"], std::vector(3, ErrorCode::kNotCoordinator));
}

TEST_F(RemoteVerificationTest, AnAnswerOfSomethingElseVerifiesNothing) {
    ask("one", request_of("id"));
    wire::AddPartitionsToTxnResponse response;
    auto& topic = response.results_by_transaction.emplace_back().topic_results.emplace_back();
    topic.name = "a";
    topic.results_by_partition = {{1, ErrorCode::kNone}, {2, ErrorCode::kNone}};
    calls_[0].done(&response);
    EXPECT_EQ(told_["one"], std::vector(3, ErrorCode::kUnknownServerError));
}

}  // namespace
}  // namespace kaas::broker
