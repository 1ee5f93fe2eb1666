// Goal: with the broker journal, whatever happens to brokers, their hosts and the volume, every
// acknowledged batch of every partition is there, in order, once, and what a consumer saw neither
// changes nor vanishes. Method: random histories from a seed against a simple model. Several
// partitions, small batches and such that bypass the journal, rolls, checkpoints, trims, releases
// with and without a last line; a host keeps in memory what it has not synced, and pushes some of
// it out as it likes. A process dies, a host dies, the volume's machine dies, or the owner lives on
// as a fenced zombie: its successor opens in the middle of one of the zombie's steps, or the zombie
// goes on in the middle of one of the successor's. A failing seed is in the message; run it alone
// with KAAS_SEED.

#include "storage/testing_host.h"
#include "storage/testing_log.h"
#include "storage/testing_seeds.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

using testing::HostVolume;
using testing::make_batch;
using testing::read_values;
using testing::to_append;

constexpr std::size_t kPartitions = 3;

/// One incarnation of a broker, on a host.
struct Life {
    Life(std::shared_ptr<HostVolume> on, base::Clock& clock, std::int32_t broker,
         std::uint64_t journal_bytes)
        : host(std::move(on)),
          log_dir(
              {.volume = host.get(),
               .session = &session,
               .io_pool = &executor,
               .io_width = 1,
               .clock = &clock,
               .owner = {.broker = base::BrokerId{broker}, .incarnation = {base::Uuid::random()}},
               .checkpoint_bytes = 4000,
               .journal = true,
               .journal_file_bytes = journal_bytes,
               .journal_entry_bytes = 600}) {}

    std::shared_ptr<HostVolume> host;
    TestingSession session;
    base::InlineExecutor executor;
    LogDir log_dir;
    std::array<LogPtr, kPartitions> logs;
};

/// What clients know of a partition.
struct Model {
    struct Sent {
        std::string value;
        bool acknowledged = false;
    };
    std::vector<std::unique_ptr<Sent>> sent;
    std::map<std::string, std::size_t> places;
    std::vector<std::string> seen;
    std::int32_t next_epoch = 0;
    std::optional<std::int32_t> written;
};

class JournalHistory {
public:
    explicit JournalHistory(std::uint64_t seed) : random_(seed) {
        config_.segment_bytes = static_cast<std::int32_t>(pick(500, 5000));
        config_.index_interval_bytes = static_cast<std::int32_t>(pick(0, 400));
        journal_bytes_ = static_cast<std::uint64_t>(pick(600, 6000));
        shared_.set_local(chance(70));
    }

    void run() {
        for (int i = 0; i < 8 && !failed(); ++i) {
            auto life = begin();
            act(*life, pick(1, 60));
            end(std::move(life));
        }
    }

private:
    [[nodiscard]] std::int64_t pick(std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution(low, high)(random_);
    }
    [[nodiscard]] bool chance(int percent) { return pick(1, 100) <= percent; }
    [[nodiscard]] static bool failed() { return ::testing::Test::HasFailure(); }

    /// `work` runs once, in the middle of a step that comes soon.
    void interrupt(std::function<void()> work) {
        const auto at = shared_.steps() + static_cast<std::uint64_t>(pick(1, 40));
        auto armed = std::make_shared<bool>(true);
        shared_.set_hook([=](const MemoryVolume::Step& step) -> std::optional<Fault> {
            if (step.number >= at && std::exchange(*armed, false)) {
                work();
            }
            return std::nullopt;
        });
    }

    [[nodiscard]] std::unique_ptr<Life> begin() {
        if (host_ == nullptr || chance(50)) host_ = std::make_shared<HostVolume>(shared_);
        auto life = std::make_unique<Life>(host_, clock_, static_cast<std::int32_t>(pick(1, 2)),
                                           journal_bytes_);
        for (std::size_t i = 0; i < kPartitions; ++i) open(*life, i);
        return life;
    }

    void open(Life& life, std::size_t i) {
        auto& model = models_[i];
        const auto epoch = model.next_epoch++;
        auto log = PartitionLog::open(
            {.log_dir = &life.log_dir,
             .directory = "topic.AAAAAAAAAAAAAAAAAAAAAA/" + std::to_string(i),
             .epoch = base::LeaderEpoch{epoch},
             .earlier = candidates_below(*life.host, epoch, model.written.value_or(0),
                                         model.written.has_value()),
             .config = config_});
        if (!log && life.session.fenced) return;  // a successor came meanwhile
        if (!log && halted_) return;
        ASSERT_TRUE(log) << log.error().context;
        life.logs[i] = *log;
        look(life, i);
    }

