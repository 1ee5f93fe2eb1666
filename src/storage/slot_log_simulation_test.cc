// Goal: whatever happens to the owners of coordinator slots, to their hosts and to the volume, with
// the broker journal and without: what settled is there after every takeover, in order, once; what
// somebody was shown never changes or vanishes; and no line appears that nobody appended. Method:
// random histories from a seed against a simple model, as for the journal's partitions
// (`journal_crash_test.cc`): processes, hosts and the volume's machine die, single operations fail,
// owners live on as zombies, and a successor opens in the middle of one of their steps, or they go
// on in the middle of one of its. A disk that lies must be caught, or the simulation tests nothing.

#include "storage/memory_volume.h"
#include "storage/slot_log.h"
#include "storage/testing_host.h"
#include "storage/testing_seeds.h"
#include "storage/testing_session.h"
#include "storage/testing_slot.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

using testing::HostVolume;
using testing::TestingSlot;
using Values = TestingSlot::Values;

constexpr std::size_t kSlots = 3;

enum class Mutant { kNone, kDiskLosesSyncs, kDiskLosesNames };

/// One incarnation of a broker, on a host.
struct Life {
    struct Options {
        std::int32_t broker;
        bool journal;
        std::uint64_t journal_bytes;
    };
    Life(std::shared_ptr<HostVolume> on, base::Clock& clock, const Options& options)
        : host(std::move(on)),
          log_dir({.volume = host.get(),
                   .session = &session,
                   .io_pool = &executor,
                   .io_width = 1,
                   .clock = &clock,
                   .owner = {.broker = base::BrokerId{options.broker},
                             .incarnation = {base::Uuid::random()}},
                   .journal = options.journal,
                   .journal_file_bytes = options.journal_bytes,
                   .journal_entry_bytes = 400}) {}

    std::shared_ptr<HostVolume> host;
    TestingSession session;
    base::InlineExecutor executor;
    LogDir log_dir;
    std::array<std::optional<TestingSlot>, kSlots> slots;
    bool handed_over = false;  ///< to another broker, which has its slots now
    bool disturbed = false;    ///< a fault was injected: its errors prove nothing
};

/// What the coordinators' clients know of a slot.
struct Model {
    Values shown;  ///< by an answer that had settled
    std::int32_t next_epoch = 0;
    std::optional<std::int32_t> written;
};

[[nodiscard]] bool is_prefix(const Values& shorter, const Values& longer) {
    return shorter.size() <= longer.size() &&
           std::ranges::equal(shorter, std::span(longer).first(shorter.size()));
}

/// For the trace: how many, and the number of the last.
[[nodiscard]] std::string brief(const Values& values) {
    if (values.empty()) return "nothing";
    const auto& last = values.back();
    return fmt::format("{} to {}", values.size(), last.substr(0, last.find('.')));
}

class SlotHistory {
public:
    SlotHistory(std::uint64_t seed, Mutant mutant) : random_(seed) {
        testing::make_slots_parent(shared_);
        journal_bytes_ = static_cast<std::uint64_t>(pick(600, 6000));
        shared_.set_local(chance(70));
        if (mutant == Mutant::kDiskLosesSyncs) shared_.lie_about(Operation::kSync);
        if (mutant == Mutant::kDiskLosesNames) shared_.lie_about(Operation::kSyncDirectory);
        if (mutant != Mutant::kNone) shared_.lie_about(Operation::kSyncAll);
    }

    /// The first violation, if any.
    std::optional<std::string> run() {
        for (int i = 0; i < 8 && !violation_; ++i) {
            auto life = begin();
            act(*life, pick(1, 60));
            end(std::move(life));
        }
        quiet_ = true;
        if (!violation_) crash();
        if (!violation_) {
            const auto last = begin();
            for (std::size_t i = 0; i < kSlots; ++i) {
                if (!violation_ && !last->slots[i])
                    violated(fmt::format("slot {} cannot be opened in peace", i));
            }
        }
        return violation_;
    }
    [[nodiscard]] std::size_t shown() const { return models_[0].shown.size(); }
    [[nodiscard]] std::string trace() const { return fmt::format("{}", fmt::join(trace_, "\n  ")); }

private:
    [[nodiscard]] std::int64_t pick(std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution(low, high)(random_);
    }
    [[nodiscard]] bool chance(int percent) { return pick(1, 100) <= percent; }
    void violated(std::string what) {
        if (!violation_) violation_ = std::move(what);
    }
    void note(std::string what) { trace_.push_back(std::move(what)); }

