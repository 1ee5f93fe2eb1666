// Goal: what a slot's host was told stands is there for every later life of the broker, in order,
// whatever dies or wakes up when; a life that was succeeded tells nobody that anything stands. And
// a broker without one of the rules is caught. Method: a controller, a slot table and real slot
// logs on one volume in memory; a life is interrupted at each of its steps there, by a crash of the
// machine or by a whole other life.

#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/uuid.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "catalog/slot.h"
#include "cluster/admin.h"
#include "cluster/control_world.h"
#include "cluster/controller.h"
#include "cluster/reign.h"
#include "cluster/session.h"
#include "cluster/slot_host.h"
#include "cluster/slot_table.h"
#include "cluster/testing_slots.h"
#include "storage/error.h"
#include "storage/log_dir.h"
#include "storage/memory_volume.h"
#include "storage/session_check.h"
#include "storage/testing_seeds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kaas::cluster {
namespace {

using storage::MemoryVolume;
using List = ListHost::List;

constexpr base::BrokerId kSelf{1};
constexpr SlotId kSlot{catalog::SlotKind::kGroup, base::PartitionId(1)};

/// What was told to stand, in order.
struct Ledger {
    List stood;

    /// What is wrong with a list that a later life found.
    [[nodiscard]] std::string fault_of(const std::optional<List>& found) const {
        if (!found) return "the slot is not served";
        auto at = found->begin();
        for (const auto& text : stood) {
            at = std::find(at, found->end(), text);
            if (at == found->end()) {
                return fmt::format("{} of {} is lost: {}", text, stood, *found);
            }
        }
        return {};
    }
};

/// A session whose next check gives no answer when a test says so: the log that asked fails.
class ShakySession final : public storage::SessionCheck {
public:
    explicit ShakySession(std::unique_ptr<Session> session) : session_(std::move(session)) {}
    storage::Result<void> confirm() override {
        if (std::exchange(lose_one, false)) {
            return storage::fail(storage::ErrorCode::kIo, "no answer");
        }
        return session_->confirm();
    }
    [[nodiscard]] const base::Incarnation& incarnation() const { return session_->incarnation(); }

    bool lose_one = false;

private:
    const std::unique_ptr<Session> session_;
};

/// One life of the only broker of a cluster. Everything of it runs on the test's thread.
class Life {
public:
    Life(storage::Volume& volume, Ledger& ledger) : volume_(volume), ledger_(ledger) {}

    /// False when it came to nothing.
    bool start() {
        if (!prepare_cluster(volume_) || !prepare_volume(volume_)) return false;
        auto reign = begin_reign(volume_, kSelf, std::nullopt);
        if (!reign) return false;
        if (const auto* before = reign->image->broker(kSelf)) {
            for (const auto& [name, incarnation] : before->sessions) {
                if (!mark_session(volume_, kSelf, incarnation)) return false;
            }
        }
        auto session = Session::open(volume_, kSelf);
        if (!session) return false;
        session_ = std::make_unique<ShakySession>(std::move(*session));
        make_table();
        controller_ = std::make_unique<Controller>(ControllerOptions{
            .config = {.slot_topics = {{kSlot.kind, {.slots = 2}}}, .slot_volume = "main"},
            .push = [this](const Push& push) { slots_->apply(push.image); }});
        controller_->begin(std::move(*reign));
        catalog::Broker self{.id = kSelf};
        self.sessions.emplace("main", session_->incarnation());
        controller_->register_broker(self, {&here_, [](Result<std::monostate>) {}});
        CreateTopics request;
        request.topics = {{.name = std::string(catalog::slot_topic(kSlot.kind))}};
        controller_->create_topics(request, {&here_, [](Result<std::vector<CreatedTopic>>) {}});
        go_on();
        started_ = true;
        return true;
    }
    [[nodiscard]] bool started() const { return started_; }
    /// Lets all that waits come to an end.
    void go_on() {
        for (int round = 0; round < 4; ++round) {
            controller_->step();
            while (logs_->run_cycle()) {
            }
            clock_.advance(std::chrono::seconds(1));
            slots_->tick();
        }
    }
    void add(const std::string& text) {
        host_.add(kSlot, text, [this, text](bool durable) {
            if (durable) ledger_.stood.push_back(text);
        });
        go_on();
    }
    void lose_one_check() { session_->lose_one = true; }
    void end() {
        slots_->close(std::chrono::milliseconds(0));
        controller_->resign();
    }
    [[nodiscard]] std::optional<List> list() const { return host_.list(kSlot); }

private:
    void make_table() {
        logs_ = std::make_unique<storage::LogDir>(
            storage::LogDirOptions{.name = "main",
                                   .volume = &volume_,
                                   .session = session_.get(),
                                   .io_pool = &here_,
                                   .io_width = 1,
                                   .clock = &clock_,
                                   .owner = {kSelf, session_->incarnation()}});
        SlotTable::Options options{
            .self = kSelf,
            .places = {{"main", {&volume_, logs_.get(), session_->incarnation()}}},
            .host = &host_,
            .io_pool = &here_,
            .clock = &clock_,
            .reports = {},
            .release_patience = std::chrono::milliseconds(0)};
        options.reports.applied = [this](catalog::ImageVersion version) {
            controller_->applied(kSelf, version);
        };
        options.reports.opened = [this](std::vector<catalog::OpenedEpoch> epochs) {
            controller_->opened(std::move(epochs));
        };
        options.reports.released = [this](std::vector<catalog::PartitionEpoch> epochs) {
            controller_->released(std::move(epochs));
        };
        slots_ = std::make_unique<SlotTable>(std::move(options));
    }