    void act(Life& life, std::int64_t turns) {
        for (; turns > 0 && !failed(); --turns) turn(life);
    }

    void turn(Life& life) {
        const auto i = static_cast<std::size_t>(pick(0, kPartitions - 1));
        const auto dice = pick(1, 100);
        if (dice <= 55) {
            send(life, i);
        } else if (dice <= 80) {
            life.log_dir.run_cycle();
        } else if (dice <= 88) {
            clock_.advance(std::chrono::milliseconds(pick(100, 6000)));
        } else if (dice <= 90) {
            push_out(*life.host);
        } else if (dice <= 93 && !life.session.fenced) {
            reopen_within_a_cycle(life, i);
        } else if (dice <= 96 && !life.session.fenced) {
            reopen(life, i);
        } else {
            look(life, i);
        }
    }

    /// The volume of the owner pushes out some of what it keeps; of logs that tell of states, all
    /// or nothing, as they are written in one piece.
    void push_out(HostVolume& host) {
        host.push_out(
            [&](const std::string& path) { return path.ends_with(".log") && chance(50); });
    }

    void send(Life& life, std::size_t i) {
        auto& model = models_[i];
        auto& log = *life.logs[i];
        const auto bytes = pick(0, 300);
        auto value =
            std::to_string(model.sent.size()) + std::string(static_cast<std::size_t>(bytes), '.');
        model.places.emplace(value, model.sent.size());
        model.sent.push_back(std::make_unique<Model::Sent>(std::move(value)));
        auto& sent = *model.sent.back();
        const auto batch = make_batch({.value = sent.value});
        const auto taken =
            log.append(to_append(batch, Acks::kAll, life.executor, [&sent](const auto& answer) {
                // The check came before; the answer may come after the mark.
                if (answer) sent.acknowledged = true;
            }));
        if (!taken) EXPECT_TRUE(log.failure()) << taken.error().context;
    }

    void look(Life& life, std::size_t i) {
        if (life.session.fenced) return;  // nobody is told to read from it
        auto& model = models_[i];
        auto& log = *life.logs[i];
        if (log.failure()) return;
        const auto values = read_values(log);
        if (life.session.fenced) return;  // within this very read
        if (!values && halted_) return;
        ASSERT_TRUE(values) << values.error().context;
        ASSERT_GE(values->size(), model.seen.size()) << "what a consumer saw vanished";
        for (std::size_t at = 0; at < model.seen.size(); ++at)
            ASSERT_EQ((*values)[at], model.seen[at]) << "at offset " << at;
        model.seen = *values;
        std::vector<bool> there(model.sent.size());
        std::size_t next = 0;
        for (const auto& value : model.seen) {
            const auto place = model.places.find(value);
            ASSERT_NE(place, model.places.end()) << value << " was never sent";
            ASSERT_GE(place->second, next) << value << " is out of order";
            next = place->second + 1;
            there[place->second] = true;
        }
        for (std::size_t at = 0; at < there.size(); ++at) {
            ASSERT_TRUE(there[at] || !model.sent[at]->acknowledged)
                << "partition " << i << ": " << model.sent[at]->value.substr(0, 20)
                << " was acknowledged";
        }
        if (log.written_epoch()) model.written = log.written_epoch()->value();
    }

    /// A handover within one life: with a last line, or without when a cycle is still to come.
    void reopen(Life& life, std::size_t i) {
        if (within_) return;
        look(life, i);
        if (chance(50)) life.log_dir.run_cycle();
        const auto log = life.logs[i];
        (void)log->release(  // NOLINT(bugprone-unused-return-value): the last line may be missing
            std::chrono::milliseconds(0));
        if (log->written_epoch()) models_[i].written = log->written_epoch()->value();
        if (!life.session.fenced) open(life, i);
    }

    /// Without its last line, while one of its cycles goes on: what that one still writes comes
    /// after the next epoch has read.
    void reopen_within_a_cycle(Life& life, std::size_t i) {
        if (within_) return;
        within_ = true;
        send(life, i);
        interrupt([&] {
            const auto log = life.logs[i];
            (void)log->release(  // NOLINT(bugprone-unused-return-value): the line is missing
                std::chrono::milliseconds(0));
            if (log->written_epoch()) models_[i].written = log->written_epoch()->value();
            open(life, i);
        });
        life.log_dir.run_cycle();
        shared_.set_hook({});
        within_ = false;
    }

