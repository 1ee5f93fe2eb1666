// Goal: whatever owners, takers, zombies, crashes and faults do to one epoch log at once, no
// acknowledged change is lost and no consumer sees a change vanish (DESIGN 6, 9). Method: a seeded
// scheduler runs owners on a MemoryVolume and interrupts each at single file operations. The log
// carries numbers; an owner acknowledges as a partition does: sync, session check, answer. Every
// rule that is taken away must be caught, or the simulation tests nothing. A failure prints the
// seed and a trace.
#include "base/result.h"
#include "storage/epoch_log.h"
#include "storage/epoch_reader.h"
#include "storage/error.h"
#include "storage/memory_volume.h"
#include "storage/session_check.h"
#include "storage/testing_seeds.h"

#include <boost/json/value_from.hpp>
#include <boost/json/value_to.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

namespace json = boost::json;
using Values = std::vector<std::int64_t>;

/// What is taken away from the rules.
enum class Mutant {
    kNone,
    kDiskLosesSyncs,
    kDiskLosesNames,
    kNoCheckBeforeAnswer,
    kNoCheckBeforeServing,
    kReadLinesCount,
    kAbsenceIsBelieved,
    kReleasedOwnerGoesOn,
};

bool is_prefix(const Values& shorter, const Values& longer) {
    return shorter.size() <= longer.size() &&
           std::equal(shorter.begin(), shorter.end(), longer.begin());
}

struct Owner final : SessionCheck {
    enum class Phase { kAssigned, kLazy, kServing, kStopped } phase = Phase::kAssigned;
    std::int32_t epoch = 0;
    bool marked = false;
    bool released = false;
    bool creation_begun = false;
    bool disturbed = false;  ///< a fault was injected: its errors prove nothing
    bool busy = false;
    std::vector<EpochCandidate> candidates;
    std::optional<EpochLog> log;
    Values state;
    std::size_t confirmed = 0;  ///< the high watermark: durable, and checked since

    Result<void> confirm() override {
        if (marked) return fail(ErrorCode::kFenced, "marked");
        return {};
    }
};

class Simulation {
public:
    Simulation(std::uint64_t seed, Mutant mutant) : random_(seed), mutant_(mutant) {
        EXPECT_TRUE(volume_.make_directory("p"));
        EXPECT_TRUE(volume_.sync_directory(""));
        if (mutant == Mutant::kDiskLosesSyncs) volume_.lie_about(Operation::kSync);
        if (mutant == Mutant::kDiskLosesNames) volume_.lie_about(Operation::kSyncDirectory);
        volume_.set_hook([this](const MemoryVolume::Step&) { return interrupt(); });
        publish();
    }

    /// The first violation, if any.
    std::optional<std::string> run() {
        for (int i = 0; i < 80 && !violation_; ++i) action();
        // Whatever is left of it, a last owner must find everything.
        quiet_ = true;
        if (!violation_) crash();
        if (!violation_) publish();
        if (!violation_) work(*owners_.back());
        return violation_;
    }
    const std::vector<std::string>& trace() const { return trace_; }
    std::size_t acknowledged() const { return acknowledged_.size(); }

private:
    bool chance(int one_in) { return random_() % static_cast<std::uint64_t>(one_in) == 0; }
    void note(const Owner& owner, std::string_view what) {
        trace_.push_back(fmt::format("{}@{} {}", std::string(depth_, ' '), owner.epoch, what));
    }
    void violated(std::string what) {
        if (!violation_) violation_ = std::move(what);
    }

    // ---- What may happen between any two file operations.

    std::optional<Fault> interrupt() {
        if (operation_crashes_ != crashes_) return Fault{};  // the process that asks is dead
        if (quiet_ || violation_) return std::nullopt;
        if (depth_ < 3 && chance(12)) action();
        if (operation_crashes_ != crashes_) return Fault{};
        if (chance(150)) return fault();
        return std::nullopt;
    }

    Fault fault() {
        constexpr ErrorCode kCodes[] = {ErrorCode::kIo, ErrorCode::kNoSpace, ErrorCode::kNotFound};
        constexpr Fault::Effect kEffects[] = {Fault::Effect::kNone, Fault::Effect::kHalf,
                                              Fault::Effect::kWhole};
        running_->disturbed = true;
        note(*running_, "is hit by a fault");
        return {kCodes[random_() % 3], kEffects[random_() % 3]};
    }

    void action() {
        if (chance(60)) return crash();
        if (chance(10)) return controller();
        Owner& owner =
            *owners_[owners_.size() - 1 - random_() % std::min<std::size_t>(owners_.size(), 3)];
        if (!owner.busy) work(owner);
    }

    void crash() {
        trace_.push_back(fmt::format("{}the machine dies", std::string(depth_, ' ')));
        ++crashes_;
        volume_.crash({.seed = random_(), .holes = chance(2)});
        for (auto& owner : owners_) {
            owner->marked = true;
            owner->phase = Owner::Phase::kStopped;
        }
    }