    storage::Volume& volume_;
    Ledger& ledger_;
    bool started_ = false;
    base::ManualClock clock_;
    base::InlineExecutor here_;
    ListHost host_{here_};
    std::unique_ptr<ShakySession> session_;
    std::unique_ptr<storage::LogDir> logs_;
    std::unique_ptr<SlotTable> slots_;
    std::unique_ptr<Controller> controller_;
};

/// What every interrupted life does: a failed log among it, and a clean end.
void live(Life& life) {
    if (!life.start()) return;
    life.add("a");
    life.add("b");
    life.lose_one_check();
    life.add("nobody can say");
    life.go_on();
    life.add("c");
    life.end();
}

/// A life that finds what stood, and adds to it. Gives what is wrong.
std::string look_and_add(storage::Volume& volume, Ledger& ledger, const std::string& text) {
    Life life(volume, ledger);
    if (!life.start()) return "it does not start";
    life.go_on();  // a log may fail once more, and come back
    if (auto fault = ledger.fault_of(life.list()); !fault.empty()) return fault;
    life.add(text);
    if (ledger.stood.empty() || ledger.stood.back() != text) return text + " does not stand";
    life.end();
    return {};
}

class SlotSim : public ::testing::Test {
    storage::testing::QuietLog quiet_;
};

TEST_F(SlotSim, WhatStoodSurvivesACrashAtEachStep) {
    for (std::uint64_t fate = 0; fate < 4; ++fate) {
        for (std::uint64_t at = 0;; ++at) {
            MemoryVolume volume;
            Ledger ledger;
            auto life = std::make_unique<Life>(volume, ledger);
            volume.halt_at(at);
            live(*life);
            const bool reached = volume.steps() > at;
            life.reset();
            volume.crash({.seed = fate == 0 ? std::nullopt : std::optional(fate * 1'000 + at)});
            const auto replay = fmt::format("crash at step {}, fate {}", at, fate);
            ASSERT_EQ(look_and_add(volume, ledger, "second"), "") << replay;
            ASSERT_EQ(look_and_add(volume, ledger, "third"), "") << replay;
            if (!reached) break;
        }
    }
}

/// Interrupts a life at each of its steps by a whole other one, then lets it go on. Gives the first
/// thing that is wrong.
std::string succeed_at_each_step(Mutant mutant) {
    for (std::uint64_t at = 0;; ++at) {
        MemoryVolume volume;
        MutantVolume seen(volume, mutant);
        Ledger ledger;
        Life old(seen, ledger);
        std::string fault;
        std::optional<std::size_t> stood_before;  ///< set: the old life was at work by then
        std::uint64_t left = at;
        bool reached = false;
        volume.set_hook([&](const MemoryVolume::Step&) -> std::optional<storage::Fault> {
            if (!reached && left-- == 0) {
                reached = true;
                fault = look_and_add(seen, ledger, "successor");
                if (old.started()) stood_before = ledger.stood.size();
            }
            return std::nullopt;
        });
        live(old);
        volume.set_hook(nullptr);
        if (fault.empty() && stood_before && ledger.stood.size() > *stood_before)
            fault = "a life that was succeeded said that something stands";
        if (fault.empty()) fault = look_and_add(seen, ledger, "last");
        if (!fault.empty()) return fmt::format("succeeded at step {}: {}", at, fault);
        if (!reached) return {};
    }
}

TEST_F(SlotSim, ALifeThatWasSucceededTellsNobodyThatAnythingStands) {
    EXPECT_EQ(succeed_at_each_step(Mutant::kNone), "");
}

TEST_F(SlotSim, ALifeThatDoesNotCheckIsCaught) {
    EXPECT_NE(succeed_at_each_step(Mutant::kNoCheck), "");
}

TEST_F(SlotSim, ASuccessorThatDoesNotMarkIsCaught) {
    EXPECT_NE(succeed_at_each_step(Mutant::kNoMark), "");
}

}  // namespace
}  // namespace kaas::cluster
