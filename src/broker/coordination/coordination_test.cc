// Goal: an id finds its state machine exactly while its slot is led here, loaded, durable and
// started; a journal that means nothing is refused by file and byte; what is under way when a slot
// is closed is answered before the slot is left. Method: the real loop and group slots, their logs
// on a volume in memory whose commit cycles the test runs.

#include "broker/coordination/coordination.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/metrics.h"
#include "base/uuid.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "catalog/slot.h"
#include "cluster/slot_host.h"
#include "coordinator/group_requests.h"
#include "coordinator/transaction_slot.h"
#include "storage/error.h"
#include "storage/memory_volume.h"
#include "storage/slot_log.h"
#include "storage/testing_slot.h"
#include "storage/volume.h"
#include "wire/error_code.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using namespace std::chrono_literals;
using coordinator::GroupSlot;
using wire::ErrorCode;

constexpr base::BrokerId kSelf{1};
constexpr cluster::SlotId kSlot{catalog::SlotKind::kGroup, base::PartitionId(0)};

class NoIds final : public coordinator::ProducerIdSource {
    void next_producer_id(Got) override {}
};
class NoMarkers final : public coordinator::MarkerSink {
    void send(const storage::Marker&, const coordinator::TransactionPartition&,
              coordinator::Done<ErrorCode>) override {}
};

class CoordinationTest : public ::testing::Test {
protected:
    CoordinationTest() {
        storage::testing::make_slots_parent(volume_);
        start();
        set_leader(kSelf);
    }

    /// A new life of the broker, which leaves the old one's slots to it as a crash would.
    void start() {
        life_ = std::make_unique<storage::testing::SlotLife>(volume_, clock_);
        coordination_ =
            std::make_unique<Coordination>(Coordination::Options{.self = kSelf,
                                                                 .metrics = &metrics_,
                                                                 .groups = {},
                                                                 .transactions = {},
                                                                 .record_max_bytes = &limit_of,
                                                                 .producer_ids = &ids_,
                                                                 .markers = &markers_});
    }
    void begin() {
        coordination_->begin([](const auto&) { return std::nullopt; },
                             [this](const cluster::SlotId& id) { return offline_.contains(id); });
    }
    static std::size_t limit_of(const catalog::ConfigMap& configs) {
        return configs.contains("max.message.bytes") ? 100 : 1'000;
    }
    /// One slot of groups, led by `leader`.
    void set_leader(base::BrokerId leader, catalog::ConfigMap configs = {}) {
        catalog::ImageEditor editor("c");
        catalog::Broker broker{.id = leader};
        broker.sessions.emplace("main", base::Incarnation{base::Uuid::random()});
        ASSERT_TRUE(editor.apply(catalog::BrokerRegistered{broker}));
        catalog::Partition slot;
        slot.replicas = {leader};
        slot.leader = {leader, broker.sessions["main"]};
        slot.runs = {{base::LeaderEpoch(0), "main"}};
        ASSERT_TRUE(editor.apply(catalog::TopicCreated{{.name = "__consumer_offsets",
                                                        .id = {base::Uuid::random()},
                                                        .partitions = {slot},
                                                        .configs = std::move(configs)}}));
        image_ = std::move(editor).finish();
    }
    std::future<storage::Result<void>> open(std::int32_t epoch) {
        auto opened = storage::SlotLog::open(storage::testing::slot_options(
            life_->log_dir, 0, epoch, storage::candidates_below(volume_, epoch, 0, false)));
        EXPECT_TRUE(opened) << opened.error().context;
        auto served = std::make_shared<std::promise<storage::Result<void>>>();
        auto later = served->get_future();
        coordination_->open(kSlot, std::move(*opened), [served](storage::Result<void> outcome) {
            served->set_value(std::move(outcome));
        });
        return later;
    }
    /// kNone when the id finds its slot.
    ErrorCode look_up() {
        std::promise<ErrorCode> found;
        coordination_->with_group(*image_, "g", [&](auto groups) {
            found.set_value(groups ? ErrorCode::kNone : groups.error());
        });
        return found.get_future().get();
    }
    /// Commits an offset, and runs cycles until it is answered.
    ErrorCode commit(std::int64_t offset) {
        auto answer = begin_commit(offset);
        while (answer.wait_for(0s) != std::future_status::ready) run();
        return answer.get();
    }
    std::future<ErrorCode> begin_commit(std::int64_t offset) {
        auto answer = std::make_shared<std::promise<ErrorCode>>();
        auto later = answer->get_future();
        coordination_->with_group(*image_, "g", [answer, offset](auto groups) {
            if (!groups) return answer->set_value(groups.error());
            coordinator::OffsetCommitRequest request;
            request.version = 8;
            request.group_id = "g";
            request.topics.push_back({.id = {},
                                      .name = "orders",
                                      .partitions = {{.partition = base::PartitionId(0),
                                                      .offset = base::Offset(offset)}}});
            (*groups)->commit(std::move(request), [answer](const auto& outcome) {
                answer->set_value(outcome.topics[0].partitions[0].error);
            });
        });
        return later;
    }
    /// Lets the loop and the log do what they have to.
    void run() {
        turn();
        life_->run();
        turn();
    }
    void turn() {
        std::promise<void> done;
        coordination_->loop().post([&] { done.set_value(); });
        done.get_future().get();
    }
    std::string journal(std::int32_t epoch) {
        auto text = storage::read_whole(
            volume_, "__cluster/groups/0/0000000" + std::to_string(epoch) + "/slot-1.jsonl",
            1 << 20);
        return text ? *text : text.error().context;
    }

