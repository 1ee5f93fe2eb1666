// Goal: whatever happens to a broker, its volumes and its machine, every acknowledged batch of a
// partition is there, in order, once; what a consumer saw neither changes nor vanishes, unless it
// was deleted, or compaction may take it, and then it never comes back; the last value of a key
// stays; a producer that repeats what was not answered is told the place it has, and is never
// refused; readers of committed data get to where the first open transaction begins, exactly, and
// nothing that was aborted; a marker is there once it is acknowledged, and nothing of its
// transaction comes behind it. Method: random histories from a seed, of partitions that share one
// broker, with a journal or without, on two MemoryVolumes between which they move, each against a
// ledger. Any file operation and any session check may be the moment at which the process dies, the
// power fails, the operation fails, or another owner takes over and runs first (testing_world.h).
// Every rule that is taken away must be caught. A failure prints what happened and the seed, which
// KAAS_SEED replays. The next operation is one more row of `kActs`.

#include "base/clock.h"
#include "base/uuid.h"
#include "storage/epoch_beginning.h"
#include "storage/error.h"
#include "storage/memory_volume.h"
#include "storage/offset_map.h"
#include "storage/partition_log.h"
#include "storage/segment_move.h"
#include "storage/testing_clients.h"
#include "storage/testing_compaction.h"
#include "storage/testing_ledger.h"
#include "storage/testing_process.h"
#include "storage/testing_seeds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

/// What is taken away from the rules.
enum class Mutant { kNone, kDiskLosesSyncs, kDiskLosesNames, kNoSessionCheck };

using testing::Ledger;
using testing::Partition;
using testing::Process;

/// What happened at all, summed up: a simulation in which nothing does tests nothing.
struct Tally {
    std::size_t acknowledged = 0;
    std::size_t compactions = 0;
    std::size_t compacted_away = 0;
    std::size_t moves = 0;
    std::size_t markers = 0;
    std::size_t skipped = 0;

    Tally& operator+=(const Tally& other) {
        acknowledged += other.acknowledged;
        compactions += other.compactions;
        compacted_away += other.compacted_away;
        moves += other.moves;
        markers += other.markers;
        skipped += other.skipped;
        return *this;
    }
};

class Simulation final : testing::Clients {
public:
    Simulation(std::uint64_t seed, Mutant mutant) : Clients(seed), mutant_(mutant) {
        for (auto& volume : volumes_) {
            if (mutant == Mutant::kDiskLosesSyncs) volume.lie_about(Operation::kSync);
            if (mutant == Mutant::kDiskLosesNames) volume.lie_about(Operation::kSyncDirectory);
        }
        defers_flush_ = chance(6);
        journal_ = chance(2);
        const auto count = chance(2) ? std::size_t{1} : Process::kPartitions;
        for (std::size_t i = 0; i < count; ++i) begin_partition(i);
    }

    using World::trace;

    /// The first violation, if any.
    std::optional<std::string> run() {
        const auto acts = 60 + 30 * std::ssize(partitions_);
        for (std::ptrdiff_t i = 0; i < acts && !violation_; ++i) act();
        // Whatever is left of it, a last owner must find everything, and take what is still owed.
        calm_down();
        if (!violation_ && !defers_flush_) lose_power();
        if (!violation_) hand_over();
        if (!violation_) finish_cycles(*current_);
        for (auto& partition : partitions_) {
            for (auto& transactor : partition.transactors) {
                if (violation_ || !transactor.marker) continue;
                deliver_marker(*current_, partition, transactor);
                finish_cycles(*current_);
                if (transactor.marker)
                    violated("{} was never answered", testing::name_of(*transactor.marker));
            }
        }
        for (auto& partition : partitions_) {
            if (!violation_) look(*current_, partition);
            for (std::size_t producer = 0; Ledger::idempotent(producer); ++producer) {
                if (partition.ledger.unanswered(producer) > 0)
                    violated("producer {} was never answered", producer);
            }
        }
        return violation_;
    }

