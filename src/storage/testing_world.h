#pragma once

#include "base/clock.h"
#include "storage/error.h"
#include "storage/memory_volume.h"
#include "storage/testing_process.h"
#include "storage/testing_spell.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace kaas::storage::testing {

/// Volumes in memory, the processes on them, and all that may go wrong between two file operations:
/// what a simulation of a partition's history stands on. One seed decides everything.
///
/// Any file operation and any session check of the process that runs may be the moment at which it
/// dies, the power fails, the operation fails, another of its threads opens a partition anew, or
/// another owner takes over and runs first.
class World {
public:
    static constexpr std::size_t kVolumes = 2;

    World(const World&) = delete;
    World& operator=(const World&) = delete;
    virtual ~World() = default;

    /// What happened, for whoever wants to know before it runs.
    std::optional<std::vector<std::string>> trace;

protected:
    explicit World(std::uint64_t seed) : random_(seed), one_in_(pick(25, 400)) {
        const bool local = !chance(4);
        for (auto& volume : volumes_) {
            volume.set_local(local);
            volume.set_hook([this](const MemoryVolume::Step& step) { return at_step(step); });
        }
    }

    // ---- What the history is of.

    /// Something that happens.
    virtual void act() = 0;
    /// The owner is marked, and a new one takes over.
    virtual void hand_over() = 0;
    virtual void lose_power() = 0;
    /// The owner, which stands in a file operation, gets a partition of its own anew.
    virtual void reassign(Process& process) = 0;
    /// Whether a marked session makes no difference: a mutant.
    [[nodiscard]] virtual bool ignores_marks() const { return false; }

    // ---- Chance, and what to tell of it.

    [[nodiscard]] std::int64_t pick(std::int64_t low, std::int64_t high) {
        return low +
               static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
    }
    [[nodiscard]] bool chance(std::int64_t one_in) { return pick(1, one_in) == 1; }

    template <class... Parts>
    void note(fmt::format_string<Parts...> format, Parts&&... parts) {
        if (!trace) return;
        trace->push_back(std::string(2 * depth_, ' ') +
                         fmt::format(format, std::forward<Parts>(parts)...));
    }
    template <class... Parts>
    void violated(fmt::format_string<Parts...> format, Parts&&... parts) {
        if (violation_) return;
        violation_ = fmt::format(format, std::forward<Parts>(parts)...);
        note("VIOLATION: {}", *violation_);
    }
    void check(const std::optional<std::string>& wrong) {
        if (wrong) violated("{}", *wrong);
    }
    [[nodiscard]] std::ptrdiff_t number_of(const Process& process) const {
        return std::ranges::find(processes_, &process, &std::unique_ptr<Process>::get) -
               processes_.begin();
    }

    // ---- Processes.

    /// Runs what a process does; all that it touches is under `at_step`.
    void as(Process& process, const std::function<void()>& work) {
        if (process.dead) return;
        auto* outer = std::exchange(running_, &process);
        ++depth_;
        ++process.busy;
        work();
        --process.busy;
        --depth_;
        running_ = outer;
    }
    void fence() {
        if (current_ == nullptr) return;
        note("process {} is fenced", number_of(*current_));
        current_->fenced = true;
        current_ = nullptr;
    }
    void kill() {
        note("process {} dies", number_of(*current_));
        current_->dead = true;
        current_ = nullptr;
    }
    /// Every process dies, and with them what was not synced.
    void crash_machine() {
        note("the power fails");
        for (const auto& process : processes_) process->dead = true;
        current_ = nullptr;
        ++boots_;
        for (auto& volume : volumes_) {
            CrashFate fate;
            if (!chance(4)) fate = {.seed = random_(), .holes = chance(2)};
            volume.crash(fate);
        }
    }
    void begin_spell() {
        const auto kind = pick(1, 3);
        note("spell {} begins", kind);
        spell_ = {static_cast<Spell::Kind>(kind), pick(1, 40)};
    }
    void calm_down() {
        quiet_ = true;
        spell_ = {};
    }

    [[nodiscard]] Result<void> confirm(const Process& process) {
        interrupt();
        if (process.dead) return fail(ErrorCode::kIo, "dead");
        if (process.fenced && !ignores_marks()) return fail(ErrorCode::kFenced, "marked");
        return {};
    }

    std::mt19937_64 random_;
    std::array<MemoryVolume, kVolumes> volumes_;
    base::ManualClock clock_;
    Process* current_ = nullptr;
    std::size_t depth_ = 0;
    bool quiet_ = false;  ///< nothing goes wrong any more
    bool alone_ = false;  ///< death and faults may come, but no other owner
    std::optional<std::string> violation_;
    std::vector<std::unique_ptr<Process>> processes_;

private:
    std::optional<Fault> at_step(const MemoryVolume::Step& step) {
        if (running_ == nullptr || quiet_ || violation_) return std::nullopt;
        if (running_->dead) return Fault{};
        const auto boots = boots_;
        interrupt();
        // The last step of a killed process may have its effect; of a dead machine, nothing has.
        if (running_->dead)
            return Fault{.effect = boots == boots_ ? effect() : Fault::Effect::kNone};
        if (auto fault = spell_.strike(step.operation)) return disturb(step, *fault);
        if (!chance(4 * one_in_)) return std::nullopt;
        static constexpr ErrorCode kCodes[] = {ErrorCode::kIo, ErrorCode::kNoSpace,
                                               ErrorCode::kTooManyOpen};
        return disturb(step, {.code = kCodes[pick(0, 2)], .effect = effect()});
    }

    /// The moment before a file operation or a session check of `running_`.
    void interrupt() {
        if (quiet_ || violation_ || running_->dead || !chance(one_in_)) return;
        const bool owner = running_ == current_;
        switch (pick(0, 4)) {
            case 0:
                if (depth_ < 3) lose_power();
                return;
            case 1:
                if (owner) kill();
                return;
            case 2:
                if (owner && depth_ < 3 && !alone_) reassign(*running_);
                return;
            default:
                if (!owner || depth_ >= 3 || alone_) return;
                hand_over();
                for (auto turns = pick(0, 6); turns > 0 && !violation_; --turns) act();
        }
    }

    [[nodiscard]] Fault::Effect effect() { return static_cast<Fault::Effect>(pick(0, 2)); }

    [[nodiscard]] Fault disturb(const MemoryVolume::Step& step, Fault fault) {
        note("process {} fails to {} {}, effect {}", number_of(*running_), name_of(step.operation),
             step.path, static_cast<int>(fault.effect));
        for (auto& led : running_->led) led.disturbed = true;
        return fault;
    }

    const std::int64_t one_in_;  ///< file operations, something happens at one of so many
    Spell spell_;
    Process* running_ = nullptr;
    std::size_t boots_ = 0;
};

}  // namespace kaas::storage::testing