    void end(std::unique_ptr<Life> life) {
        if (failed()) return;
        for (std::size_t i = 0; i < kPartitions; ++i) look(*life, i);
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
        while (life->log_dir.run_cycle()) {
        }
        for (std::size_t i = 0; i < kPartitions; ++i) {
            const auto released = life->logs[i]->release(std::chrono::milliseconds(0));
            EXPECT_TRUE(released) << released.error().context;
            note_written(*life, i);
        }
        life->log_dir.stop();
        life.reset();
        if (chance(30)) crash();
    }

    /// The volume's machine dies in the middle of something.
    void halt(std::unique_ptr<Life> life) {
        halted_ = true;
        shared_.halt_at(shared_.steps() + static_cast<std::uint64_t>(pick(1, 60)));
        if (chance(50)) clock_.advance(std::chrono::seconds(6));
        act(*life, 20);
        for (std::size_t i = 0; i < kPartitions; ++i) note_written(*life, i);
        life->session.fenced = true;
        life.reset();
        crash();
        halted_ = false;
    }

    void die(std::unique_ptr<Life> life) {
        for (std::size_t i = 0; i < kPartitions; ++i) note_written(*life, i);
        // Its destructor closes the journal, as an orderly end does; a dead process does not.
        life->session.fenced = true;
        life.reset();
        if (chance(50)) crash();
    }

    void note_written(Life& life, std::size_t i) {
        const auto& log = *life.logs[i];
        if (log.written_epoch()) models_[i].written = log.written_epoch()->value();
    }

    /// The zombie is somewhere in a cycle, a checkpoint, a trim when it is marked and succeeded.
    void take_over_within_a_step(std::unique_ptr<Life> zombie) {
        std::unique_ptr<Life> next;
        interrupt([&] {
            for (std::size_t i = 0; i < kPartitions; ++i) note_written(*zombie, i);
            zombie->session.fenced = true;
            host_ = nullptr;
            next = begin();
        });
        clock_.advance(std::chrono::seconds(6));
        act(*zombie, 20);
        shared_.set_hook({});
        if (next == nullptr) return die(std::move(zombie));
        settle(std::move(zombie), std::move(next));
    }

    /// The zombie wakes while its successor recovers.
    void go_on_within_a_step(std::unique_ptr<Life> zombie) {
        for (std::size_t i = 0; i < kPartitions; ++i) note_written(*zombie, i);
        if (chance(50)) {
            for (int i = 0; i < 5; ++i) send(*zombie, static_cast<std::size_t>(i) % kPartitions);
        }
        zombie->session.fenced = true;
        interrupt([&] {
            clock_.advance(std::chrono::seconds(6));
            act(*zombie, 10);
        });
        host_ = nullptr;
        auto next = begin();
        shared_.set_hook({});
        settle(std::move(zombie), std::move(next));
    }

    void settle(std::unique_ptr<Life> zombie, std::unique_ptr<Life> next) {
        if (failed()) return;
        act(*zombie, pick(0, 10));
        act(*next, pick(0, 10));
        if (chance(50)) zombie.reset();
        for (std::size_t i = 0; i < kPartitions && !failed(); ++i) look(*next, i);
        die(std::move(next));
    }

    void crash() {
        CrashFate fate;
        if (chance(70)) fate.seed = static_cast<std::uint64_t>(pick(0, 1 << 30));
        shared_.crash(fate);
        host_ = nullptr;
    }

    std::mt19937_64 random_;
    MemoryVolume shared_;
    base::ManualClock clock_;
    LogConfig config_;
    std::uint64_t journal_bytes_ = 0;
    std::shared_ptr<HostVolume> host_;
    bool halted_ = false;
    bool within_ = false;
    std::array<Model, kPartitions> models_;
};

TEST(JournalSimulation, NoHistoryLosesOrChangesWhatWasAcknowledgedOrSeen) {
    const testing::QuietLog quiet;
    const auto seeds = testing::Seeds::from_environment(300);
    for (auto seed = seeds.first; seed < seeds.end && !HasFailure(); ++seed) {
        SCOPED_TRACE("KAAS_SEED=" + std::to_string(seed));
        JournalHistory(seed).run();
    }
}

}  // namespace
}  // namespace kaas::storage