    [[nodiscard]] Tally tally() const {
        auto all = tally_;
        all.markers = markers_.size();
        all.skipped = skipped_;
        for (const auto& partition : partitions_) {
            all.acknowledged += partition.ledger.acknowledged();
            all.compacted_away += partition.ledger.gone();
        }
        return all;
    }

private:
    // ---- What may happen between two operations.

    struct Act {
        int weight;
        void (Simulation::*run)(Partition&);
    };
    void act() override {
        static constexpr Act kActs[] = {
            {34, &Simulation::send},       {22, &Simulation::cycle},
            {6, &Simulation::run_pool},    {5, &Simulation::look_at_current},
            {6, &Simulation::read_some},   {5, &Simulation::pass_time},
            {2, &Simulation::stall},       {2, &Simulation::change_owner},
            {3, &Simulation::release},     {2, &Simulation::kill_owner},
            {1, &Simulation::fail_power},  {2, &Simulation::begin_trouble},
            {4, &Simulation::wake_zombie}, {2, &Simulation::reconfigure},
            {4, &Simulation::keep_house},  {1, &Simulation::move},
            {1, &Simulation::shut_down},   {6, &Simulation::compact},
            {1, &Simulation::abandon},     {20, &Simulation::transact_at},
        };
        if (current_ == nullptr) return start();
        auto& partition =
            partitions_[static_cast<std::size_t>(pick(0, std::ssize(partitions_) - 1))];
        const auto& log = led(*current_, partition).log;
        if (log == nullptr || log->failure())
            return chance(2) ? hand_over() : open(*current_, partition);
        int weights = 0;
        for (const auto& one : kActs) weights += one.weight;
        auto draw = pick(1, weights);
        for (const auto& [weight, run] : kActs) {
            draw -= weight;
            if (draw <= 0) return (this->*run)(partition);
        }
    }

    void send(Partition& partition) { send_to(*current_, partition); }
    void send_to(Process& process, Partition& partition) {
        auto& ledger = partition.ledger;
        // Whoever still sends to a zombie would have to go on there: only a plain one does.
        const auto producer = static_cast<std::size_t>(
            pick(&process == current_ ? 0 : 2, std::int64_t{Ledger::kTransactional} - 1));
        // As clients do, too.
        if (Ledger::idempotent(producer) &&
            ledger.unanswered(producer) >= ProducerEntry::kRemembered)
            return;
        std::vector<Ledger::Filling> fillings(static_cast<std::size_t>(pick(1, 3)));
        for (auto& filling : fillings) {
            filling.key = static_cast<int>(pick(0, 5));
            if (!chance(5)) filling.bytes = static_cast<std::size_t>(pick(0, 200));
        }
        deliver(process, partition,
                ledger.issue(producer, clock_.wall_ms() + pick(-50, 50), fillings));
    }

    void transact_at(Partition& partition) {
        auto& transactors = partition.transactors;
        auto& one = transactors[static_cast<std::size_t>(pick(0, std::ssize(transactors) - 1))];
        transact(*current_, partition, one);
    }

    void cycle(Partition&) { cycle_of(*current_); }
    void cycle_of(Process& process) {
        run_cycles(process);
        for (auto& partition : partitions_) {
            auto& [log, high_watermark, disturbed] = led(process, partition);
            if (log == nullptr) continue;
            const auto now = log->view().high_watermark;
            if (now < high_watermark) violated("the high watermark went back to {}", now);
            high_watermark = now;
        }
        explain_failures(process);
    }
    /// One a log dir. False when there is nothing to do, or a cycle runs already.
    bool run_cycles(Process& process) {
        if (std::exchange(process.in_cycle, true)) return false;
        bool ran = false;
        as(process, [&] {
            for (auto& dir : process.log_dirs) {
                const auto cycle = dir.next_cycle();
                if (cycle == nullptr) continue;
                ran = true;
                for (const auto step :
                     {&CommitCycle::write, &CommitCycle::answer_written, &CommitCycle::sync,
                      &CommitCycle::confirm, &CommitCycle::settle}) {
                    ((*cycle).*step)();
                    go_on_beside(process);
                }
            }
        });
        process.in_cycle = false;
        return ran;
    }
    void run_pool(Partition&) {
        auto& process = *current_;
        as(process, [&] { process.pool.run_all(); });
    }
    void look_at_current(Partition& partition) { look(*current_, partition); }
    void pass_time(Partition&) { clock_.advance(std::chrono::milliseconds(pick(1, 6000))); }

