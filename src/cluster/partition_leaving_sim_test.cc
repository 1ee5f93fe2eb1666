// Goal: whatever is asked back, lost and said late, in whatever order, nothing is served or
// acknowledged under an epoch that was reported as released, nothing is reported of a dead life,
// nothing that was acknowledged is lost, and in the end every release is heard of and everything is
// served again. Method: random histories by printed seed, of one table whose reports and
// images come late or never, over several lives on its volume.

#include "base/executor.h"
#include "base/ids.h"
#include "base/uuid.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/partition_table.h"
#include "cluster/partition_table_fixture.h"
#include "storage/log_view.h"
#include "storage/partition_log.h"
#include "storage/testing_log.h"
#include "storage/testing_seeds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace kaas::cluster {
namespace {

using namespace std::chrono_literals;

class Leaving : public PartitionTableTest {
public:
    explicit Leaving(std::uint64_t seed) : random_(seed) {
        topic_.partitions.assign(kPartitions, topic_.partitions.front());
        change(catalog::TopicCreated{topic_});
        for (std::size_t i = 0; i < kPartitions; ++i) of_[i].given[0] = incarnation_;
        on_released = [this](const auto& epochs) {
            for (const auto& one : epochs) reported(one);
        };
        push();
    }
    void TestBody() override {}

    void run(int steps) {
        for (int i = 0; i < steps && !HasFailure(); ++i) {
            step();
            for (std::size_t p = 0; p < kPartitions; ++p) check(p);
        }
        settle();
        pool_.run_all();
    }

private:
    static constexpr std::size_t kPartitions = 3;
    struct Known {
        std::map<int, base::Incarnation> given;  ///< by epoch
        int reported = -1;                       ///< the newest epoch that was released
        std::int64_t acknowledged = 0;           ///< offsets below stand
    };

    int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
    std::size_t any() { return static_cast<std::size_t>(below(kPartitions)); }
    base::TopicPartition id(std::size_t p) const {
        return {topic_.id, base::PartitionId(static_cast<std::int32_t>(p))};
    }
    const catalog::Partition& known(std::size_t p) { return *image_->partition(id(p)); }
    Hosted hosted(std::size_t p) { return new_reader().find(topic_.id, id(p).partition); }

    void step() {
        switch (below(12)) {
            case 0: return ask_back(any());
            case 1: hear(); return;
            case 2: return released_.clear();  // they got lost
            case 3: return assign_next(any());
            case 4: return below(4) == 0 ? live_again() : push();
            case 5:
                std::ignore = table_->apply(
                    seen_[static_cast<std::size_t>(below(static_cast<int>(seen_.size())))]);
                return;
            case 6: return pool_.run_all();
            case 7: return commit();
            case 8: clock_.advance(300ms); return table_->tick();
            case 9: return push();
            default: return append_to(any());
        }
    }
    void settle() {
        for (int round = 0; round < 20; ++round) {
            push();
            pool_.run_all();
            for (auto& life : lives_) life->commit_all();
            broker_.commit_all();
            clock_.advance(1s);
            table_->tick();
            while (hear()) {
            }
            for (std::size_t p = 0; p < kPartitions; ++p) {
                if (may_assign(p)) assign_to(p, mine());
            }
        }
        for (std::size_t p = 0; p < kPartitions; ++p) {
            const auto found = hosted(p);
            ASSERT_EQ(found.state, Hosting::kServing) << p;
            const auto end = found.log->latest(storage::Isolation::kReadUncommitted)->offset;
            EXPECT_GE(end.value(), of_[p].acknowledged) << "of " << p;
        }
    }