    // ---- What may happen between two operations on files.

    /// `work` runs once, in the middle of a step that comes soon.
    void interrupt(std::function<void()> work) {
        interrupt_at_ = shared_.steps() + static_cast<std::uint64_t>(pick(1, 40));
        interruption_ = std::move(work);
        hook();
    }
    void hook() {
        shared_.set_hook([this](const MemoryVolume::Step& step) -> std::optional<Fault> {
            if (interruption_ && step.number >= interrupt_at_)
                std::exchange(interruption_, nullptr)();
            if (quiet_ || running_ == nullptr || !chance(1) || chance(50)) return std::nullopt;
            running_->disturbed = true;
            note(fmt::format("fault at {} {}", name_of(step.operation), step.path));
            constexpr std::array kCodes{ErrorCode::kIo, ErrorCode::kNoSpace};
            constexpr std::array kEffects{Fault::Effect::kNone, Fault::Effect::kHalf,
                                          Fault::Effect::kWhole};
            return Fault{kCodes[static_cast<std::size_t>(pick(0, 1))],
                         kEffects[static_cast<std::size_t>(pick(0, 2))]};
        });
    }
    void crash() {
        note("the volume's machine dies");
        CrashFate fate;
        if (chance(70))
            fate = {.seed = static_cast<std::uint64_t>(pick(0, 1 << 30)), .holes = chance(50)};
        shared_.crash(fate);
        host_ = nullptr;
    }

    // ---- A life.

    [[nodiscard]] std::unique_ptr<Life> begin(std::int32_t other_than = 0) {
        if (host_ == nullptr || chance(50)) host_ = std::make_shared<HostVolume>(shared_);
        const Life::Options options{
            .broker = other_than != 0 ? 3 - other_than : static_cast<std::int32_t>(pick(1, 2)),
            .journal = chance(70),
            .journal_bytes = journal_bytes_};
        auto life = std::make_unique<Life>(host_, clock_, options);
        note(fmt::format("broker {} begins, {} journal", options.broker,
                         options.journal ? "with" : "without"));
        for (std::size_t i = 0; i < kSlots; ++i) open(*life, i);
        return life;
    }

    /// Runs what a life does: faults hit it.
    template <class Work>
    auto as(Life& life, const Work& work) {
        auto* const outer = std::exchange(running_, &life);
        hook();
        struct Back {
            Life*& place;
            Life* outer;
            ~Back() { place = outer; }
        } back{running_, outer};
        return work();
    }

    void open(Life& life, std::size_t i) {
        auto& model = models_[i];
        const auto epoch = model.next_epoch++;
        auto slot = as(life, [&] {
            return TestingSlot::open(
                testing::slot_options(life.log_dir, static_cast<std::int32_t>(i), epoch,
                                      candidates_below(*life.host, epoch, model.written.value_or(0),
                                                       model.written.has_value())));
        });
        life.slots[i].reset();
        if (!slot) {
            note(fmt::format("slot {} epoch {}: {}", i, epoch, slot.error().context));
            const bool explained =
                life.session.fenced || life.handed_over || halted_ || life.disturbed;
            if (!explained || slot.error().code == ErrorCode::kCorrupt)
                violated(fmt::format("slot {} epoch {}: {}", i, epoch, slot.error().context));
            return;
        }
        if (life.session.fenced || life.handed_over) return;  // a successor came meanwhile
        note(fmt::format("slot {} epoch {} finds {}{}", i, epoch, brief(slot->values),
                         slot->log->must_write_picture() ? "" : ", settled"));
        if (!is_prefix(model.shown, slot->values)) {
            violated(fmt::format("slot {} epoch {} finds {}, and {} was shown", i, epoch,
                                 slot->values, model.shown));
        }
        life.slots[i] = std::move(*slot);
        life.slots[i]->offer_picture();
        settle(life, i);
    }

    void act(Life& life, std::int64_t turns) {
        for (; turns > 0 && !violation_; --turns) turn(life);
    }