    /// The watchdog gives up on the tickets; the producers ask again.
    void stall(Partition& partition) {
        note("the watchdog fails the tickets");
        led(*current_, partition).log->fail_stalled();
        resend(*current_, partition);
    }

    void change_owner(Partition&) { hand_over(); }
    void hand_over() override {
        fence();
        start();
    }

    void release(Partition& partition) { release_of(*current_, partition); }
    void release_of(Process& process, Partition& partition) {
        note("process {} releases log {}", number_of(process), partition.number);
        if (!chance(3)) finish_cycles(process);
        const auto log = led(process, partition).log;
        if (log == nullptr) return;
        as(process, [&] { std::ignore = log->release(std::chrono::milliseconds(0)); });
        report_written(process, partition);
        if (led(process, partition).log == log) led(process, partition).log.reset();
    }

    void abandon(Partition& partition) {
        auto& process = *current_;
        abandon_in(process, partition);
        // The journal keeps what its taker needs, however far the others come meanwhile.
        for (auto turns = pick(0, 20); turns > 0 && &process == current_; --turns) {
            auto& other = partitions_[(partition.number + 1) % partitions_.size()];
            const auto log = led(process, other).log;
            if (log == nullptr || log->failure()) break;
            send(other);
            cycle(other);
            as(process, [&] { process.pool.run_all(); });
        }
        if (current_ != nullptr && chance(2)) lose_power();
    }
    void abandon_in(Process& process, Partition& partition) {
        const auto log = std::exchange(led(process, partition).log, nullptr);
        if (log == nullptr) return;
        note("process {} abandons log {}", number_of(process), partition.number);
        log->abandon(ErrorCode::kClosed);
    }
    void reassign(Process& process) override {
        if (process.opening) return;  // it holds what the next one would wait for
        auto& partition =
            partitions_[static_cast<std::size_t>(pick(0, std::ssize(partitions_) - 1))];
        report_written(process, partition);
        abandon_in(process, partition);
        open(process, partition);
    }

    /// To the other volume, most of it copied ahead. Nobody else copies there at the same time:
    /// copies of two owners have the same names.
    void move(Partition& partition) {
        auto& process = *current_;
        const auto log = led(process, partition).log;
        auto& to = volumes_[1 - partition.volume];
        note("partition {} moves", partition.number);
        ++tally_.moves;
        Result<void> copied;
        alone_ = true;
        as(process, [&] { copied = copy(*log, to, partition.paths()); });
        alone_ = false;
        if (led(process, partition).log != log) return;
        // A segment may have left the log meanwhile; what is missing is copied in the end.
        if (!copied && copied.error().code != ErrorCode::kNotFound)
            explain(process, partition, copied.error());
        if (process.dead || process.fenced || violation_) return;
        partition.volume = 1 - partition.volume;
        release_of(process, partition);
    }
    [[nodiscard]] static Result<void> copy(const PartitionLog& log, Volume& to,
                                           const PartitionPaths& paths) {
        KAAS_TRY(make_topic_directory(to, *paths.directory));
        KAAS_TRY(make_partition_directory(to, *paths.directory));
        const auto view = log.view();
        for (const auto& span : *view.sealed)
            KAAS_TRY(copy_segment(log.log_dir().volume(), to, paths, span.facts));
        if (view.last.segment == nullptr) return {};
        return copy_segment(log.log_dir().volume(), to, paths, view.last.facts);
    }

