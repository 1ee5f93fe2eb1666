// Goal: fetch sessions keep KIP-227's promises: a client hears of every partition once, then of
// what changed; wrong ids and epochs are refused; the cache stays within its slots. Method:
// requests and outcomes by hand.
#include "broker/fetch_sessions.h"

#include "base/clock.h"
#include "base/metrics.h"
#include "broker/fetch_session.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace kaas::broker {
namespace {

using wire::ErrorCode;
constexpr bool kByName = false;
constexpr bool kById = true;

class FetchSessionsTest : public testing::Test {
protected:
    base::ManualClock clock_;
    base::metrics::Registry metrics_;
    FetchSessions sessions_{2, clock_, metrics_};

    static wire::FetchRequest request(std::int32_t id, std::int32_t epoch,
                                      const std::vector<std::string>& topics = {}) {
        wire::FetchRequest request;
        request.session_id = id;
        request.session_epoch = epoch;
        for (const auto& name : topics) {
            auto& topic = request.topics.emplace_back();
            topic.topic = name;
            topic.partitions.emplace_back().fetch_offset = 7;
        }
        return request;
    }
    static FetchOutcome quiet(std::int64_t high_watermark = 10) {
        return {.high_watermark = high_watermark, .log_start = 0};
    }
    /// A full fetch of `topics`; gives the session's id.
    std::int32_t begin_session(const std::vector<std::string>& topics) {
        auto context = sessions_.begin(request(0, 0, topics), kByName);
        std::vector<FetchOutcome> outcomes(topics.size(), quiet());
        return sessions_.finish(context, outcomes, false).session_id;
    }
};

TEST_F(FetchSessionsTest, TellsAFullFetchEverythingAndGivesAnId) {
    auto context = sessions_.begin(request(0, 0, {"a", "b"}), kByName);
    ASSERT_EQ(context.targets.size(), 2U);
    EXPECT_EQ(context.targets[0].fetch_offset, 7);
    std::vector<FetchOutcome> outcomes{quiet(), quiet()};
    auto plan = sessions_.finish(context, outcomes, false);
    EXPECT_GT(plan.session_id, 0);
    EXPECT_EQ(plan.include, (std::vector<bool>{true, true}));
}

TEST_F(FetchSessionsTest, GivesNoSessionToWhoWantsNone) {
    auto context = sessions_.begin(request(0, -1, {"a"}), kByName);
    std::vector<FetchOutcome> outcomes{quiet()};
    EXPECT_EQ(sessions_.finish(context, outcomes, false).session_id, 0);
    EXPECT_EQ(sessions_.size(), 0U);
}

TEST_F(FetchSessionsTest, TellsAnIncrementalFetchOnlyWhatChanged) {
    std::int32_t id = begin_session({"a", "b", "c"});
    auto context = sessions_.begin(request(id, 1), kByName);
    ASSERT_EQ(context.targets.size(), 3U);
    std::vector<FetchOutcome> outcomes{quiet(), quiet(11), quiet()};
    auto plan = sessions_.finish(context, outcomes, false);
    EXPECT_EQ(plan.session_id, id);
    EXPECT_EQ(plan.include, (std::vector<bool>{false, true, false}));
    context = sessions_.begin(request(id, 2), kByName);
    plan = sessions_.finish(context, outcomes, false);
    EXPECT_EQ(plan.include, (std::vector<bool>{false, false, false}));
}

TEST_F(FetchSessionsTest, TellsAgainAfterAnError) {
    std::int32_t id = begin_session({"a"});
    auto context = sessions_.begin(request(id, 1), kByName);
    std::vector<FetchOutcome> failed{{.error = ErrorCode::kNotLeaderOrFollower}};
    EXPECT_EQ(sessions_.finish(context, failed, false).include, std::vector<bool>{true});
    context = sessions_.begin(request(id, 2), kByName);
    std::vector<FetchOutcome> good{quiet()};
    EXPECT_EQ(sessions_.finish(context, good, false).include, std::vector<bool>{true});
}

TEST_F(FetchSessionsTest, MovesWhatGaveRecordsToTheEnd) {
    std::int32_t id = begin_session({"a", "b"});
    auto context = sessions_.begin(request(id, 1), kByName);
    std::vector<FetchOutcome> outcomes{quiet(), quiet()};
    outcomes[0].has_records = true;
    (void)sessions_.finish(context, outcomes, false);
    context = sessions_.begin(request(id, 2), kByName);
    EXPECT_EQ(*context.targets[0].name, "b");
    EXPECT_EQ(*context.targets[1].name, "a");
}

TEST_F(FetchSessionsTest, ForgetsPartitionsAndEndsWithTheLast) {
    std::int32_t id = begin_session({"a", "b"});
    auto forget = request(id, 1);
    auto& topic = forget.forgotten_topics_data.emplace_back();
    topic.topic = "a";
    topic.partitions.push_back(0);
    auto context = sessions_.begin(forget, kByName);
    ASSERT_EQ(context.targets.size(), 1U);
    EXPECT_EQ(*context.targets[0].name, "b");
    forget.session_epoch = 2;
    forget.forgotten_topics_data[0].topic = "b";
    context = sessions_.begin(forget, kByName);
    EXPECT_TRUE(context.targets.empty());
    EXPECT_EQ(sessions_.size(), 0U);
}

TEST_F(FetchSessionsTest, RefusesWrongIdsEpochsAndKindsOfName) {
    std::int32_t id = begin_session({"a"});
    EXPECT_EQ(sessions_.begin(request(id + 1, 1), kByName).error,
              ErrorCode::kFetchSessionIdNotFound);
    EXPECT_EQ(sessions_.begin(request(id, 2), kByName).error, ErrorCode::kInvalidFetchSessionEpoch);
    EXPECT_EQ(sessions_.begin(request(id, 1), kById).error, ErrorCode::kFetchSessionTopicIdError);
    EXPECT_EQ(sessions_.begin(request(id, 1), kByName).error, ErrorCode::kNone);
}

TEST_F(FetchSessionsTest, RefusesTheAnswerOfARequestThatAnotherOvertook) {
    std::int32_t id = begin_session({"a"});
    auto slow = sessions_.begin(request(id, 1), kByName);
    auto fast = sessions_.begin(request(id, 2), kByName);
    std::vector<FetchOutcome> outcomes{quiet()};
    EXPECT_EQ(sessions_.finish(slow, outcomes, false).error, ErrorCode::kInvalidFetchSessionEpoch);
    EXPECT_EQ(sessions_.finish(fast, outcomes, false).error, ErrorCode::kNone);
}

TEST_F(FetchSessionsTest, AFinalEpochEndsTheSession) {
    std::int32_t id = begin_session({"a"});
    (void)sessions_.begin(request(id, -1), kByName);
    EXPECT_EQ(sessions_.size(), 0U);
}

TEST_F(FetchSessionsTest, AFullCacheTurnsNewSessionsAway) {
    begin_session({"a"});
    begin_session({"b"});
    EXPECT_EQ(begin_session({"c", "d"}), 0);
    EXPECT_EQ(sessions_.size(), 2U);
}

TEST_F(FetchSessionsTest, ARestingSessionMakesRoomAfterTwoMinutes) {
    std::int32_t resting = begin_session({"a"});
    std::int32_t used = begin_session({"b"});
    clock_.advance(FetchSessions::kMinEviction + std::chrono::milliseconds(1));
    (void)sessions_.begin(request(used, 1), kByName);
    EXPECT_GT(begin_session({"c"}), 0);
    EXPECT_EQ(sessions_.begin(request(resting, 1), kByName).error,
              ErrorCode::kFetchSessionIdNotFound);
    EXPECT_EQ(sessions_.begin(request(used, 2), kByName).error, ErrorCode::kNone);
}

TEST_F(FetchSessionsTest, ASmallOldSessionMakesRoomForALargerOne) {
    std::int32_t small = begin_session({"a"});
    std::int32_t large = begin_session({"b", "c", "d"});
    clock_.advance(FetchSessions::kMinEviction + std::chrono::milliseconds(1));
    (void)sessions_.begin(request(small, 1), kByName);
    (void)sessions_.begin(request(large, 1), kByName);
    EXPECT_EQ(begin_session({"e"}), 0);
    EXPECT_GT(begin_session({"f", "g"}), 0);
    EXPECT_EQ(sessions_.begin(request(small, 2), kByName).error,
              ErrorCode::kFetchSessionIdNotFound);
}

}  // namespace
}  // namespace kaas::broker