    void turn(Life& life) {
        const auto i = static_cast<std::size_t>(pick(0, kSlots - 1));
        const auto dice = pick(1, 100);
        if (dice <= 40) {
            add(life, i);
        } else if (dice <= 55) {
            settle(life, i);
        } else if (dice <= 80) {
            as(life, [&] { return life.log_dir.run_cycle(); });
        } else if (dice <= 88) {
            clock_.advance(std::chrono::milliseconds(pick(100, 6000)));
        } else if (dice <= 90) {
            push_out(*life.host);
        } else if (life.session.fenced || life.handed_over || within_) {
            return;
        } else if (dice <= 93) {
            reopen_within_a_cycle(life, i);
        } else {
            reopen(life, i);
        }
    }

    /// Any of the writes that the host keeps, in any order: a taker elsewhere sees holes.
    void push_out(HostVolume& host) {
        const auto later = std::exchange(interruption_, nullptr);
        host.push_out(
            [&](const std::string& path) { return path.contains("/slot-") && chance(50); });
        interruption_ = later;
    }

    void add(Life& life, std::size_t i) {
        if (!life.slots[i]) return;
        auto& slot = *life.slots[i];
        for (auto n = pick(1, 3); n > 0; --n)
            slot.add(fmt::format("{}{}", next_++,
                                 std::string(static_cast<std::size_t>(pick(0, 60)), '.')));
        if (chance(5)) slot.log->begin_file(slot.picture());
        if (chance(50)) settle(life, i);
    }

    void settle(Life& life, std::size_t i) {
        if (!life.slots[i]) return;
        const auto& slot = *life.slots[i];
        slot.log->settle(life.executor, [this, i, epoch = slot.log->epoch(),
                                         values = slot.values](const Result<void>& outcome) {
            if (!outcome) return;
            auto& shown = models_[i].shown;
            note(fmt::format("slot {} epoch {} settles {}", i, epoch, brief(values)));
            if (is_prefix(shown, values)) {
                shown = values;
            } else if (!is_prefix(values, shown)) {
                violated(
                    fmt::format("slot {} epoch {} shows {} after {}", i, epoch, values, shown));
            }
        });
    }

    void note_written(Life& life, std::size_t i) {
        if (!life.slots[i] || !chance(90)) return;
        const auto written = life.slots[i]->log->written_epoch();
        if (written)
            models_[i].written = std::max(models_[i].written.value_or(0), written->value());
    }

    void release(Life& life, std::size_t i) {
        if (!life.slots[i]) return;
        as(life, [&] {
            const auto released = life.slots[i]->log->release(std::chrono::milliseconds(0));
            note(fmt::format("slot {} is released: {}", i,
                             released ? "with its last line" : released.error().context));
            return 0;
        });
        note_written(life, i);
    }

    /// A handover within one life: with a last line, or without when a cycle is still to come.
    void reopen(Life& life, std::size_t i) {
        if (chance(50)) as(life, [&] { return life.log_dir.run_cycle(); });
        release(life, i);
        if (!life.session.fenced && !life.handed_over) open(life, i);
    }

    /// Without its last line, while one of its cycles goes on: what that one still writes comes
    /// after the next epoch has read.
    void reopen_within_a_cycle(Life& life, std::size_t i) {
        within_ = true;
        add(life, i);
        settle(life, i);
        interrupt([&] {
            release(life, i);
            open(life, i);
        });
        as(life, [&] { return life.log_dir.run_cycle(); });
        interruption_ = nullptr;
        within_ = false;
    }

    // ---- Its end.

    void end(std::unique_ptr<Life> life) {
        if (violation_) return;
        switch (pick(0, 5)) {
            case 0: return stop(std::move(life));
            case 1: return die(std::move(life));
            case 2:
                host_ = nullptr;  // with all that it had not pushed out
                return die(std::move(life));
            case 3: return take_over_within_a_step(std::move(life));
            case 4: return halt(std::move(life));
            default: return go_on_within_a_step(std::move(life));
        }
    }

    void stop(std::unique_ptr<Life> life) {
        note("it stops");
        while (as(*life, [&] { return life->log_dir.run_cycle(); })) {
        }
        for (std::size_t i = 0; i < kSlots; ++i) release(*life, i);
        life->log_dir.stop();
        life.reset();
        if (chance(30)) crash();
    }

