// Goal: nothing leaves a controller before it is durable and checked; answers wait for the brokers
// that must know, no longer than asked; a controller that failed says so to everybody. Method: a
// controller on a volume in memory with a clock that the test moves; what it pushes is held back.

#include "cluster/controller.h"

#include "base/bytes.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/uuid.h"
#include "catalog/change.h"
#include "catalog/control_log.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/admin.h"
#include "cluster/election.h"
#include "cluster/error.h"
#include "cluster/reign.h"
#include "storage/memory_volume.h"
#include "storage/volume.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kaas::cluster {
namespace {

using namespace std::chrono_literals;
using storage::MemoryVolume;
using storage::Operation;

class ControllerTest : public ::testing::Test {
protected:
    ControllerTest() {
        EXPECT_TRUE(prepare_cluster(volume_));
        take_office();
    }
    void take_office() {
        controller_ = std::make_unique<Controller>(
            ControllerOptions{.clock = &clock_, .config = {}, .push = [this](const Push& push) {
                                  pushes_.push_back(push);
                              }});
        begin_reign_of(*controller_);
        join(1);
    }
    void begin_reign_of(Controller& controller) {
        auto reign = begin_reign(volume_, base::BrokerId(1), "cluster");
        ASSERT_TRUE(reign) << reign.error().context;
        controller.begin(std::move(*reign));
    }
    /// A step that leaves nothing in the log.
    void fail_a_step() {
        volume_.fail_nth(Operation::kWrite, 1, {.code = storage::ErrorCode::kNoSpace});
        controller_->step();
        ASSERT_FALSE(controller_->reigning());
    }
    void join(int id) {
        catalog::Broker broker{.id = base::BrokerId(id)};
        broker.sessions.emplace("main", base::Incarnation{base::Uuid::random()});
        controller_->register_broker(
            broker, {&here_, [](Result<std::monostate> result) { EXPECT_TRUE(result); }});
        controller_->step();
    }
    /// Where the answer will be.
    template <class T>
    using Answer = std::shared_ptr<std::optional<Result<T>>>;
    template <class T>
    std::pair<Answer<T>, Reply<T>> slot() {
        auto answer = std::make_shared<std::optional<Result<T>>>();
        return {answer,
                Reply<T>{&here_, [answer](Result<T> result) { *answer = std::move(result); }}};
    }
    Answer<std::vector<CreatedTopic>> create(const std::string& name,
                                             std::chrono::milliseconds timeout = 1h) {
        auto [answer, reply] = slot<std::vector<CreatedTopic>>();
        CreateTopics request;
        request.topics = {{.name = name}};
        request.deadline = clock_.now() + timeout;
        controller_->create_topics(request, std::move(reply));
        return answer;
    }
    base::ProducerId next_producer_id() {
        auto [answer, reply] = slot<ProducerIdBlock>();
        controller_->allocate_producer_ids(1000, std::move(reply));
        controller_->step();
        return (***answer).first;
    }
    void applied(int broker) {
        controller_->applied(base::BrokerId(broker), pushes_.back().image->version());
    }
    const catalog::Image& image() { return *pushes_.back().image; }
    static ErrorCode code_of(const Answer<std::vector<CreatedTopic>>& answer) {
        return (*answer)->error().code;
    }

