// Goal: whatever brokers and controllers do, a partition has never two leaders that may write, its
// replicas keep their number and hold its leader, and once all is calm every partition is led,
// leaderships are even, and nothing moves any more. Method: a controller on a volume in memory, and
// brokers that come, drain, die and answer late, by printed seed.

#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/uuid.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/admin.h"
#include "cluster/controller.h"
#include "cluster/error.h"
#include "cluster/moves.h"
#include "cluster/reign.h"
#include "storage/memory_volume.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kaas::cluster {
namespace {

constexpr int kBrokers = 4;

class Calamities {
public:
    explicit Calamities(unsigned seed) : random_(seed) {
        EXPECT_TRUE(prepare_cluster(volume_));
        take_office();
        for (int id = 1; id <= kBrokers; ++id) join(id);
        for (int t = 0; t < 5; ++t) create("t" + std::to_string(t), 1 + below(8), 1 + below(3));
        step();
    }

    void run() {
        for (int turn = 0; turn < 60 && fault_.empty(); ++turn) {
            const int id = 1 + below(kBrokers);
            switch (below(8)) {
                case 0: die(id); break;
                case 1: join(id); break;
                case 2: controller_->drain_broker(base::BrokerId(id), ignored()); break;
                case 3: take_office(); break;
                case 4: clock_.advance(std::chrono::seconds(below(20))); break;
                default: release_some(); break;
            }
            if (below(3) > 0) step();
        }
        calm_down();
    }

    [[nodiscard]] const std::string& fault() const { return fault_; }

private:
    using Held = std::map<base::TopicPartition, std::pair<base::LeaderEpoch, catalog::Holder>>;

    int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
    Reply<std::monostate> ignored() {
        return {&here_, [](Result<std::monostate>) {}};
    }
    void blame(const std::string& fault) {
        if (fault_.empty()) fault_ = fault;
    }

    void take_office() {
        if (controller_ && below(2) == 0) controller_->resign();
        controller_ = std::make_unique<Controller>(
            ControllerOptions{.clock = &clock_,
                              .config = {.balance = {.moves_under_way = 3}},
                              .push = [this](const Push& push) { see(push); }});
        auto reign = begin_reign(volume_, base::BrokerId(9), "cluster");
        ASSERT_TRUE(reign) << reign.error().context;
        editor_image_ = reign->image;
        controller_->begin(std::move(*reign));
    }
    void step() {
        controller_->step();
        controller_->step();
    }
    void create(const std::string& name, int partitions, int factor) {
        CreateTopics request;
        request.topics = {{.name = name,
                           .partitions = partitions,
                           .replication_factor = static_cast<std::int16_t>(factor)}};
        controller_->create_topics(request, {&here_, [](const auto&) {}});
    }
    /// A new life: the earlier one is marked.
    void join(int id) {
        mark(id);
        catalog::Broker broker{.id = base::BrokerId(id)};
        const base::Incarnation incarnation{base::Uuid::random()};
        broker.sessions.emplace("main", incarnation);
        alive_.insert(incarnation);
        lives_[id] = incarnation;
        controller_->register_broker(broker, ignored());
        step();
    }
    void mark(int id) {
        alive_.erase(lives_[id]);
        for (auto& [partition, held] : held_) {
            if (held.second.incarnation == lives_[id]) held.second = {};
        }
    }
    void die(int id) {
        mark(id);
        controller_->remove_broker(base::BrokerId(id), ignored());
    }
    /// Holders give up what is asked back, or all if they drain; some of it, some time.
    void release_some(bool all = false) {
        std::vector<catalog::PartitionEpoch> epochs;
        for (auto& [id, held] : held_) {
            const auto* partition = editor_image_->partition(id);
            const auto* broker = editor_image_->broker(held.second.broker);
            if (broker == nullptr || partition->leader_epoch != held.first) continue;
            if (!partition->asked_back && !broker->draining && below(40) > 0) continue;
            if (!all && below(2) == 0) continue;
            if (partition->released) continue;
            epochs.push_back({id, held.first});
            held.second = {};
        }
        // Reports that a controller took with it are made again.
        given_up_.insert(epochs.begin(), epochs.end());
        std::erase_if(given_up_, [&](const catalog::PartitionEpoch& one) {
            return !catalog::is_news(*editor_image_->partition(one.partition), one);
        });
        controller_->released({given_up_.begin(), given_up_.end()});
    }