    /// The volume's machine dies in the middle of something.
    void halt(std::unique_ptr<Life> life) {
        note("it halts");
        halted_ = true;
        shared_.halt_at(shared_.steps() + static_cast<std::uint64_t>(pick(1, 60)));
        if (chance(50)) clock_.advance(std::chrono::seconds(6));
        act(*life, 20);
        for (std::size_t i = 0; i < kSlots; ++i) note_written(*life, i);
        life->session.fenced = true;
        life.reset();
        crash();
        halted_ = false;
    }

    void die(std::unique_ptr<Life> life) {
        note("it dies");
        for (std::size_t i = 0; i < kSlots; ++i) note_written(*life, i);
        // Its destructor closes the journal, as an orderly end does; a dead process does not.
        life->session.fenced = true;
        life.reset();
        if (chance(50)) crash();
    }

    /// The zombie is somewhere in a cycle, a checkpoint, a roll when it is marked and succeeded.
    void take_over_within_a_step(std::unique_ptr<Life> zombie) {
        std::unique_ptr<Life> next;
        interrupt([&] {
            if (chance(50)) {
                note("another broker comes within its step, and it lives on");
                zombie->handed_over = true;
                for (std::size_t i = 0; i < kSlots; ++i) release(*zombie, i);
                host_ = nullptr;
                next = begin(zombie->log_dir.options().owner.broker.value());
                return;
            }
            for (std::size_t i = 0; i < kSlots; ++i) note_written(*zombie, i);
            zombie->session.fenced = true;
            host_ = nullptr;
            note("a successor comes within its step");
            next = begin();
        });
        clock_.advance(std::chrono::seconds(6));
        act(*zombie, 20);
        interruption_ = nullptr;
        if (next == nullptr) return die(std::move(zombie));
        settle_both(std::move(zombie), std::move(next));
    }

    /// The zombie wakes while its successor recovers.
    void go_on_within_a_step(std::unique_ptr<Life> zombie) {
        for (std::size_t i = 0; i < kSlots; ++i) note_written(*zombie, i);
        for (std::size_t i = 0; i < kSlots && chance(80); ++i) add(*zombie, i);
        zombie->session.fenced = true;
        note("it sleeps, and is succeeded");
        interrupt([&] {
            note("it wakes");
            clock_.advance(std::chrono::seconds(6));
            act(*zombie, 10);
        });
        host_ = nullptr;
        auto next = begin();
        interruption_ = nullptr;
        settle_both(std::move(zombie), std::move(next));
    }

    void settle_both(std::unique_ptr<Life> zombie, std::unique_ptr<Life> next) {
        act(*zombie, pick(0, 10));
        act(*next, pick(0, 20));
        if (chance(50)) zombie.reset();
        die(std::move(next));
    }

    std::mt19937_64 random_;
    MemoryVolume shared_;
    base::ManualClock clock_;
    std::uint64_t journal_bytes_ = 0;
    std::shared_ptr<HostVolume> host_;
    Life* running_ = nullptr;
    std::uint64_t interrupt_at_ = 0;
    std::function<void()> interruption_;
    bool halted_ = false;
    bool within_ = false;
    bool quiet_ = false;
    std::int64_t next_ = 0;
    std::array<Model, kSlots> models_;
    std::optional<std::string> violation_;
    std::vector<std::string> trace_;
};

constexpr std::uint64_t kSeeds = 400;

TEST(SlotLogSimulation, WhatSettledIsThereOnceInOrderAndNothingElse) {
    const testing::QuietLog quiet;
    const auto seeds = testing::Seeds::from_environment(kSeeds);
    std::size_t shown = 0;
    for (auto seed = seeds.first; seed < seeds.end; ++seed) {
        SlotHistory history(seed, Mutant::kNone);
        const auto violation = history.run();
        ASSERT_FALSE(violation) << "KAAS_SEED=" << seed << ": " << *violation << "\n  "
                                << history.trace();
        shown += history.shown();
    }
    EXPECT_GT(shown, (seeds.end - seeds.first) * 5) << "too little happens to test anything";
}

TEST(SlotLogSimulation, ADiskThatLiesIsCaught) {
    const testing::QuietLog quiet;
    testing::expect_caught<SlotHistory, Mutant>(
        kSeeds,
        {{Mutant::kDiskLosesSyncs, "DiskLosesSyncs"}, {Mutant::kDiskLosesNames, "DiskLosesNames"}});
}

}  // namespace
}  // namespace kaas::storage
