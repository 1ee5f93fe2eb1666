// Goal: of two controllers on one volume the stale one has no effect; what was answered stands,
// whatever dies or wakes up when; producer ids are never given twice. And a controller without one
// of the rules is caught. Method: every operation is interrupted at each of its steps on the
// volume, by another controller's reign or by a crash; then seeds that nest such interruptions at
// random. `model/elect.py` is the model behind it.

#include "base/log.h"
#include "cluster/control_world.h"
#include "storage/memory_volume.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace kaas::cluster {
namespace {

using storage::MemoryVolume;

/// Controllers end here by the thousand, and each says so.
class Quiet : public ::testing::Environment {
public:
    void SetUp() override { base::log::configure({.level = base::log::Level::kError}); }
};
const auto* const kQuiet = ::testing::AddGlobalTestEnvironment(new Quiet);

/// Runs `operation` with `interruption` at its `at`-th step on the volume. False when it has fewer
/// steps.
bool interrupted(MemoryVolume& volume, std::uint64_t at, const std::function<void()>& operation,
                 const std::function<void()>& interruption) {
    std::uint64_t left = at;
    bool reached = false;
    volume.set_hook([&](const MemoryVolume::Step&) -> std::optional<storage::Fault> {
        if (!reached && left-- == 0) {
            reached = true;
            interruption();
        }
        return std::nullopt;
    });
    operation();
    volume.set_hook(nullptr);
    return reached;
}

using Operation = std::function<void(ControlWorld&, ControlWorld::Process&)>;

/// Interrupts the operation of a reigning controller at each step by a whole reign of another one.
/// Gives the first violation.
std::string succeed_at_each_step(Mutant mutant, const Operation& operation) {
    for (std::uint64_t at = 0;; ++at) {
        ControlWorld world(mutant);
        auto old = world.elect();
        EXPECT_TRUE(world.create(*old, "before"));
        std::unique_ptr<ControlWorld::Process> next;
        const bool reached = interrupted(
            world.volume, at, [&] { operation(world, *old); },
            [&] {
                next = world.elect();
                ASSERT_NE(next, nullptr);
                world.create(*next, "during");
                world.producer_ids(*next, 5);
            });
        if (!reached) return {};
        // The old one wakes up and goes on.
        world.create(*old, "late");
        world.producer_ids(*old, 5);
        world.create(*next, "after");
        auto last = world.elect();
        EXPECT_NE(last, nullptr);
        auto fault = world.violation(*world.pushed.rbegin()->second.back());
        if (!fault.empty()) return "interrupted at step " + std::to_string(at) + ": " + fault;
    }
}

TEST(ControlSim, StaleControllerHasNoEffectWhereverItWasStopped) {
    EXPECT_EQ(succeed_at_each_step(Mutant::kNone,
                                   [](auto& world, auto& old) { world.create(old, "meanwhile"); }),
              "");
    EXPECT_EQ(succeed_at_each_step(Mutant::kNone,
                                   [](auto& world, auto& old) { world.remove(old, "before"); }),
              "");
    EXPECT_EQ(succeed_at_each_step(Mutant::kNone,
                                   [](auto& world, auto& old) { world.producer_ids(old, 7); }),
              "");
    EXPECT_EQ(
        succeed_at_each_step(Mutant::kNone, [](auto&, auto& old) { old.controller->resign(); }),
        "");
}

TEST(ControlSim, StaleCandidateEitherLosesOrKnowsAll) {
    EXPECT_EQ(succeed_at_each_step(Mutant::kNone,
                                   [](ControlWorld& world, auto&) {
                                       auto candidate = world.elect();
                                       if (candidate) world.create(*candidate, "candidate's");
                                   }),
              "");
}

TEST(ControlSim, ControllerThatDoesNotCheckIsCaught) {
    EXPECT_NE(succeed_at_each_step(Mutant::kNoCheck,
                                   [](auto& world, auto& old) { world.create(old, "meanwhile"); }),
              "");
}

TEST(ControlSim, SuccessorThatDoesNotMarkIsCaught) {
    EXPECT_NE(succeed_at_each_step(Mutant::kNoMark,
                                   [](auto& world, auto& old) { world.create(old, "meanwhile"); }),
              "");
}

TEST(ControlSim, AnswersSurviveACrashAtEachStep) {
    for (std::uint64_t at = 0;; ++at) {
        bool reached = false;
        for (std::uint64_t seed = 0; seed < 6; ++seed) {
            ControlWorld world;
            auto old = world.elect();
            ASSERT_TRUE(world.create(*old, "a"));
            const auto steps = world.volume.steps();
            world.volume.halt_at(steps + at);
            world.create(*old, "b");
            world.producer_ids(*old, 3);
            world.remove(*old, "a");
            world.create(*old, "a");
            auto candidate = world.elect();
            reached = reached || world.volume.steps() > steps + at;
            world.volume.crash(seed == 0 ? storage::CrashFate{} : storage::CrashFate{.seed = seed});
            auto next = world.elect();
            ASSERT_NE(next, nullptr) << "halted at step " << at << ", seed " << seed;
            world.producer_ids(*next, 3);
            EXPECT_TRUE(world.create(*next, "c"));
            ASSERT_EQ(world.violation(*world.pushed.rbegin()->second.back()), "")
                << "halted at step " << at << ", seed " << seed;
        }
        if (!reached) break;
    }
}

/// One step fails, and with it perhaps the reign; the process that was the controller becomes it
/// again. Every step has its turn, those of the return included.
TEST(ControlSim, AnswersSurviveAFailureAtEachStepAndTheSameProcessReignsOn) {
    using Effect = storage::Fault::Effect;
    for (const auto effect : {Effect::kNone, Effect::kHalf, Effect::kWhole}) {
        for (std::uint64_t at = 0;; ++at) {
            ControlWorld world;
            auto process = world.elect();
            ASSERT_TRUE(world.create(*process, "a"));
            std::uint64_t left = at;
            bool reached = false;
            world.volume.set_hook([&](const MemoryVolume::Step&) -> std::optional<storage::Fault> {
                if (reached || left-- != 0) return std::nullopt;
                reached = true;
                return storage::Fault{storage::ErrorCode::kNoSpace, effect};
            });
            int attempts = 0;
            const auto go_on = [&] {
                while (!process->controller->reigning() && ++attempts < 10) {
                    world.stand_again(*process);
                }
            };
            for (const std::string name : {"b", "c"}) {
                world.create(*process, name);
                process->controller->step();
                go_on();
                world.producer_ids(*process, 3);
                go_on();
                world.remove(*process, "a");
                go_on();
                process->controller->beat();
                // Failed now, whatever the fault has met: a return is among the steps.
                world.volume.fail_nth(storage::Operation::kSync, 1, {});
                world.create(*process, "unanswered-" + name);
                go_on();
                world.producer_ids(*process, 3);
                go_on();
            }
            world.volume.set_hook(nullptr);
            ASSERT_LE(attempts, 3) << "one fault costs one attempt";
            ASSERT_TRUE(world.create(*process, "d"));
            ASSERT_EQ(world.violation(*world.pushed.rbegin()->second.back()), "")
                << "step " << at << " failed";
            world.volume.crash();
            auto next = world.elect();
            ASSERT_NE(next, nullptr);
            ASSERT_EQ(world.violation(*world.pushed.rbegin()->second.back()), "")
                << "step " << at << " failed";
            if (!reached) break;
        }
    }
}

/// Processes that take turns within each other's steps, by a seed.
class Chaos {
public:
    Chaos(std::uint32_t seed, Mutant mutant) : random_(seed), world_(mutant), processes_(3) {
        world_.volume.set_hook([this](const MemoryVolume::Step&) { return maybe_interrupt(); });
    }

