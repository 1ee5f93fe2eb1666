// Goal: a marker reaches the broker that leads its partition, many of them in few calls, and its
// transaction hears what became of it. Method: the calls are scripted.
#include "broker/peers/remote_markers.h"

#include "base/ids.h"
#include "client/channel.h"
#include "client/error.h"
#include "coordinator/transaction_requests.h"
#include "storage/transaction_marker.h"
#include "wire/error_code.h"
#include "wire/messages/write_txn_markers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using base::BrokerId;
using testing::ElementsAre;
using testing::IsEmpty;
using wire::ErrorCode;
using Request = wire::WriteTxnMarkersRequest;

storage::Marker commit_of(std::int64_t producer) {
    return {.producer = base::ProducerId(producer),
            .epoch = base::ProducerEpoch(3),
            .coordinator_epoch = 7,
            .commit = true,
            .transaction_version = 2};
}

class RemoteMarkersTest : public testing::Test {
protected:
    struct Sent {
        BrokerId to;
        Request request;
        client::Channel::Done<Request> done;
    };

    void send(BrokerId to, const storage::Marker& marker, const std::string& topic,
              std::int32_t partition) {
        const auto name = topic + std::to_string(partition);
        markers_.send(to, marker, {topic, base::PartitionId(partition)},
                      [this, name](ErrorCode error) { written_[name].push_back(error); });
    }
    /// What the oldest call asked is answered, each partition with what `outcome` says.
    template <class Outcome>
    void answer(Outcome outcome) {
        auto sent = std::move(calls_.front());
        calls_.pop_front();
        wire::WriteTxnMarkersResponse response;
        for (const auto& marker : sent.request.markers) {
            auto& out = response.markers.emplace_back();
            out.producer_id = marker.producer_id;
            for (const auto& topic : marker.topics) {
                auto& told = out.topics.emplace_back();
                told.name = topic.name;
                for (const auto partition : topic.partition_indexes)
                    told.partitions.push_back({partition, outcome(partition)});
            }
        }
        sent.done(&response);
    }
    void answer_all(ErrorCode error) {
        answer([error](std::int32_t) { return error; });
    }
    void lose() {
        auto sent = std::move(calls_.front());
        calls_.pop_front();
        sent.done(client::fail(client::ErrorCode::kDown, "gone"));
    }

    std::deque<Sent> calls_;
    std::map<std::string, std::vector<ErrorCode>> written_;
    RemoteMarkers markers_{[this](BrokerId to, const Request& request, auto done) {
        calls_.push_back({to, request, std::move(done)});
    }};
};

TEST_F(RemoteMarkersTest, AMarkerIsAsItsCoordinatorWantsIt) {
    send(BrokerId(2), commit_of(11), "t", 0);
    ASSERT_EQ(calls_.size(), 1);
    EXPECT_EQ(calls_[0].to, BrokerId(2));
    ASSERT_EQ(calls_[0].request.markers.size(), 1);
    const auto& marker = calls_[0].request.markers[0];
    EXPECT_EQ(marker.producer_id, 11);
    EXPECT_EQ(marker.producer_epoch, 3);
    EXPECT_EQ(marker.coordinator_epoch, 7);
    EXPECT_TRUE(marker.transaction_result);
    EXPECT_EQ(marker.transaction_version, 2);
    answer_all(ErrorCode::kNone);
    EXPECT_THAT(written_["t0"], ElementsAre(ErrorCode::kNone));
}

TEST_F(RemoteMarkersTest, WhatComesDuringACallGoesTogetherWithTheNext) {
    send(BrokerId(2), commit_of(11), "t", 0);
    send(BrokerId(2), commit_of(11), "t", 1);
    send(BrokerId(2), commit_of(11), "t", 2);
    send(BrokerId(2), commit_of(12), "t", 3);
    ASSERT_EQ(calls_.size(), 1);
    answer_all(ErrorCode::kNone);
    ASSERT_EQ(calls_.size(), 1);
    const auto& markers = calls_[0].request.markers;
    ASSERT_EQ(markers.size(), 2);
    ASSERT_EQ(markers[0].topics.size(), 1);
    EXPECT_THAT(markers[0].topics[0].partition_indexes, ElementsAre(1, 2));
    EXPECT_EQ(markers[1].producer_id, 12);
    answer_all(ErrorCode::kNone);
    EXPECT_TRUE(calls_.empty());
    for (const auto* partition : {"t0", "t1", "t2", "t3"})
        EXPECT_THAT(written_[partition], ElementsAre(ErrorCode::kNone)) << partition;
}

TEST_F(RemoteMarkersTest, ASlowBrokerHoldsUpNobodyElsesMarkers) {
    send(BrokerId(2), commit_of(11), "t", 0);
    send(BrokerId(3), commit_of(11), "t", 1);
    ASSERT_EQ(calls_.size(), 2);
    EXPECT_EQ(calls_[1].to, BrokerId(3));
}

TEST_F(RemoteMarkersTest, ACommitAndAnAbortOfOneProducerAreNotMixed) {
    auto abort = commit_of(11);
    abort.commit = false;
    send(BrokerId(2), commit_of(10), "t", 9);
    send(BrokerId(2), commit_of(11), "t", 0);
    send(BrokerId(2), abort, "t", 1);
    answer_all(ErrorCode::kNone);
    const auto& markers = calls_.at(0).request.markers;
    ASSERT_EQ(markers.size(), 2);
    EXPECT_NE(markers[0].transaction_result, markers[1].transaction_result);
}

TEST_F(RemoteMarkersTest, EachPartitionHearsItsOwnAnswer) {
    send(BrokerId(2), commit_of(10), "t", 9);
    send(BrokerId(2), commit_of(11), "t", 0);
    send(BrokerId(2), commit_of(11), "t", 1);
    answer_all(ErrorCode::kNone);
    answer([](std::int32_t partition) {
        return partition == 0 ? ErrorCode::kNone : ErrorCode::kNotLeaderOrFollower;
    });
    EXPECT_THAT(written_["t0"], ElementsAre(ErrorCode::kNone));
    EXPECT_THAT(written_["t1"], ElementsAre(ErrorCode::kNotLeaderOrFollower));
}

TEST_F(RemoteMarkersTest, ABrokerThatIsBehindDoesNotEndATransactionUnmarked) {
    send(BrokerId(2), commit_of(11), "t", 0);
    answer_all(ErrorCode::kUnknownTopicOrPartition);
    EXPECT_THAT(written_["t0"], ElementsAre(ErrorCode::kNotLeaderOrFollower));
}

TEST_F(RemoteMarkersTest, AfterALostConnectionNobodySaysThatItIsWritten) {
    send(BrokerId(2), commit_of(11), "t", 0);
    send(BrokerId(2), commit_of(11), "t", 1);
    lose();
    EXPECT_THAT(written_["t0"], ElementsAre(ErrorCode::kNetworkException));
    EXPECT_THAT(written_["t1"], IsEmpty());
    ASSERT_EQ(calls_.size(), 1);  // the next call may find it back
    answer_all(ErrorCode::kNone);
    EXPECT_THAT(written_["t1"], ElementsAre(ErrorCode::kNone));
}

TEST_F(RemoteMarkersTest, AnAnswerWithoutThePartitionIsNoSuccess) {
    send(BrokerId(2), commit_of(11), "t", 0);
    const wire::WriteTxnMarkersResponse empty;
    calls_[0].done(&empty);
    EXPECT_THAT(written_["t0"], ElementsAre(ErrorCode::kUnknownServerError));
}

}  // namespace
}  // namespace kaas::broker
