// Goal: who looks at the end of a partition that another broker leads sees it soon, at the price of
// few calls, and never an old one. Method: the calls are scripted, time is simulated.
#include "broker/peers/remote_ends.h"

#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "client/channel.h"
#include "client/error.h"
#include "wire/error_code.h"
#include "wire/messages/list_offsets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

namespace kaas::broker {
namespace {

using base::BrokerId;
using base::Offset;
using base::PartitionId;
using wire::ErrorCode;
using Request = wire::ListOffsetsRequest;

class RemoteEndsTest : public testing::Test {
protected:
    struct Sent {
        Request request;
        client::Channel::Done<Request> done;
    };

    std::optional<Offset> look(std::int32_t partition) {
        return ends_.look(BrokerId(2), "t", PartitionId(partition));
    }
    /// Each partition that was asked for ends at 100 + its number.
    void answer(ErrorCode error = ErrorCode::kNone) {
        auto sent = std::move(calls_.front());
        calls_.pop_front();
        wire::ListOffsetsResponse response;
        for (const auto& topic : sent.request.topics) {
            auto& out = response.topics.emplace_back();
            out.name = topic.name;
            for (const auto& asked : topic.partitions) {
                auto& told = out.partitions.emplace_back();
                told.partition_index = asked.partition_index;
                told.error_code = error;
                told.offset = 100 + asked.partition_index;
            }
        }
        sent.done(&response);
    }

    base::InlineExecutor link_;
    base::ManualClock clock_;
    std::deque<Sent> calls_;
    RemoteEnds ends_{link_, clock_, [this](BrokerId, const Request& request, auto done) {
                         calls_.push_back({request, std::move(done)});
                     }};
};

TEST_F(RemoteEndsTest, TheSecondLookSeesWhatTheFirstHasAskedFor) {
    EXPECT_EQ(look(3), std::nullopt);
    ASSERT_EQ(calls_.size(), 1);
    const auto& asked = calls_[0].request;
    EXPECT_EQ(asked.replica_id, -1);
    EXPECT_EQ(asked.isolation_level, 0);
    EXPECT_EQ(asked.topics.at(0).partitions.at(0).timestamp, -1);
    answer();
    EXPECT_EQ(look(3), Offset(103));
    EXPECT_EQ(look(3), Offset(103)) << "another group that reads it";
}

TEST_F(RemoteEndsTest, ManyLooksAreOneCallAndEachPartitionIsAskedForOnce) {
    (void)look(0);
    for (const std::int32_t partition : {1, 2, 1, 2}) (void)look(partition);
    ASSERT_EQ(calls_.size(), 1);
    answer();
    ASSERT_EQ(calls_.size(), 1);
    EXPECT_EQ(calls_[0].request.topics.at(0).partitions.size(), 2);
}

TEST_F(RemoteEndsTest, WhatTheLeaderNoLongerSaysIsForgotten) {
    (void)look(0);
    answer();
    clock_.advance(RemoteEnds::kFresh);
    EXPECT_EQ(look(0), Offset(100));
    answer(ErrorCode::kNotLeaderOrFollower);
    clock_.advance(std::chrono::seconds(1));
    EXPECT_EQ(look(0), std::nullopt);
    auto lost = std::move(calls_.front());
    calls_.pop_front();
    lost.done(client::fail(client::ErrorCode::kDown, "gone"));
    EXPECT_EQ(look(0), std::nullopt);
    answer();
    EXPECT_EQ(look(0), Offset(100));
}

}  // namespace
}  // namespace kaas::broker