    // ---- The controller.

    void controller() {
        Owner& current = *owners_.back();
        if (current.marked || current.released) return publish();
        if (chance(2) && !current.busy) return release(current);
        note(current, "is marked");
        current.marked = true;
    }

    void publish() {
        auto owner = std::make_unique<Owner>();
        owner->epoch = static_cast<std::int32_t>(owners_.size());
        for (std::int32_t epoch = owner->epoch - 1; epoch >= std::max(written_, 0); --epoch) {
            // Released with nothing begun: there is nothing to close.
            if (owners_[epoch]->released && !owners_[epoch]->creation_begun) continue;
            owner->candidates.push_back(
                {.volume = &volume_, .epoch = epoch, .written = epoch == written_});
        }
        note(*owner, "is published");
        owners_.push_back(std::move(owner));
    }

    void release(Owner& owner) {
        note(owner, "releases");
        owner.released = true;
        if (owner.log) std::ignore = as_process(owner, [&] { return owner.log->release(); });
        if (mutant_ != Mutant::kReleasedOwnerGoesOn) owner.phase = Owner::Phase::kStopped;
    }

    // ---- An owner.

    /// Runs what a process does; file operations in it fail once its machine is dead.
    Result<void> as_process(Owner& owner, const std::function<Result<void>()>& work) {
        auto outer = std::pair(operation_crashes_, running_);
        operation_crashes_ = crashes_;
        running_ = &owner;
        owner.busy = true;
        ++depth_;
        Result<void> result = work();
        --depth_;
        owner.busy = false;
        std::tie(operation_crashes_, running_) = outer;
        return result;
    }

    void work(Owner& owner) {
        auto done = as_process(owner, [&]() -> Result<void> {
            switch (owner.phase) {
                case Owner::Phase::kAssigned: return take(owner);
                case Owner::Phase::kLazy: return chance(3) ? write_picture(owner) : consume(owner);
                case Owner::Phase::kServing: return chance(6) ? tidy(owner) : write(owner);
                case Owner::Phase::kStopped: return {};
            }
            return {};
        });
        if (done) return;
        note(owner, fmt::format("stops: {}", done.error().context));
        bool explained = owner.marked || owner.released || owner.disturbed;
        if (done.error().code == ErrorCode::kCorrupt || !explained) {
            violated(fmt::format("@{} got {}", owner.epoch, done.error().context));
        }
        owner.phase = Owner::Phase::kStopped;
        owner.marked = true;  // it reports, and gets a new epoch
    }

    Result<std::optional<TakenEpoch>> walk(Owner& owner) {
        if (mutant_ != Mutant::kAbsenceIsBelieved) return take_over(path_, owner.candidates);
        for (const auto& candidate : owner.candidates) {
            auto state = read_epoch(*candidate.volume, path_, candidate.epoch);
            if (state && *state) return TakenEpoch{.volume = candidate.volume, .state = **state};
        }
        return std::nullopt;
    }

    Result<void> take(Owner& owner) {
        KAAS_TRY_ASSIGN(taken, walk(owner));
        bool settled = taken && taken->state.settled();
        if (taken) owner.state = values_of(taken->state);
        note(owner, fmt::format("finds {} in @{}{}", owner.state, taken ? taken->state.epoch : -1,
                                settled ? ", settled" : ""));
        if (mutant_ == Mutant::kReadLinesCount) settled = taken.has_value();
        if (!settled || chance(2)) return write_picture(owner);
        KAAS_TRY(check_before_serving(owner));
        report_written(taken->state.epoch);
        owner.phase = Owner::Phase::kLazy;
        return serve(owner);
    }

    static Values values_of(const EpochState& state) {
        auto values = json::value_to<Values>(state.picture.at("vs"));
        for (const auto& line : state.lines) {
            if (const auto* value = line.object.if_contains("v"))
                values.push_back(value->as_int64());
        }
        return values;
    }
    static json::object picture_of(const Values& values) {
        return {{"vs", json::value(json::value_from(values))}};
    }

    Result<void> write_picture(Owner& owner) {
        owner.creation_begun = true;
        auto log = EpochLog::create(volume_, path_, owner.epoch, picture_of(owner.state),
                                    {.roll_floor_bytes = 40});
        if (!log) return std::unexpected(log.error());
        owner.log.emplace(std::move(*log));
        note(owner, "has its picture");
        KAAS_TRY(check_before_serving(owner));
        if (!chance(4)) report_written(owner.epoch);
        owner.phase = Owner::Phase::kServing;
        return serve(owner);
    }

    Result<void> check_before_serving(Owner& owner) {
        if (mutant_ == Mutant::kNoCheckBeforeServing) return {};
        return check(owner);
    }
    Result<void> check(Owner& owner) {
        if (owner.released && mutant_ != Mutant::kReleasedOwnerGoesOn) {
            return fail(ErrorCode::kClosed, "released");
        }
        return owner.confirm();
    }