    void ask_back(std::size_t p) {
        if (known(p).released) return;
        changed(catalog::AskedBack{{{id(p), known(p).leader_epoch}}});
        // Another broker does at once what it is asked for.
        if (known(p).leader.broker != base::BrokerId(1))
            changed(catalog::Released{{{id(p), known(p).leader_epoch}}});
    }
    /// The controller hears of one report; false when there is none.
    bool hear() {
        if (released_.empty()) return false;
        const auto one =
            released_[static_cast<std::size_t>(below(static_cast<int>(released_.size())))];
        std::erase(released_, one);
        changed(catalog::Released{{one}});
        return true;
    }
    bool may_assign(std::size_t p) {
        return known(p).released || known(p).leader.broker != base::BrokerId(1) ||
               known(p).leader.incarnation != incarnation_;
    }
    void assign_next(std::size_t p) {
        if (!may_assign(p)) return;
        assign_to(
            p, below(3) > 0 ? mine() : catalog::Holder{base::BrokerId(2), {base::Uuid::random()}});
    }
    void assign_to(std::size_t p, catalog::Holder to) {
        if (known(p).leader.broker == to.broker && !may_assign(p)) return;
        const auto epoch = known(p).leader_epoch + 1;
        if (to.broker == base::BrokerId(1)) of_[p].given[epoch.value()] = to.incarnation;
        changed(catalog::Assigned{{{id(p), {to.broker}, to, epoch, "main"}}});
    }
    void live_again() {
        now().session.fenced = true;
        lives_.push_back(std::make_unique<storage::testing::Broker>(volume_, clock_));
        incarnation_ = {base::Uuid::random()};
        table_->replace_place("main", {&volume_, &now().log_dir, incarnation_});
        catalog::Broker self{.id = base::BrokerId(1)};
        self.sessions.emplace("main", incarnation_);
        changed(catalog::BrokerRegistered{self});
    }
    storage::testing::Broker& now() { return lives_.empty() ? broker_ : *lives_.back(); }
    void commit() {
        auto& life =
            lives_.empty() || below(3) == 0
                ? broker_
                : *lives_[static_cast<std::size_t>(below(static_cast<int>(lives_.size())))];
        life.commit_all();
    }
    void append_to(std::size_t p) {
        const auto found = hosted(p);
        if (found.state != Hosting::kServing) return;
        const auto epoch = found.log->epoch().value();
        const auto batch = storage::testing::make_batch({});
        std::ignore = found.log->append(storage::testing::to_append(
            batch, storage::Acks::kAll, here_,
            [this, p, epoch, life = incarnation_](storage::Result<storage::Appended> result) {
                if (!result) return;
                auto& one = of_[p];
                EXPECT_GT(epoch, one.reported) << "acknowledged after its release";
                EXPECT_EQ(life, incarnation_) << "acknowledged by a dead life";
                one.acknowledged = std::max(one.acknowledged, result->base_offset.value() + 1);
            }));
    }
    void changed(const catalog::Change& what) {
        change(what);
        seen_.push_back(image_);
        if (below(2) == 0) push();
    }

    void reported(const catalog::PartitionEpoch& released) {
        auto& one = of_[static_cast<std::size_t>(released.partition.partition.value())];
        one.reported = std::max(one.reported, released.epoch.value());
        EXPECT_EQ(one.given[released.epoch.value()], incarnation_) << "of a dead life";
    }
    void check(std::size_t p) {
        const auto found = hosted(p);
        if (found.state != Hosting::kServing) return;
        const auto epoch = found.log->epoch().value();
        EXPECT_GT(epoch, of_[p].reported) << "served after its release";
        EXPECT_EQ(of_[p].given[epoch], incarnation_) << "served for a dead life";
    }

    std::mt19937_64 random_;
    base::InlineExecutor here_;
    std::vector<std::unique_ptr<storage::testing::Broker>> lives_;
    std::vector<catalog::ImagePtr> seen_{image_};
    std::array<Known, kPartitions> of_{};
};

TEST(PartitionLeavingSimulation, NothingIsServedAfterItsReleaseAndNothingIsLost) {
    const storage::testing::QuietLog quiet;
    const auto seeds = storage::testing::Seeds::from_environment(200);
    for (auto seed = seeds.first; seed < seeds.end; ++seed) {
        SCOPED_TRACE("KAAS_SEED=" + std::to_string(seed));
        Leaving(seed).run(300);
        if (::testing::Test::HasFailure()) return;
    }
}

}  // namespace
}  // namespace kaas::cluster
