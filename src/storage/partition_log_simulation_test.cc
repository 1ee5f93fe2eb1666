// Goal: whatever happens to a broker, its volume and its machine, every acknowledged batch of a
// partition is there, in order, once; what a consumer saw neither changes nor vanishes; a producer
// that repeats what was not answered is told the place it has, and is never refused; what was
// deleted stays so, and nothing else is. Method: random histories from a seed, on a MemoryVolume,
// against a ledger. Any file operation and any session check may be the moment at which the process
// dies, the power fails, the operation fails, or another owner takes over and runs first. Every
// rule that is taken away must be caught. A failure prints what happened and the seed, which
// KAAS_SEED replays. The next operation is one more row of `kActs`.

#include "base/clock.h"
#include "base/executor.h"
#include "storage/error.h"
#include "storage/log_dir.h"
#include "storage/memory_volume.h"
#include "storage/partition_log.h"
#include "storage/session_check.h"
#include "storage/testing_ledger.h"
#include "storage/testing_log.h"
#include "storage/testing_process.h"
#include "storage/testing_seeds.h"
#include "storage/testing_spell.h"
#include "wire/record_batch.h"
#include "wire/records.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

/// What is taken away from the rules.
enum class Mutant { kNone, kDiskLosesSyncs, kDiskLosesNames, kNoSessionCheck };

using testing::Ledger;
using testing::Process;
using testing::Seen;
using testing::Sent;
using testing::Spell;

class Simulation {
public:
    Simulation(std::uint64_t seed, Mutant mutant) : random_(seed), mutant_(mutant) {
        if (mutant == Mutant::kDiskLosesSyncs) volume_.lie_about(Operation::kSync);
        if (mutant == Mutant::kDiskLosesNames) volume_.lie_about(Operation::kSyncDirectory);
        volume_.set_local(!chance(4));
        volume_.set_hook([this](const MemoryVolume::Step& step) { return at_step(step); });
        one_in_ = pick(25, 400);
        defers_flush_ = chance(6);
        configure();
    }

    /// The first violation, if any.
    std::optional<std::string> run() {
        for (int i = 0; i < 90 && !violation_; ++i) act();
        // Whatever is left of it, a last owner must find everything, and take what is still owed.
        quiet_ = true;
        spell_ = {};
        if (!violation_ && !defers_flush_) lose_power();
        if (!violation_) hand_over();
        if (!violation_) finish_cycles(*current_);
        if (!violation_) look(*current_);
        for (std::size_t producer = 0; Ledger::idempotent(producer); ++producer) {
            if (ledger_.unanswered(producer) > 0)
                violated("producer {} was never answered", producer);
        }
        return violation_;
    }

    /// What happened, for whoever wants to know before it runs.
    std::optional<std::vector<std::string>> trace;

    [[nodiscard]] std::size_t acknowledged() const { return ledger_.acknowledged(); }
    /// Few, so that a manifest has lines which nothing has synced yet.
    [[nodiscard]] std::uint64_t checkpoint_bytes() {
        return static_cast<std::uint64_t>(pick(1, 2000));
    }

private:
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

    void check(const Ledger::Violation& wrong) {
        if (wrong) violated("{}", *wrong);
    }

    // ---- What may happen between two operations.

    struct Act {
        int weight;
        void (Simulation::*run)();
    };
    static constexpr int kWeights = 100;
    void act() {
        static constexpr Act kActs[] = {
            {34, &Simulation::send},       {22, &Simulation::cycle},
            {6, &Simulation::run_pool},    {5, &Simulation::look_at_current},
            {6, &Simulation::read_some},   {5, &Simulation::pass_time},
            {2, &Simulation::stall},       {2, &Simulation::hand_over},
            {3, &Simulation::release},     {2, &Simulation::kill},
            {1, &Simulation::lose_power},  {2, &Simulation::begin_spell},
            {4, &Simulation::wake_zombie}, {2, &Simulation::reconfigure},
            {4, &Simulation::keep_house},
        };
        if (current_ == nullptr || current_->log == nullptr || current_->log->failure())
            return open();
        auto draw = pick(1, kWeights);
        for (const auto& [weight, run] : kActs) {
            draw -= weight;
            if (draw <= 0) return (this->*run)();
        }
    }