    /// In good order, as far as it gets.
    void shut_down(Partition&) {
        auto& process = *current_;
        if (process.in_cycle) return;  // it waits for that
        for (auto& partition : partitions_) release_of(process, partition);
        note("process {} ends", number_of(process));
        as(process, [&] {
            for (auto& dir : process.log_dirs) dir.stop();
        });
        process.dead = true;
        if (&process == current_) current_ = nullptr;
    }

    void kill_owner(Partition&) { kill(); }
    void fail_power(Partition&) { lose_power(); }
    void lose_power() override {
        if (defers_flush_) {  // it would lose what was acknowledged, as in Apache
            if (current_ != nullptr) kill();
            return;
        }
        if (depth_ == 0 && chance(2)) checkpoint_often();
        if (violation_) return;
        crash_machine();
        for (auto& partition : partitions_) partition.ledger.forget_written();
    }

    /// Leaves lines in the manifest that nothing has synced, if nobody interrupts.
    void checkpoint_often() {
        auto& partition = partitions_.front();
        for (auto turns = pick(2, 6); turns > 0; --turns) {
            if (current_ == nullptr) return;
            const auto log = led(*current_, partition).log;
            if (log == nullptr || log->failure()) return;
            send(partition);
            if (current_ != nullptr) cycle(partition);
            if (current_ != nullptr) run_pool(partition);
        }
    }

    void keep_house(Partition& partition) {
        auto& process = *current_;
        const auto log = led(process, partition).log;
        if (chance(2)) as(process, [&] { log->reclaim(); });
        if (chance(2)) log->retain();
        if (chance(2)) return;
        const auto end = log->view().high_watermark;
        const base::Offset before{pick(-1, end.value())};
        note("process {} is asked to delete up to {}", number_of(process), before);
        partition.asked_start =
            std::max(partition.asked_start, before == PartitionLog::kHighWatermark ? end : before);
        log->delete_records(before, process.home,
                            [this, &process, &partition, before](Result<base::Offset> start) {
                                if (process.dead || !start) return;
                                note("log {} starts at {}", partition.number, *start);
                                if (*start < before) violated("{} is not deleted", before);
                                partition.ledger.begin_at(start->value());
                            });
    }

    void begin_trouble(Partition&) { begin_spell(); }

    void compact(Partition& partition) { compact_in(*current_, partition); }
    void compact_in(Process& process, Partition& partition) {
        if (!partition.config.compacted) return;
        // What goes unseen nobody could miss.
        const auto log = led(process, partition).log;
        look(process, partition);
        if (process.dead || led(process, partition).log != log || log->failure() ||
            partition.ledger.end() < log->view().high_watermark.value())
            return;
        note("process {} compacts log {}", number_of(process), partition.number);
        testing::TestCleaner cleaner(clock_);
        if (chance(2))  // too little for all keys at once
            cleaner.means.map_bytes_max =
                OffsetMap::kBytesPerSlot * static_cast<std::size_t>(pick(2, 8));
        cleaner.means.before_io = [&](std::uint64_t) -> Result<void> {
            go_on_beside(process);
            if (process.dead) return fail(ErrorCode::kIo, "dead");
            return {};
        };
        Result<bool> done;
        as(process, [&] { done = cleaner.run(*log); });
        if (done) tally_.compactions += *done ? 1 : 0;
        if (done || done.error().code == ErrorCode::kClosed) return;
        const bool ended = led(process, partition).log != log;
        if (!ended || done.error().code == ErrorCode::kCorrupt)
            explain(process, partition, done.error());
    }
    /// The other threads of a process that commits or compacts.
    void go_on_beside(const Process& process) {
        if (&process == current_ && depth_ < 3 && !quiet_ && !violation_ && chance(8)) act();
    }