    void report_written(std::int32_t epoch) { written_ = std::max(written_, epoch); }

    Result<void> serve(Owner& owner) {
        if (!is_prefix(acknowledged_, owner.state)) {
            violated(fmt::format("@{} serves {} but {} was acknowledged", owner.epoch, owner.state,
                                 acknowledged_));
        }
        owner.confirmed = owner.state.size();
        return consume(owner);
    }

    /// A consumer reads to the high watermark. A zombie's may be old, but never different.
    Result<void> consume(Owner& owner) {
        Values visible(owner.state.begin(), owner.state.begin() + owner.confirmed);
        if (is_prefix(seen_, visible)) {
            seen_ = visible;
        } else if (!is_prefix(visible, seen_)) {
            violated(fmt::format("@{} shows {} after {} was seen", owner.epoch, visible, seen_));
        }
        return {};
    }

    Result<void> write(Owner& owner) {
        for (std::uint64_t n = 1 + random_() % 3; n > 0; --n) {
            owner.state.push_back(next_++);
            KAAS_TRY(owner.log->append({{"v", owner.state.back()}}));
        }
        if (chance(4)) return {};  // the next one's sync takes them along
        bool roll = chance(3) || owner.log->wants_roll();
        note(owner, fmt::format("{} {}", roll ? "rolls" : "syncs", owner.state));
        KAAS_TRY(roll ? owner.log->roll(picture_of(owner.state)) : owner.log->sync());
        return acknowledge(owner);
    }

    Result<void> acknowledge(Owner& owner) {
        if (mutant_ != Mutant::kNoCheckBeforeAnswer) KAAS_TRY(check(owner));
        if (!is_prefix(acknowledged_, owner.state)) {
            violated(fmt::format("@{} acknowledges {} after {}", owner.epoch, owner.state,
                                 acknowledged_));
        }
        acknowledged_ = owner.state;
        owner.confirmed = owner.state.size();
        note(owner, fmt::format("acknowledges {}", owner.state));
        return consume(owner);
    }

    Result<void> tidy(Owner& owner) {
        if (owner.log->wants_synced_line()) return owner.log->append_synced();
        // Removal may fail, on a zombie's new file for one; the next attempt goes on.
        if (chance(2) || owner.epoch == 0) {
            std::ignore = owner.log->remove_superseded(owner);
            return {};
        }
        auto old = static_cast<std::int32_t>(random_() % static_cast<std::uint64_t>(owner.epoch));
        note(owner, fmt::format("removes @{}", old));
        std::ignore = remove_epoch(volume_, path_, old, owner);
        return {};
    }

    std::mt19937_64 random_;
    const Mutant mutant_;
    MemoryVolume volume_;
    const EpochLogPath path_{.directory = "p", .kind = "slot"};
    std::vector<std::unique_ptr<Owner>> owners_;
    std::int32_t written_ = -1;
    std::int64_t next_ = 0;
    Values acknowledged_;
    Values seen_;

    std::uint64_t crashes_ = 0;
    std::uint64_t operation_crashes_ = 0;  ///< of when the running process began its operation
    Owner* running_ = nullptr;
    std::size_t depth_ = 0;
    bool quiet_ = false;
    std::optional<std::string> violation_;
    std::vector<std::string> trace_;
};

constexpr std::uint64_t kSeeds = 8000;

TEST(EpochLogSimulation, NothingAcknowledgedIsLost) {
    const auto seeds = testing::Seeds::from_environment(kSeeds);
    std::size_t acknowledged = 0;
    for (auto seed = seeds.first; seed < seeds.end; ++seed) {
        Simulation simulation(seed, Mutant::kNone);
        auto violation = simulation.run();
        ASSERT_FALSE(violation) << "KAAS_SEED=" << seed << ": " << *violation << "\n  "
                                << fmt::format("{}", fmt::join(simulation.trace(), "\n  "));
        acknowledged += simulation.acknowledged();
    }
    EXPECT_GT(acknowledged, (seeds.end - seeds.first) * 5) << "too little happens to test anything";
}

TEST(EpochLogSimulation, EveryMissingRuleIsCaught) {
    testing::expect_caught<Simulation, Mutant>(
        kSeeds, {
                    {Mutant::kDiskLosesSyncs, "DiskLosesSyncs"},
                    {Mutant::kDiskLosesNames, "DiskLosesNames"},
                    {Mutant::kNoCheckBeforeAnswer, "NoCheckBeforeAnswer"},
                    {Mutant::kNoCheckBeforeServing, "NoCheckBeforeServing"},
                    {Mutant::kReadLinesCount, "ReadLinesCount"},
                    {Mutant::kAbsenceIsBelieved, "AbsenceIsBelieved"},
                    {Mutant::kReleasedOwnerGoesOn, "ReleasedOwnerGoesOn"},
                });
}

}  // namespace
}  // namespace kaas::storage