    void send() { send_to(*current_); }
    void send_to(Process& process) {
        // Whoever still sends to a zombie would have to go on there: only a plain one does.
        const auto producer = static_cast<std::size_t>(
            pick(&process == current_ ? 0 : 2, std::int64_t{Ledger::kProducers} - 1));
        // As clients do, too.
        if (Ledger::idempotent(producer) &&
            ledger_.unanswered(producer) >= ProducerEntry::kRemembered)
            return;
        std::vector<std::size_t> fillings(static_cast<std::size_t>(pick(1, 3)));
        for (auto& filling : fillings) filling = static_cast<std::size_t>(pick(0, 200));
        deliver(process, ledger_.issue(producer, clock_.wall_ms() + pick(-50, 50), fillings));
    }

    void cycle() { cycle_of(*current_); }
    void cycle_of(Process& process) {
        as(process, [&] { process.log_dir.run_cycle(); });
        if (process.log == nullptr) return;
        const auto now = process.log->view().high_watermark;
        if (now < process.high_watermark) violated("the high watermark went back to {}", now);
        process.high_watermark = now;
        explain_failure(process);
    }
    void run_pool() {
        auto& process = *current_;
        as(process, [&] { process.pool.run_all(); });
    }
    void look_at_current() { look(*current_); }
    void pass_time() { clock_.advance(std::chrono::milliseconds(pick(1, 6000))); }

    /// The watchdog gives up on the tickets; the producers ask again.
    void stall() {
        note("the watchdog fails the tickets");
        current_->log->fail_stalled();
        resend(*current_);
    }

    void hand_over() {
        fence();
        open();
    }
    void fence() {
        if (current_ == nullptr) return;
        note("process {} is fenced", number_of(*current_));
        current_->fenced = true;
        current_ = nullptr;
    }

    void release() {
        auto& process = *current_;
        note("process {} releases its log", number_of(process));
        if (!chance(3)) finish_cycles(process);
        const auto log = process.log;
        if (log == nullptr) return;
        as(process, [&] { std::ignore = log->release(std::chrono::milliseconds(0)); });
        report_written(process);
        if (process.log == log) process.log.reset();
    }

    void kill() {
        note("process {} dies", number_of(*current_));
        current_->dead = true;
        current_ = nullptr;
    }

    void lose_power() {
        if (defers_flush_) {  // it would lose what was acknowledged, as in Apache
            if (current_ != nullptr) kill();
            return;
        }
        if (depth_ == 0 && chance(2)) checkpoint_often();
        if (violation_) return;
        note("the power fails");
        for (const auto& process : processes_) process->dead = true;
        current_ = nullptr;
        ++boots_;
        CrashFate fate;
        if (!chance(4)) fate = {.seed = random_(), .holes = chance(2)};
        volume_.crash(fate);
        ledger_.forget_written();
    }

    /// Leaves lines in the manifest that nothing has synced, if nobody interrupts.
    void checkpoint_often() {
        for (auto turns = pick(2, 6); turns > 0; --turns) {
            if (current_ == nullptr || current_->log == nullptr || current_->log->failure()) return;
            send();
            if (current_ != nullptr) cycle();
            if (current_ != nullptr) run_pool();
        }
    }

    void keep_house() {
        auto& process = *current_;
        const auto log = process.log;
        if (chance(2)) as(process, [&] { log->reclaim(); });
        if (chance(2)) log->retain();
        if (chance(2)) return;
        const auto end = log->view().high_watermark;
        const base::Offset before{pick(-1, end.value())};
        note("process {} is asked to delete up to {}", number_of(process), before);
        asked_start_ =
            std::max(asked_start_, before == PartitionLog::kHighWatermark ? end : before);
        log->delete_records(before, process.home,
                            [this, &process, before](Result<base::Offset> start) {
                                if (process.dead || !start) return;
                                note("the log starts at {}", *start);
                                if (*start < before) violated("{} is not deleted", before);
                                ledger_.begin_at(start->value());
                            });
    }