    base::ManualClock clock_;
    base::InlineExecutor here_;
    MemoryVolume volume_;
    std::vector<Push> pushes_;
    std::unique_ptr<Controller> controller_;
};

TEST_F(ControllerTest, AnswerWaitsForEveryLivingBroker) {
    join(2);
    auto answer = create("a");
    EXPECT_FALSE(*answer);
    controller_->step();
    ASSERT_NE(image().topic("a"), nullptr);
    EXPECT_FALSE(*answer);
    applied(1);
    EXPECT_FALSE(*answer) << "broker 2 cannot route it yet";
    applied(2);
    ASSERT_TRUE(*answer);
    EXPECT_TRUE((**answer)->front().outcome);
}

TEST_F(ControllerTest, ApplyingAnotherVersionAnswersNobody) {
    auto answer = create("a");
    controller_->step();
    controller_->applied(base::BrokerId(1), pushes_.front().image->version());
    EXPECT_FALSE(*answer);
    applied(1);
    EXPECT_TRUE(*answer);
}

TEST_F(ControllerTest, NobodyWaitsForABrokerThatLeaves) {
    join(2);
    auto answer = create("a");
    controller_->step();
    applied(1);
    controller_->remove_broker(base::BrokerId(2), {&here_, [](Result<std::monostate>) {}});
    controller_->step();
    EXPECT_TRUE(*answer);
}

TEST_F(ControllerTest, DeadlineAnswersThoughTheTopicStands) {
    auto answer = create("a", 5s);
    const auto next = controller_->step();
    EXPECT_LE(next, clock_.now() + 5s);
    clock_.advance(4999ms);
    controller_->step();
    EXPECT_FALSE(*answer);
    clock_.advance(1ms);
    controller_->step();
    ASSERT_TRUE(*answer);
    EXPECT_EQ((**answer)->front().outcome.error().code, ErrorCode::kRequestTimedOut);
    EXPECT_NE(image().topic("a"), nullptr);
}

TEST_F(ControllerTest, RefusalsWaitForNobody) {
    auto answer = create("..");
    controller_->step();
    ASSERT_TRUE(*answer);
    EXPECT_EQ((**answer)->front().outcome.error().code, ErrorCode::kInvalidTopic);
}

TEST_F(ControllerTest, RequestsOfOneStepShareOneSyncAndSeeEachOther) {
    std::size_t syncs = 0;
    volume_.set_hook([&](const MemoryVolume::Step& step) -> std::optional<storage::Fault> {
        if (step.operation == Operation::kSync) ++syncs;
        return std::nullopt;
    });
    auto first = create("a");
    auto second = create("a");
    auto third = create("b");
    controller_->step();
    volume_.set_hook(nullptr);
    EXPECT_EQ(syncs, 1U);
    applied(1);
    EXPECT_TRUE((**first)->front().outcome);
    EXPECT_EQ((**second)->front().outcome.error().code, ErrorCode::kTopicAlreadyExists);
    EXPECT_TRUE((**third)->front().outcome);
    EXPECT_EQ(pushes_.back().changes.size(), 2U);
}

TEST_F(ControllerTest, NothingIsPushedBeforeSyncAndCheck) {
    for (const auto fault : {Operation::kWrite, Operation::kSync, Operation::kLook}) {
        const auto before = pushes_.size();
        volume_.fail_nth(fault, 1, {});
        auto answer = create("a");
        controller_->step();
        EXPECT_EQ(pushes_.size(), before);
        ASSERT_TRUE(*answer);
        EXPECT_EQ(code_of(answer), ErrorCode::kNotController);
        EXPECT_FALSE(controller_->reigning()) << "what is on disk is now the successor's to say";
        auto late = create("b");
        controller_->step();
        EXPECT_EQ(code_of(late), ErrorCode::kNotController);
        take_office();
    }
}

TEST_F(ControllerTest, BetweenTwoReignsEverybodyIsToldSoAtOnce) {
    create("a");
    fail_a_step();
    auto between = create("b");
    controller_->step();
    ASSERT_TRUE(*between);
    EXPECT_EQ(code_of(between), ErrorCode::kNotController);
    begin_reign_of(*controller_);
    auto after = create("b");
    controller_->step();
    applied(1);
    ASSERT_TRUE(*after && **after);
    EXPECT_TRUE((**after)->front().outcome);
}

TEST_F(ControllerTest, EndOfAReignSaysWhetherSomebodyElseReigns) {
    create("a");
    fail_a_step();
    EXPECT_EQ(controller_->ended_by()->code, ErrorCode::kStorage);
    begin_reign_of(*controller_);
    EXPECT_FALSE(controller_->ended_by());
    auto other = ElectedEpoch::stand(volume_);
    ASSERT_TRUE(other);
    controller_->beat();
    EXPECT_FALSE(controller_->reigning());
    EXPECT_EQ(controller_->ended_by()->code, ErrorCode::kFenced);
}

TEST_F(ControllerTest, FailureOfWhoWasSucceededIsHisFence) {
    auto other = ElectedEpoch::stand(volume_);
    ASSERT_TRUE(other);
    create("a");
    fail_a_step();
    EXPECT_EQ(controller_->ended_by()->code, ErrorCode::kFenced);
}

TEST_F(ControllerTest, ReportsInTheHandsOfAFailedStepAreActedOnByTheNextReign) {
    for (const auto* name : {"released", "moved", "opened", "deleted"}) create(name);
    controller_->step();
    const auto partition = [&](const std::string& name) {
        return base::TopicPartition{image().topic(name)->id, base::PartitionId(0)};
    };
    const auto deleted = partition("deleted").topic;
    auto [answer, reply] = slot<std::vector<DeletedTopic>>();
    DeleteTopics request;
    request.topics = {deleted};
    controller_->delete_topics(request, std::move(reply));
    controller_->step();
    ASSERT_TRUE(image().deletions().contains(deleted));

    controller_->released({{partition("released"), base::LeaderEpoch(0)}});
    controller_->moved({{partition("moved"), base::LeaderEpoch(0), "main"}});
    controller_->opened({{partition("opened"), base::LeaderEpoch(0), base::LeaderEpoch(0)}});
    controller_->reclaimed(deleted);
    fail_a_step();
    // Said again, and heard while nobody reigns.
    controller_->released({{partition("released"), base::LeaderEpoch(0)}});
    controller_->step();
    begin_reign_of(*controller_);
    auto nudge = create("nudge");
    controller_->step();
    EXPECT_EQ(image().partition(partition("released"))->leader_epoch, base::LeaderEpoch(1));
    EXPECT_EQ(image().partition(partition("moved"))->leader_epoch, base::LeaderEpoch(1));
    EXPECT_EQ(image().partition(partition("opened"))->written_epoch, base::LeaderEpoch(0));
    EXPECT_FALSE(image().deletions().contains(deleted));
}

TEST_F(ControllerTest, ProducerIdsOfTheNextReignAreItsOwn) {
    EXPECT_EQ(next_producer_id(), base::ProducerId(std::int64_t{1} << 32));
    create("a");
    fail_a_step();
    begin_reign_of(*controller_);
    EXPECT_EQ(next_producer_id(), base::ProducerId(std::int64_t{2} << 32));
}

TEST_F(ControllerTest, SucceededControllerAnswersNobody) {
    auto old = std::move(controller_);
    take_office();
    auto [answer, reply] = slot<ProducerIdBlock>();
    old->allocate_producer_ids(10, std::move(reply));
    old->step();
    ASSERT_TRUE(*answer);
    EXPECT_EQ((*answer)->error().code, ErrorCode::kNotController);
}

TEST_F(ControllerTest, EndAnswersWhatIsInHand) {
    auto waiting = create("a");
    controller_->step();
    auto queued = create("b");
    controller_.reset();
    EXPECT_EQ(code_of(waiting), ErrorCode::kNotController);
    EXPECT_EQ(code_of(queued), ErrorCode::kNotController);
}

TEST_F(ControllerTest, ProducerIdsCarryTheEpochAndNeverRepeat) {
    EXPECT_EQ(next_producer_id(), base::ProducerId(std::int64_t{1} << 32));
    EXPECT_EQ(next_producer_id(), base::ProducerId((std::int64_t{1} << 32) + 1000));
    volume_.crash();  // nothing was written about them, and nothing needs to be
    take_office();
    EXPECT_EQ(next_producer_id(), base::ProducerId(std::int64_t{2} << 32));
}

TEST_F(ControllerTest, FailedLogGetsTheNextEpochOnTheSameBroker) {
    create("a");
    controller_->step();
    const base::TopicPartition id{image().topic("a")->id, base::PartitionId(0)};
    const auto holder = image().partition(id)->leader;
    controller_->released({{id, base::LeaderEpoch(0)}});
    controller_->step();
    EXPECT_EQ(image().partition(id)->leader_epoch, base::LeaderEpoch(1));
    EXPECT_EQ(image().partition(id)->leader, holder);
    EXPECT_FALSE(image().partition(id)->released);
    const auto pushes = pushes_.size();
    controller_->released({{id, base::LeaderEpoch(0)}});  // late
    controller_->step();
    EXPECT_EQ(pushes_.size(), pushes);
}

TEST_F(ControllerTest, ReportThatIsMadeTwiceBeforeAStepCountsOnce) {
    create("a");
    create("b");
    controller_->step();
    const base::TopicPartition sick{image().topic("a")->id, base::PartitionId(0)};
    const base::TopicPartition slow{image().topic("b")->id, base::PartitionId(0)};
    // The holder repeats itself while the step that heard of `sick` waits for the volume.
    controller_->released({{sick, base::LeaderEpoch(0)}});
    volume_.set_hook([&](const MemoryVolume::Step& step) -> std::optional<storage::Fault> {
        if (step.operation != Operation::kSync) return std::nullopt;
        controller_->released({{sick, base::LeaderEpoch(0)}, {slow, base::LeaderEpoch(0)}});
        controller_->released({{slow, base::LeaderEpoch(0)}});
        return std::nullopt;
    });
    controller_->step();
    volume_.set_hook(nullptr);
    controller_->opened({{sick, base::LeaderEpoch(1)}, {sick, base::LeaderEpoch(1)}});
    controller_->step();
    for (const auto& id : {sick, slow}) {
        EXPECT_EQ(image().partition(id)->leader_epoch, base::LeaderEpoch(1));
        EXPECT_FALSE(image().partition(id)->released);
    }
}

TEST_F(ControllerTest, ReportsOfWhatIsGoneAreDropped) {
    create("a");
    controller_->step();
    const base::TopicPartition id{image().topic("a")->id, base::PartitionId(0)};
    const auto pushes = pushes_.size();
    const base::TopicPartition stranger{{base::Uuid::random()}, base::PartitionId(0)};
    controller_->opened({{stranger, base::LeaderEpoch(0)}, {id, base::LeaderEpoch(7)}});
    controller_->released({{stranger, base::LeaderEpoch(0)}});
    controller_->reclaimed(stranger.topic);
    controller_->step();
    EXPECT_EQ(pushes_.size(), pushes);
    controller_->opened({{id, base::LeaderEpoch(0), base::LeaderEpoch(0)}});
    controller_->step();
    EXPECT_EQ(image().partition(id)->written_epoch, base::LeaderEpoch(0));
}

TEST_F(ControllerTest, RestartRenewsAllWithOneLine) {
    for (const auto* name : {"a", "b", "c"}) create(name);
    controller_->step();
    join(1);
    ASSERT_EQ(pushes_.back().changes.size(), 2U);
    EXPECT_TRUE(std::holds_alternative<catalog::LeadershipRenewed>(pushes_.back().changes[1]));
    image().for_each_topic([&](const catalog::Topic& topic) {
        EXPECT_EQ(topic.partitions[0].leader_epoch, base::LeaderEpoch(1));
        EXPECT_EQ(image().leader(topic.partitions[0]), base::BrokerId(1));
    });
}

TEST_F(ControllerTest, LongHistoryIsReadBackThroughItsRolls) {
    for (int i = 0; i < 600; ++i) {
        create("topic-" + std::to_string(i));
        controller_->step();
    }
    controller_->step();  // idle: old files go
    volume_.crash();
    take_office();
    EXPECT_EQ(image().topic_count(), 600U);
    EXPECT_EQ(image().cluster_id(), "cluster");
}

TEST_F(ControllerTest, OldControlLogsAreRemovedWhenIdle) {
    for (int i = 0; i < 3; ++i) take_office();
    controller_->step();
    auto names = volume_.list(std::string(catalog::kControlDirectory));
    ASSERT_TRUE(names);
    EXPECT_EQ(*names, std::vector<std::string>{"00000004"});
}

TEST(Reign, EndsOnlyWhatItsPredecessorHasNotEnded) {
    MemoryVolume volume;
    ASSERT_TRUE(prepare_cluster(volume));
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(begin_reign(volume, base::BrokerId(1), std::nullopt));
    ASSERT_TRUE(ElectedEpoch::stand(volume));  // number 6 dies before it writes a picture
    std::vector<std::string> marked;
    volume.set_hook([&](const MemoryVolume::Step& step) -> std::optional<storage::Fault> {
        if (step.operation == Operation::kMark) marked.push_back(step.path);
        return std::nullopt;
    });
    ASSERT_TRUE(begin_reign(volume, base::BrokerId(1), std::nullopt));
    EXPECT_EQ(marked, (std::vector{election_path(base::ControllerEpoch(6)),
                                   election_path(base::ControllerEpoch(5))}));
}

TEST(Reign, WrongClusterIsRefusedByName) {
    MemoryVolume volume;
    ASSERT_TRUE(prepare_cluster(volume));
    ASSERT_TRUE(begin_reign(volume, base::BrokerId(1), "mine"));
    auto refused = begin_reign(volume, base::BrokerId(1), "other");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kWrongCluster);
    auto any = begin_reign(volume, base::BrokerId(1), std::nullopt);
    ASSERT_TRUE(any);
    EXPECT_EQ(any->image->cluster_id(), "mine");
}

TEST(Reign, DamagedControlLogIsRefusedByFileAndLine) {
    MemoryVolume volume;
    ASSERT_TRUE(prepare_cluster(volume));
    ASSERT_TRUE(begin_reign(volume, base::BrokerId(1), std::nullopt));
    auto file =
        volume.open("__cluster/control/00000001/control-1.jsonl", storage::OpenMode::kReadWrite);
    ASSERT_TRUE(file);
    const std::string line =
        "{\"change\":\"topic-deleted\",\"topic\":\"AAAAAAAAAAAAAAAAAAAAAQ\"}\n";
    const auto bytes = base::as_bytes(line);
    ASSERT_TRUE((*file)->write_at(*(*file)->size(), {&bytes, 1}));
    auto refused = begin_reign(volume, base::BrokerId(1), std::nullopt);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().context.find("control-1.jsonl, line 2"), std::string::npos)
        << refused.error().context;
}

}  // namespace
}  // namespace kaas::cluster