    /// What brokers see of a push, change by change.
    void see(const Push& push) {
        catalog::ImageEditor editor(*editor_image_);
        for (const auto& change : push.changes) {
            const auto before = catalog::ImageEditor(editor.image());
            EXPECT_TRUE(editor.apply(change));
            if (std::holds_alternative<catalog::Assigned>(change) ||
                std::holds_alternative<catalog::LeadershipRenewed>(change)) {
                look_at_leaders(before.image(), editor.image());
            }
        }
        editor_image_ = std::move(editor).finish();
        editor_image_->for_each_topic([&](const catalog::Topic& topic) {
            for (std::size_t i = 0; i < topic.partitions.size(); ++i) {
                const base::PartitionId index(static_cast<std::int32_t>(i));
                take_up({topic.id, index}, topic.partitions[i]);
            }
        });
    }
    void look_at_leaders(const catalog::Image& before, const catalog::Image& now) {
        now.for_each_topic([&](const catalog::Topic& topic) {
            for (std::size_t i = 0; i < topic.partitions.size(); ++i) {
                const auto& was = before.topic(topic.id)->partitions[i];
                const auto& is = topic.partitions[i];
                if (was.leader_epoch == is.leader_epoch) continue;
                if (before.led(was)) blame("led by somebody when it was assigned");
                if (was.replicas.size() != is.replicas.size()) blame("factor has changed");
                if (std::ranges::count(is.replicas, is.leader.broker) != 1) {
                    blame("led by no replica");
                }
            }
        });
    }
    void take_up(base::TopicPartition id, const catalog::Partition& partition) {
        auto& [epoch, holder] = held_[id];
        if (partition.leader_epoch <= epoch && holder == partition.leader) return;
        if (holder != catalog::Holder{} && alive_.contains(holder.incarnation) &&
            partition.leader_epoch > epoch) {
            blame("two lead at once");
        }
        if (partition.leader_epoch > epoch || first_seen_.insert(id).second) {
            epoch = partition.leader_epoch;
            holder = alive_.contains(partition.leader.incarnation) ? partition.leader
                                                                   : catalog::Holder{};
        }
    }

    void calm_down() {
        for (int id = 1; id <= kBrokers; ++id) join(id);
        for (int turn = 0; turn < 200; ++turn) {
            release_some(true);
            step();
        }
        clock_.advance(std::chrono::seconds(10));
        for (int turn = 0; turn < 200; ++turn) {
            release_some(true);
            step();
        }
        editor_image_->for_each_topic([&](const catalog::Topic& topic) {
            for (const auto& partition : topic.partitions) {
                if (!editor_image_->led(partition)) blame("led by nobody");
            }
        });
        if (!plan_moves(*editor_image_).moves.empty()) blame("uneven, and nothing moves");
    }

    std::mt19937 random_;
    base::ManualClock clock_;
    base::InlineExecutor here_;
    storage::MemoryVolume volume_;
    catalog::ImagePtr editor_image_;
    std::unique_ptr<Controller> controller_;
    std::map<int, base::Incarnation> lives_;
    std::set<base::Incarnation> alive_;
    Held held_;
    std::set<base::TopicPartition> first_seen_;
    std::set<catalog::PartitionEpoch> given_up_;
    std::string fault_;
};

TEST(MembersSim, NeverTwoLeadersAndEvenInTheEnd) {
    base::log::configure({.level = base::log::Level::kError});
    for (unsigned seed = 1; seed <= 80; ++seed) {
        Calamities calamities(seed);
        calamities.run();
        ASSERT_EQ(calamities.fault(), "") << "seed " << seed;
    }
}

}  // namespace
}  // namespace kaas::cluster