    void begin_spell() {
        const auto kind = pick(1, 3);
        note("spell {} begins", kind);
        spell_ = {static_cast<Spell::Kind>(kind), pick(1, 40)};
    }

    void wake_zombie() {
        for (auto process = processes_.rbegin(); process != processes_.rend(); ++process) {
            auto& zombie = **process;
            if (zombie.dead || !zombie.fenced || zombie.busy > 0 || zombie.log == nullptr) continue;
            note("process {}, a zombie, goes on", number_of(zombie));
            // A producer may not have heard of the new owner.
            if (chance(2) && !zombie.log->failure()) send_to(zombie);
            if (chance(2)) as(zombie, [&] { zombie.pool.run_all(); });
            cycle_of(zombie);
            if (zombie.log != nullptr && !zombie.log->failure()) look(zombie);
            return;
        }
    }
    void reconfigure() {
        configure();
        current_->log->set_config(config_);
    }
    void configure() {
        config_.segment_bytes = static_cast<std::int32_t>(pick(900, chance(3) ? 9000 : 3000));
        config_.index_interval_bytes = static_cast<std::int32_t>(pick(0, 400));
        config_.segment_ms = chance(4) ? pick(1000, 20'000) : LogConfig{}.segment_ms;
        config_.file_delete_delay_ms = pick(0, 8000);
        config_.retention_ms = chance(4) ? pick(0, 30'000) : -1;
        if (config_.retention_ms >= 0) ages_ = true;
        if (!defers_flush_) return;
        config_.flush_messages = pick(2, 20);
        config_.flush_ms = chance(2) ? pick(100, 5000) : LogConfig::kNoLimit;
    }

    // ---- What may happen within an operation.

    Result<void> confirm(const Process& process) {
        interrupt();
        if (process.dead) return fail(ErrorCode::kIo, "dead");
        if (process.fenced && mutant_ != Mutant::kNoSessionCheck)
            return fail(ErrorCode::kFenced, "marked");
        return {};
    }

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
        auto& process = *running_;
        const bool owner = &process == current_;
        switch (pick(0, 3)) {
            case 0:
                if (depth_ < 3) lose_power();
                return;
            case 1:
                if (owner) kill();
                return;
            default:
                if (!owner || depth_ >= 3) return;
                hand_over();
                for (auto turns = pick(0, 6); turns > 0 && !violation_; --turns) act();
        }
    }

    [[nodiscard]] Fault::Effect effect() { return static_cast<Fault::Effect>(pick(0, 2)); }

    [[nodiscard]] Fault disturb(const MemoryVolume::Step& step, Fault fault) {
        note("process {} fails to {} {}, effect {}", number_of(*running_), name_of(step.operation),
             step.path, static_cast<int>(fault.effect));
        running_->disturbed = true;
        return fault;
    }

    // ---- Owners.

    [[nodiscard]] std::ptrdiff_t number_of(const Process& process) const {
        return std::ranges::find(processes_, &process, &std::unique_ptr<Process>::get) -
               processes_.begin();
    }

    /// The controller assigns the partition: to the process that had it, or to a new one.
    void open() {
        if (current_ == nullptr || chance(2)) {
            fence();
            processes_.push_back(
                std::make_unique<Process>(volume_, clock_, checkpoint_bytes(),
                                          [this](Process& process) { return confirm(process); }));
            current_ = processes_.back().get();
        }
        auto& process = *current_;
        process.log.reset();
        process.disturbed = false;
        const auto epoch = next_epoch_++;
        note("process {} opens epoch {}; written is {}", number_of(process), epoch,
             written_.value_or(-1));
        const auto checks = process.checks;
        Result<std::shared_ptr<PartitionLog>> opened;
        as(process, [&] {
            opened =
                PartitionLog::open({.log_dir = &process.log_dir,
                                    .directory = "topic.AAAAAAAAAAAAAAAAAAAAAA/0",
                                    .epoch = base::LeaderEpoch{epoch},
                                    .earlier = candidates_below(
                                        volume_, epoch, written_.value_or(0), written_.has_value()),
                                    .config = config_});
        });
        if (!opened) return explain(process, opened.error());
        if (process.checks == checks) violated("epoch {} is served without a check", epoch);
        process.log = *opened;
        process.high_watermark = process.log->view().high_watermark;
        report_written(process);
        if (process.dead) return;
        look(process);
        if (&process == current_) resend(process);
    }

    void report_written(const Process& process) {
        if (process.dead || process.log == nullptr || chance(4)) return;
        const auto written = process.log->written_epoch();
        if (written && written->value() > written_.value_or(-1)) written_ = written->value();
    }

    /// An error needs a cause.
    void explain(const Process& process, const Error& error) {
        note("process {} gets: {}", number_of(process), error.context);
        const bool explained = process.dead || process.fenced || process.disturbed;
        if (error.code == ErrorCode::kCorrupt || !explained)
            violated("process {} got {}", number_of(process), error.context);
    }
    void explain_failure(const Process& process) {
        if (process.log == nullptr) return;
        if (const auto failure = process.log->failure()) explain(process, *failure);
    }

    void finish_cycles(Process& process) {
        as(process, [&] {
            while (process.log_dir.run_cycle()) {
            }
        });
        explain_failure(process);
    }

    // ---- Producers.

    void deliver(Process& process, Sent& batch) {
        static constexpr Acks kPlain[] = {Acks::kAll, Acks::kLeader, Acks::kNone};
        const auto acks =
            Ledger::idempotent(batch.producer) ? Acks::kAll : kPlain[batch.sequence % 3];
        const auto standing = acks == Acks::kAll && !defers_flush_ ? Sent::Standing::kDurable
                                                                   : Sent::Standing::kWritten;
        auto answered = [this, &process, &batch, standing](const Result<Appended>& answer) {
            if (process.dead || !answer) return;
            const auto offset = answer->base_offset.value();
            note("{} is acknowledged at {}", batch.name(), offset);
            check(Ledger::acknowledge(batch, offset, standing));
        };
        const auto log = process.log;
        const auto taken =
            log->append(testing::to_append(testing::bytes_of(batch), acks, process.home, answered));
        if (!taken && !log->failure())
            violated("{} was refused: {}", batch.name(), taken.error().context);
    }

    /// As a client does: what was not answered goes out again, in order. Others that the log has to
    /// remember go with it, to see that it does.
    void resend(Process& process) {
        for (std::size_t producer = 0; Ledger::idempotent(producer); ++producer) {
            for (auto* batch : ledger_.last_of(producer)) deliver(process, *batch);
        }
    }

    // ---- Consumers.

    [[nodiscard]] Result<std::vector<Seen>> read(PartitionLog& log, std::int64_t from) {
        const storage::Read request{.from = base::Offset{from},
                                    .max_bytes = static_cast<std::uint64_t>(pick(1, 2000))};
        KAAS_TRY_ASSIGN(result, log.read(request, Patience::kMayBlock));
        KAAS_TRY_ASSIGN(records, testing::records_of(result.records, site_));
        return records;
    }

    [[nodiscard]] Result<std::vector<Seen>> read_all(PartitionLog& log) {
        std::vector<Seen> all;
        for (auto from = log.view().log_start.value();;) {
            KAAS_TRY_ASSIGN(some, read(log, from));
            if (some.empty()) return all;
            from = some.back().offset + 1;
            std::ranges::move(some, std::back_inserter(all));
        }
    }

    /// A consumer reads everything.
    void look(Process& process) {
        Result<std::vector<Seen>> read;
        as(process, [&] { read = read_all(*process.log); });
        if (process.dead) return;
        if (!read) return explain(process, read.error());
        if (&process == current_) {
            const auto start = process.log->view().log_start;
            if (!ages_ && start > asked_start_) violated("nobody has deleted up to {}", start);
            if (start.value() < ledger_.start()) violated("deleted records are back at {}", start);
            ledger_.begin_at(start.value());
        }
        check(ledger_.observe(*read, &process == current_));
        if (&process == current_) search(process);
    }

    /// Part of the log, from anywhere in it.
    void read_some() {
        auto& process = *current_;
        const auto start = process.log->view().log_start.value();
        const auto from = pick(start, std::max(start, ledger_.end()));
        Result<std::vector<Seen>> some;
        as(process, [&] { some = read(*process.log, from); });
        if (process.dead) return;
        if (!some) return explain(process, some.error());
        if (some->empty()) return;
        if (some->front().offset > from || some->back().offset < from)
            violated("a read from {} gave {} to {}", from, some->front().offset,
                     some->back().offset);
        for (const auto& record : *some) check(ledger_.compare(record));
    }

    void search(Process& process) {
        if (ledger_.end() == ledger_.start()) return;
        const auto& near =
            ledger_.seen()[static_cast<std::size_t>(pick(ledger_.start(), ledger_.end() - 1))];
        const auto wanted = near.timestamp_ms + pick(-2, 2);
        Result<std::optional<OffsetAndTimestamp>> found;
        as(process,
           [&] { found = process.log->first_at_or_after(wanted, Isolation::kReadUncommitted); });
        if (process.dead) return;
        if (!found) return explain(process, found.error());
        if (&process != current_) return;  // the next owner may have deleted some meanwhile
        const auto expected = ledger_.first_at_or_after(wanted);
        const auto offset = *found ? (*found)->offset.value() : -1;
        if (offset != expected)
            violated("time {} is at {}, and not at {}", wanted, expected, offset);
    }

    std::mt19937_64 random_;
    const Mutant mutant_;
    MemoryVolume volume_;
    base::ManualClock clock_;
    base::metrics::Registry metrics_;
    wire::DecodeSite site_{metrics_, "simulation"};
    LogConfig config_;
    std::int64_t one_in_ = 0;  ///< file operations, something happens at one of so many
    bool defers_flush_ =
        false;  ///< `flush.messages` above 1: no promise but that of the page cache
    bool quiet_ = false;
    Spell spell_;
    bool ages_ = false;  ///< retention deletes, too
    base::Offset asked_start_{0};

    // The controller's.
    std::int32_t next_epoch_ = 0;
    std::optional<std::int32_t> written_;

    Ledger ledger_;
    Process* current_ = nullptr;
    Process* running_ = nullptr;
    std::size_t depth_ = 0;
    std::size_t boots_ = 0;
    std::optional<std::string> violation_;
    std::vector<std::unique_ptr<Process>> processes_;
};

std::string explain_seed(std::uint64_t seed) {
    Simulation again(seed, Mutant::kNone);
    again.trace.emplace();
    const auto violation = again.run();
    return fmt::format("{}\n  {}\nreplay with KAAS_SEED={}", violation.value_or("not again?"),
                       fmt::join(*again.trace, "\n  "), seed);
}

constexpr std::uint64_t kSeeds = 2000;

TEST(PartitionLogSimulation, NothingAcknowledgedIsLostAndNothingSeenChanges) {
    const testing::QuietLog quiet;
    const auto seeds = testing::Seeds::from_environment(kSeeds);
    std::size_t acknowledged = 0;
    for (auto seed = seeds.first; seed < seeds.end; ++seed) {
        Simulation simulation(seed, Mutant::kNone);
        ASSERT_FALSE(simulation.run()) << explain_seed(seed);
        acknowledged += simulation.acknowledged();
    }
    EXPECT_GT(acknowledged, (seeds.end - seeds.first) * 10)
        << "too little happens to test anything";
}

TEST(PartitionLogSimulation, EveryMissingRuleIsCaught) {
    const testing::QuietLog quiet;
    const std::pair<Mutant, const char*> mutants[] = {
        {Mutant::kDiskLosesSyncs, "DiskLosesSyncs"},
        {Mutant::kDiskLosesNames, "DiskLosesNames"},
        {Mutant::kNoSessionCheck, "NoSessionCheck"},
    };
    for (const auto& [mutant, name] : mutants) {
        std::uint64_t seed = 0;
        while (seed < kSeeds && !Simulation(seed, mutant).run()) ++seed;
        EXPECT_LT(seed, kSeeds) << name << " went unnoticed";
    }
}

}  // namespace
}  // namespace kaas::storage