    storage::MemoryVolume volume_;
    base::ManualClock clock_;
    base::metrics::Registry metrics_;
    NoIds ids_;
    NoMarkers markers_;
    std::set<cluster::SlotId> offline_;  ///< changed only while nothing is asked
    catalog::ImagePtr image_;
    std::unique_ptr<storage::testing::SlotLife> life_;
    std::unique_ptr<Coordination> coordination_;
};

TEST_F(CoordinationTest, AnIdIsRefusedUntilItsSlotIsServedHere) {
    begin();
    EXPECT_EQ(look_up(), ErrorCode::kCoordinatorLoadInProgress);
    ASSERT_TRUE(open(0).get());
    EXPECT_EQ(look_up(), ErrorCode::kNone);
    EXPECT_EQ(commit(7), ErrorCode::kNone);
    EXPECT_NE(journal(0).find("orders"), std::string::npos);
}

TEST_F(CoordinationTest, AnIdOfAnotherBrokersSlotIsSentAway) {
    begin();
    set_leader(base::BrokerId(2));
    EXPECT_EQ(look_up(), ErrorCode::kNotCoordinator);
    image_ = catalog::ImageEditor("c").finish();
    EXPECT_EQ(look_up(), ErrorCode::kNotCoordinator) << "there are no slots yet";
}

TEST_F(CoordinationTest, AnIdOfAnOfflineSlotIsSentToLookForItsCoordinator) {
    begin();
    offline_.insert(kSlot);
    EXPECT_EQ(look_up(), ErrorCode::kNotCoordinator) << "a load would be waited for";
    offline_.clear();
    EXPECT_EQ(look_up(), ErrorCode::kCoordinatorLoadInProgress);
}

TEST_F(CoordinationTest, AnOfflineSlotDoesNotHideTheOthers) {
    const auto count_all = [&] {
        std::promise<std::expected<std::size_t, ErrorCode>> counted;
        coordination_->with_all_groups(*image_, [&](auto all) {
            if (!all) return counted.set_value(std::unexpected(all.error()));
            counted.set_value(all->size());
        });
        return counted.get_future().get();
    };
    begin();
    EXPECT_EQ(count_all().error(), ErrorCode::kCoordinatorLoadInProgress);
    offline_.insert(kSlot);
    EXPECT_EQ(count_all(), 0U);
    offline_.clear();
    ASSERT_TRUE(open(0).get());
    EXPECT_EQ(count_all(), 1U);
}

TEST_F(CoordinationTest, NothingIsServedBeforeTheBrokerHasBegun) {
    auto served = open(0);
    EXPECT_EQ(look_up(), ErrorCode::kCoordinatorLoadInProgress);
    EXPECT_NE(served.wait_for(0s), std::future_status::ready);
    begin();
    EXPECT_EQ(look_up(), ErrorCode::kNone);
    EXPECT_TRUE(served.get());
}

