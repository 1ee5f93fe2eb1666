// What committing coordinators' slots costs: changes of 50 slots, each settled before its client
// sends the next, through their logs' commit cycles on a real volume, fsync on. Prints a line of
// JSON a case. This looks at the storage engine from within; no broker is around it.
//
//     bench_slot_commit --dir <an empty directory>
#include "base/clock.h"
#include "base/loop.h"
#include "base/mutex.h"
#include "base/thread_pool.h"
#include "base/uuid.h"
#include "engine/engine.h"
#include "storage/log_dir.h"
#include "storage/posix_volume.h"
#include "storage/slot_log.h"

#include <CLI/CLI.hpp>
#include <boost/json/object.hpp>
#include <fmt/format.h>

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <ratio>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace kaas;  // NOLINT(google-build-using-namespace)
using bench::cpu_seconds;
using bench::must;
using bench::NoSession;
using Steady = base::Clock::Steady;

constexpr std::size_t kSlots = 50;

/// Clients that each commit an offset, wait until it has settled, and commit the next. Thread: the
/// loop's, but for `run`.
class Clients {
public:
    Clients(std::span<const std::shared_ptr<storage::SlotLog>> slots, base::Loop& loop)
        : slots_(slots), loop_(loop) {}

    void run(std::size_t clients, std::size_t commits) {
        left_ = commits;
        latencies_.reserve(commits);
        loop_.post([this, clients] {
            for (std::size_t i = 0; i < clients; ++i) commit(i);
        });
        base::MutexLock lock(mutex_);
        while (!done_) changed_.wait(mutex_);
    }
    /// In microseconds.
    [[nodiscard]] double latency(double quantile) {
        const auto at =
            static_cast<std::ptrdiff_t>(quantile * static_cast<double>(latencies_.size() - 1));
        std::nth_element(latencies_.begin(), latencies_.begin() + at, latencies_.end());
        return std::chrono::duration<double, std::micro>(latencies_[static_cast<std::size_t>(at)])
            .count();
    }

private:
    void commit(std::size_t client) {
        if (left_ == 0) return;
        --left_;
        ++open_;
        auto& slot = *slots_[client % slots_.size()];
        // As long as a line of one partition's offset is.
        slot.append(
            fmt::format(R"({{"group":"group-{}","offsets":[["topic","{}",[[{},{},-1,"",{}]]]]}})",
                        client, client, client % 10, left_, 1'700'000'000'000));
        if (slot.wants_picture()) slot.begin_file({{"groups", boost::json::object()}});
        const auto began = base::Clock::system().now();
        slot.settle(loop_, [this, client, began](storage::Result<void> outcome) {
            must(std::move(outcome));
            latencies_.push_back(base::Clock::system().now() - began);
            --open_;
            commit(client);
            if (open_ > 0) return;
            base::MutexLock lock(mutex_);
            done_ = true;
            changed_.notify_all();
        });
    }

    std::span<const std::shared_ptr<storage::SlotLog>> slots_;
    base::Loop& loop_;
    std::size_t left_ = 0;
    std::size_t open_ = 0;
    std::vector<Steady::duration> latencies_;
    base::Mutex mutex_;
    base::CondVar changed_;
    bool done_ KAAS_GUARDED_BY(mutex_) = false;
};

void measure(const std::string& directory, bool journal, std::size_t clients, std::size_t commits) {
    auto volume = must(storage::PosixVolume::open(
        directory, {.honest_sync = true, .create_root = true, .metrics = nullptr}));
    must(volume->make_directory("__cluster"));
    must(volume->make_directory("__cluster/groups"));
    NoSession session;
    base::ThreadPool io_pool("io", 4);
    storage::LogDir log_dir(
        {.volume = volume.get(),
         .session = &session,
         .io_pool = &io_pool,
         .clock = &base::Clock::system(),
         .owner = {.broker = base::BrokerId{1}, .incarnation = {base::Uuid::random()}},
         .journal = journal});
    std::vector<std::shared_ptr<storage::SlotLog>> slots;
    for (std::size_t i = 0; i < kSlots; ++i) {
        auto opened = must(storage::SlotLog::open(
            {.log_dir = &log_dir,
             .directory = fmt::format("__cluster/groups/{}", i),
             .partition = {.topic = {},
                           .partition = base::PartitionId(static_cast<std::int32_t>(i))},
             .epoch = base::LeaderEpoch{0},
             .earlier = {}}));
        slots.push_back(std::move(opened.log));
    }
    base::Loop loop("coordinators");
    log_dir.start();
    Clients(slots, loop).run(kSlots, 20 * kSlots);  // each begins its epoch, and the journal
    const auto began = base::Clock::system().now();
    const auto cpu = cpu_seconds(RUSAGE_SELF);
    Clients measured(slots, loop);
    measured.run(clients, commits);
    const auto used = cpu_seconds(RUSAGE_SELF) - cpu;
    const std::chrono::duration<double> took = base::Clock::system().now() - began;
    fmt::print(
        "{{\"journal\":{},\"slots\":{},\"clients\":{},\"commits_per_s\":{:.0f},"
        "\"settle_p50_us\":{:.0f},\"settle_p99_us\":{:.0f},\"cpu_us\":{:.1f}}}\n",
        journal, kSlots, clients, static_cast<double>(commits) / took.count(),
        measured.latency(0.5), measured.latency(0.99), used * 1e6 / static_cast<double>(commits));
    std::fflush(stdout);
    (void)storage::SlotLog::release_together(slots, std::chrono::seconds(10));
    loop.stop();
    log_dir.stop();
    io_pool.stop();
}

}  // namespace

int main(int argc, char** argv) {
    std::string directory;
    std::size_t commits = 100'000;
    CLI::App app("What it costs to commit coordinators' slots.");
    app.add_option("--dir", directory, "an empty directory; stays full")->required();
    app.add_option("--commits", commits, "with the most clients");
    CLI11_PARSE(app, argc, argv);
    try {
        for (const std::size_t clients : {1, 50, 1'000}) {
            for (const bool journal : {false, true}) {
                const auto count = clients == 1    ? commits / 50
                                   : clients == 50 ? commits / 2
                                                   : commits;
                measure(fmt::format("{}/{}-{}", directory, journal ? "journal" : "files", clients),
                        journal, clients, count);
            }
        }
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
}