    void wake_zombie(Partition& partition) {
        for (auto process = processes_.rbegin(); process != processes_.rend(); ++process) {
            auto& zombie = **process;
            const auto& log = led(zombie, partition).log;
            if (zombie.dead || !zombie.fenced || zombie.busy > 0 || log == nullptr) continue;
            note("process {}, a zombie, goes on", number_of(zombie));
            // A producer may not have heard of the new owner.
            if (chance(2) && !log->failure()) send_to(zombie, partition);
            if (chance(2)) as(zombie, [&] { zombie.pool.run_all(); });
            if (chance(4) && log != nullptr && !log->failure()) compact_in(zombie, partition);
            cycle_of(zombie);
            if (log != nullptr && !log->failure()) look(zombie, partition);
            return;
        }
    }
    void reconfigure(Partition& partition) {
        configure(partition);
        led(*current_, partition).log->set_config(partition.config);
    }

    void begin_partition(std::size_t number) {
        std::optional<std::int64_t> keeps_deletions_ms;
        if (chance(2)) keeps_deletions_ms = pick(0, 15'000);
        auto& partition =
            partitions_.emplace_back(Partition{.number = number, .ledger{keeps_deletions_ms}});
        for (auto i = Ledger::kTransactional; i < Ledger::kProducers; ++i)
            partition.transactors.push_back({.producer = i, .bumps = chance(2)});
        partition.config.compacted = keeps_deletions_ms.has_value();
        partition.config.delete_retention_ms = keeps_deletions_ms.value_or(0);
        configure(partition);
    }
    void configure(Partition& partition) {
        auto& config = partition.config;
        config.segment_bytes =
            static_cast<std::int32_t>(pick(900, chance(3) && !config.compacted ? 9000 : 3000));
        config.index_interval_bytes = static_cast<std::int32_t>(pick(0, 400));
        config.segment_ms = chance(4) ? pick(1000, 20'000) : LogConfig{}.segment_ms;
        config.file_delete_delay_ms = pick(0, 8000);
        config.min_compaction_lag_ms = chance(4) ? pick(0, 5000) : 0;
        config.deletes = !config.compacted || chance(4);
        config.retention_ms = chance(4) ? pick(0, 30'000) : -1;
        if (config.retention_ms >= 0 && config.deletes) partition.ages = true;
        if (!defers_flush_) return;
        config.flush_messages = pick(2, 20);
        config.flush_ms = chance(2) ? pick(100, 5000) : LogConfig::kNoLimit;
    }

    // ---- Owners.

    [[nodiscard]] bool ignores_marks() const override { return mutant_ == Mutant::kNoSessionCheck; }

    /// A new process, to which the controller assigns every partition.
    void start() {
        base::Uuid incarnation;
        for (auto& byte : incarnation.bytes) byte = static_cast<std::uint8_t>(random_());
        std::vector<LogDirOptions> dirs;
        for (auto& volume : volumes_) {
            dirs.push_back({.volume = &volume,
                            .clock = &clock_,
                            .owner = {.broker = base::BrokerId{1}, .incarnation = {incarnation}},
                            // Few, so that a manifest has lines which nothing has synced yet.
                            .checkpoint_bytes = static_cast<std::uint64_t>(pick(1, 2000)),
                            .journal = journal_,
                            .journal_file_bytes = static_cast<std::uint64_t>(pick(600, 6000)),
                            .journal_entry_bytes = static_cast<std::uint64_t>(pick(100, 900))});
        }
        processes_.push_back(std::make_unique<Process>(
            dirs, [this](const Process& process) { return confirm(process); }));
        auto& process = *processes_.back();
        current_ = &process;
        for (auto& partition : partitions_) {
            if (current_ == &process && led(process, partition).log == nullptr)
                open(process, partition);
        }
    }

    /// The controller assigns the partition anew.
    void open(Process& process, Partition& partition) {
        auto& mine = led(process, partition);
        mine = {};
        if (chance(12)) partition.volume = 1 - partition.volume;
        const auto epoch = static_cast<std::int32_t>(partition.volumes.size());
        std::vector<EpochCandidate> earlier;
        for (auto before = epoch - 1; before >= partition.written.value_or(0); --before)
            earlier.push_back(
                {.volume = &volumes_[partition.volumes[static_cast<std::size_t>(before)]],
                 .epoch = before,
                 .written = before == partition.written});
        partition.volumes.push_back(partition.volume);
        note("process {} opens epoch {} of log {} on volume {}; written is {}", number_of(process),
             epoch, partition.number, partition.volume, partition.written.value_or(-1));
        const auto checks = process.checks;
        Result<LogPtr> opened;
        const auto volume = partition.volume;
        process.opening = true;
        alone_ = std::ranges::any_of(earlier, [&](const EpochCandidate& candidate) {
            return candidate.volume != &volumes_[volume];
        });
        as(process, [&] {
            opened = PartitionLog::open({.log_dir = &process.log_dirs[volume],
                                         .directory = *partition.paths().directory,
                                         .epoch = base::LeaderEpoch{epoch},
                                         .earlier = earlier,
                                         .config = partition.config});
        });
        process.opening = alone_ = false;
        if (!opened) return explain(process, partition, opened.error());
        if (process.checks == checks) violated("epoch {} is served without a check", epoch);
        const auto log = mine.log = *opened;
        mine.high_watermark = mine.log->view().high_watermark;
        report_written(process, partition);
        if (process.dead) return;
        look(process, partition);
        if (&process == current_ && mine.log == log) resend(process, partition);
    }

    void report_written(Process& process, Partition& partition) {
        const auto& log = led(process, partition).log;
        if (process.dead || log == nullptr || chance(4)) return;
        const auto written = log->written_epoch();
        if (written && written->value() > partition.written.value_or(-1))
            partition.written = written->value();
    }

    void explain_failures(Process& process) {
        for (const auto& partition : partitions_) {
            const auto& log = led(process, partition).log;
            if (log == nullptr) continue;
            if (const auto failure = log->failure()) explain(process, partition, *failure);
        }
    }

    void finish_cycles(Process& process) {
        while (run_cycles(process)) {
        }
        explain_failures(process);
    }

    const Mutant mutant_;
    bool journal_ = false;
    std::deque<Partition> partitions_;
    Tally tally_;
};

std::string explain_seed(std::uint64_t seed) {
    Simulation again(seed, Mutant::kNone);
    again.trace.emplace();
    const auto violation = again.run();
    return fmt::format("{}\n  {}\nreplay with KAAS_SEED={}", violation.value_or("not again?"),
                       fmt::join(*again.trace, "\n  "), seed);
}

constexpr std::uint64_t kSeeds = 1000;

TEST(PartitionLogSimulation, NothingAcknowledgedIsLostAndNothingSeenChanges) {
    const testing::QuietLog quiet;
    const auto seeds = testing::Seeds::from_environment(kSeeds);
    Tally tally;
    for (auto seed = seeds.first; seed < seeds.end; ++seed) {
        Simulation simulation(seed, Mutant::kNone);
        ASSERT_FALSE(simulation.run()) << explain_seed(seed);
        tally += simulation.tally();
    }
    const auto histories = seeds.end - seeds.first;
    EXPECT_GT(tally.acknowledged, histories * 10) << "too little happens to test anything";
    EXPECT_GT(tally.compacted_away, histories) << "too little is compacted";
    EXPECT_GT(tally.compactions * 4, histories);
    EXPECT_GT(tally.moves * 4, histories);
    EXPECT_GT(tally.markers, histories) << "too few transactions end";
    EXPECT_GT(tally.skipped, histories);
}

TEST(PartitionLogSimulation, EveryMissingRuleIsCaught) {
    const testing::QuietLog quiet;
    testing::expect_caught<Simulation, Mutant>(kSeeds,
                                               {
                                                   {Mutant::kDiskLosesSyncs, "DiskLosesSyncs"},
                                                   {Mutant::kDiskLosesNames, "DiskLosesNames"},
                                                   {Mutant::kNoSessionCheck, "NoSessionCheck"},
                                               });
}

}  // namespace
}  // namespace kaas::storage