    std::string run() {
        for (int turn = 0; turn < 25; ++turn) {
            act(pick(processes_.size()));
            if (pick(12) == 0) crash();
        }
        world_.volume.set_hook(nullptr);
        auto last = world_.elect();
        if (!last) return "nobody can take office any more";
        return world_.violation(*world_.pushed.rbegin()->second.back());
    }

private:
    std::size_t pick(std::size_t n) {
        return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_);
    }
    std::optional<storage::Fault> maybe_interrupt() {
        if (depth_ < 3 && pick(9) == 0) {
            const auto who = pick(processes_.size());
            if (!busy_[who]) act(who);
        }
        if (pick(60) == 0) return storage::Fault{};  // an error that proves nothing
        return std::nullopt;
    }
    void act(std::size_t who) {
        ++depth_;
        busy_[who] = true;
        auto& process = processes_[who];
        if (process && !process->controller->reigning() && pick(2) == 0) {
            world_.stand_again(*process);
        } else if (!process || !process->controller->reigning()) {
            process = world_.elect();
        } else {
            const auto name = std::string(1, static_cast<char>('a' + pick(4)));
            switch (pick(3)) {
                case 0: world_.create(*process, name); break;
                case 1: remove(*process, name); break;
                default: world_.producer_ids(*process, 2);
            }
        }
        busy_[who] = false;
        --depth_;
    }
    /// Somebody may make the topic anew in the middle: then nothing is known about the name.
    void remove(ControlWorld::Process& process, const std::string& name) {
        world_.remove(process, name);
        world_.stands.erase(name);
    }
    void crash() {
        for (auto& process : processes_) process.reset();
        world_.volume.crash({.seed = random_()});
    }

    std::mt19937 random_;
    ControlWorld world_;
    std::vector<std::unique_ptr<ControlWorld::Process>> processes_;
    bool busy_[3] = {};
    int depth_ = 0;
};

TEST(ControlSim, SeedsOfNestedInterruptions) {
    for (std::uint32_t seed = 1; seed <= 60; ++seed) {
        ASSERT_EQ(Chaos(seed, Mutant::kNone).run(), "") << "seed " << seed;
    }
}

TEST(ControlSim, SeedsCatchTheMutants) {
    for (const auto mutant : {Mutant::kNoCheck, Mutant::kNoMark}) {
        bool caught = false;
        for (std::uint32_t seed = 1; seed <= 60 && !caught; ++seed) {
            caught = !Chaos(seed, mutant).run().empty();
        }
        EXPECT_TRUE(caught);
    }
}

}  // namespace
}  // namespace kaas::cluster