TEST_F(CoordinationTest, WhatWasOnlyReadIsServedOnceItIsDurable) {
    begin();
    ASSERT_TRUE(open(0).get());
    ASSERT_EQ(commit(7), ErrorCode::kNone);
    start();  // nothing vouches for the line of the commit
    begin();
    auto served = open(1);
    turn();
    EXPECT_EQ(look_up(), ErrorCode::kCoordinatorLoadInProgress);
    EXPECT_NE(served.wait_for(0s), std::future_status::ready) << "as long as it is not served";
    run();
    EXPECT_TRUE(served.get());
    EXPECT_EQ(look_up(), ErrorCode::kNone);
    EXPECT_NE(journal(1).find("orders"), std::string::npos);
}

TEST_F(CoordinationTest, ASlotWhoseLogFailsBeforeItIsServedNeverIs) {
    begin();
    ASSERT_TRUE(open(0).get());
    ASSERT_EQ(commit(7), ErrorCode::kNone);
    start();
    begin();
    volume_.fail_nth(storage::Operation::kWrite, 1, {.code = storage::ErrorCode::kIo});
    auto served = open(1);
    run();
    const auto outcome = served.get();
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, storage::ErrorCode::kIo);
    EXPECT_EQ(look_up(), ErrorCode::kCoordinatorLoadInProgress);
}

TEST_F(CoordinationTest, AJournalThatMeansNothingIsRefusedByFileAndByte) {
    begin();
    ASSERT_TRUE(open(0).get());
    ASSERT_EQ(commit(7), ErrorCode::kNone);
    const auto path = "__cluster/groups/0/00000000/slot-1.jsonl";
    auto file = volume_.open(path, storage::OpenMode::kReadWrite);
    ASSERT_TRUE(file);
    const auto end = journal(0).size();
    const std::string line = "{\"change\":\"moon-landed\"}\n";
    const auto bytes = base::as_bytes(line);
    ASSERT_TRUE((*file)->write_at(end, {&bytes, 1}));
    start();
    begin();
    const auto opened = open(1).get();
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, storage::ErrorCode::kCorrupt);
    EXPECT_TRUE(opened.error().context.starts_with(std::string(path) + " at byte " +
                                                   std::to_string(end) + ": "))
        << opened.error().context;
    EXPECT_EQ(look_up(), ErrorCode::kCoordinatorLoadInProgress);
}

TEST_F(CoordinationTest, WhatIsUnderWayWhenASlotIsClosedIsAnsweredBeforeItIsLeft) {
    begin();
    ASSERT_TRUE(open(0).get());
    auto answer = begin_commit(7);
    turn();
    std::promise<void> left;
    auto has_left = left.get_future();
    coordination_->close(kSlot, [&] { left.set_value(); });
    turn();
    EXPECT_EQ(look_up(), ErrorCode::kCoordinatorLoadInProgress) << "no request comes in any more";
    EXPECT_NE(has_left.wait_for(0s), std::future_status::ready);
    life_->run();
    EXPECT_EQ(answer.get(), ErrorCode::kNone);
    has_left.get();
}

TEST_F(CoordinationTest, TheTopicOfTheGroupsSaysHowMuchMayBeKeptAtOnce) {
    begin();
    ASSERT_TRUE(open(0).get());
    coordination_->apply(image_);
    EXPECT_EQ(commit(7), ErrorCode::kNone);
    set_leader(kSelf, {{"max.message.bytes", "100"}});
    coordination_->apply(image_);
    EXPECT_EQ(commit(8), ErrorCode::kUnknownServerError);
}

TEST_F(CoordinationTest, ALogThatFailsAnswersWithNotCoordinator) {
    begin();
    ASSERT_TRUE(open(0).get());
    volume_.fail_nth(storage::Operation::kWrite, 1, {.code = storage::ErrorCode::kIo});
    EXPECT_EQ(commit(7), ErrorCode::kNotCoordinator);
    std::promise<void> left;
    coordination_->close(kSlot, [&] { left.set_value(); });
    left.get_future().get();
}

}  // namespace
}  // namespace kaas::broker
