#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/uuid.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/admin.h"
#include "cluster/controller.h"
#include "cluster/error.h"
#include "cluster/link_messages.h"
#include "cluster/reign.h"
#include "cluster/roll_call.h"
#include "cluster/testing_members.h"
#include "storage/memory_volume.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kaas::cluster {

inline constexpr std::chrono::seconds kTimeout{6};
inline constexpr std::chrono::milliseconds kGrace{300};
inline constexpr std::chrono::seconds kRetry{1};
inline const base::BrokerId kSelf{1};
inline const base::BrokerId kOther{2};
inline constexpr LinkId kBystandersLink = 30;

class RollCallTest : public ::testing::Test {
protected:
    struct Mark {
        std::string volume;
        base::Incarnation incarnation;
        RollCall::Marked marked;
    };
    struct Probe {
        base::BrokerId broker;
        std::move_only_function<void(bool)> answer;
    };
    /// Empty while there is no answer.
    using Outcome = std::shared_ptr<std::optional<Result<std::monostate>>>;
    using Heard = std::shared_ptr<std::optional<Result<News>>>;

    RollCallTest() {
        EXPECT_TRUE(prepare_cluster(volume_));
        controller_ = std::make_unique<Controller>(
            ControllerOptions{.clock = &clock_, .config = {}, .push = [this](const Push& push) {
                                  roll_call_->pushed(push);
                              }});
        RollCall::Options options;
        options.self = {kSelf, base::Uuid::random()};
        options.clock = &clock_;
        options.session_timeout = kTimeout;
        options.death_grace = kGrace;
        options.controller = controller_.get();
        options.mark = [this](base::BrokerId, const std::string& volume,
                              const base::Incarnation& incarnation, RollCall::Marked marked) {
            marks_.push_back({volume, incarnation, std::move(marked)});
        };
        options.probe = [this](const catalog::Broker& broker, auto answer) {
            probes_.push_back({broker.id, std::move(answer)});
        };
        options.on_death = [this](std::chrono::milliseconds silent) { deaths_.push_back(silent); };
        options.on_stale = [this] { ++stale_; };
        roll_call_ = std::make_shared<RollCall>(std::move(options));
        reign();
        controller_->register_broker(broker_of({1}), {&here_, [](const auto&) {}});
        controller_->step();
    }

    void reign(const std::set<base::BrokerId>& missed = {}) {
        auto won = begin_reign(volume_, kSelf, std::nullopt);
        ASSERT_TRUE(won) << won.error().context;
        roll_call_->begin(won->image, missed);
        controller_->begin(std::move(*won));
        if (bystander_) ask_to_join(kBystandersLink, *bystander_);
    }
    /// One turn of the control thread.
    void turn() {
        controller_->step();
        roll_call_->turn();
        controller_->step();
    }
    void pass(std::chrono::milliseconds time) {
        clock_.advance(time);
        if (bystander_) report(kBystandersLink, bystander_->life);
        turn();
    }
    /// From now on broker 3 is there, and heard whenever time passes: silence is somebody's own.
    void add_bystander() { bystander_ = join(kBystandersLink, {3}); }

    static Registration life(catalog::Broker broker) {
        return {.life = {broker.id, base::Uuid::random()}, .cluster_id = {}, .broker = broker};
    }
    Outcome ask_to_join(LinkId link, Registration registration) {
        if (registration.cluster_id.empty()) registration.cluster_id = image()->cluster_id();
        auto outcome = std::make_shared<std::optional<Result<std::monostate>>>();
        roll_call_->register_broker(
            link, std::move(registration),
            {&here_, [outcome](Result<std::monostate> result) { *outcome = std::move(result); }});
        return outcome;
    }
    /// Broker 2 lives, by connection `link`.
    Registration join(LinkId link, const Member& member = {2}) {
        auto registration = life(broker_of(member));
        auto outcome = ask_to_join(link, registration);
        controller_->step();
        EXPECT_TRUE(*outcome && **outcome);
        return registration;
    }
    Outcome report(LinkId link, const BrokerLife& life, Report report = {}) {
        auto outcome = std::make_shared<std::optional<Result<std::monostate>>>();
        roll_call_->report(
            link, life, std::move(report),
            {&here_, [outcome](Result<std::monostate> result) { *outcome = std::move(result); }});
        return outcome;
    }
    Heard watch(LinkId link, const BrokerLife& life, catalog::ImageVersion have) {
        auto heard = std::make_shared<std::optional<Result<News>>>();
        roll_call_->watch(link, life, have,
                          {&here_, [heard](Result<News> news) { *heard = std::move(news); }});
        return heard;
    }
    void create(const std::string& topic) {
        CreateTopics request;
        request.topics = {{.name = topic}};
        controller_->create_topics(request, {&here_, [](const auto&) {}});
        controller_->step();
    }
    /// The oldest mark under way ends.
    void end_mark(Result<void> outcome = {}) {
        ASSERT_FALSE(marks_.empty());
        auto mark = std::move(marks_.front());
        marks_.erase(marks_.begin());
        mark.marked(std::move(outcome));
    }
    static Result<void> not_proven() { return fail(ErrorCode::kStorage, "the test wants it"); }

    [[nodiscard]] catalog::ImagePtr image() const { return roll_call_->image(); }
    [[nodiscard]] bool lives(base::BrokerId id = kOther) const {
        const auto* broker = image()->broker(id);
        return broker != nullptr && broker->living();
    }
    static bool refused(const Outcome& outcome, ErrorCode why) {
        return *outcome && !**outcome && (**outcome).error().code == why;
    }
    static bool good(const Outcome& outcome) { return *outcome && (**outcome).has_value(); }

    base::ManualClock clock_;
    base::InlineExecutor here_;
    storage::MemoryVolume volume_;
    std::shared_ptr<RollCall> roll_call_;
    std::unique_ptr<Controller> controller_;  // goes first: its last answers are for the roll call
    std::optional<Registration> bystander_;
    std::vector<Mark> marks_;
    std::vector<Probe> probes_;
    std::vector<std::chrono::milliseconds> deaths_;
    int stale_ = 0;
};

}  // namespace kaas::cluster
