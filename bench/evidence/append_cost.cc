// What an append costs in CPU time, by how many partitions there are and by how long the log is.
// Prints a line of JSON a case. This looks at the storage engine from within: `append` on one
// thread, the commit thread, the journal and the checkpoints, and nothing of a broker around them.
//
//     bench_append_cost --dir <an empty directory>
#include "base/buffer.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/mutex.h"
#include "base/thread_pool.h"
#include "base/uuid.h"
#include "engine/engine.h"
#include "storage/descriptor_cache.h"
#include "storage/epoch_reader.h"
#include "storage/log_dir.h"
#include "storage/partition_log.h"
#include "storage/posix_volume.h"
#include "storage/testing_large_log.h"
#include "wire/records.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <sys/resource.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace kaas;  // NOLINT(google-build-using-namespace)
using bench::cpu_seconds;
using bench::must;
using bench::NoSession;

constexpr int kInFlight = 50;
constexpr std::size_t kValueBytes = 1000;
constexpr std::size_t kOpenFiles = 15'000;

/// At most so many appends at a time are not answered yet.
class Window {
public:
    void enter(int most) {
        base::MutexLock lock(mutex_);
        while (open_ >= most) changed_.wait(mutex_);
        ++open_;
    }
    void leave() {
        base::MutexLock lock(mutex_);
        --open_;
        changed_.notify_all();
    }
    void wait_until_empty() {
        base::MutexLock lock(mutex_);
        while (open_ > 0) changed_.wait(mutex_);
    }

private:
    base::Mutex mutex_;
    base::CondVar changed_;
    int open_ KAAS_GUARDED_BY(mutex_) = 0;
};

using Logs = std::vector<std::shared_ptr<storage::PartitionLog>>;

void append(const Logs& logs, std::size_t batches, int in_flight) {
    wire::BatchBuilder builder({});
    builder.add(base::Clock::system().wall_ms(), base::as_bytes("key"),
                base::as_bytes(std::string(kValueBytes, 'v')));
    const auto bytes = builder.build();
    base::InlineExecutor commit_thread;
    Window window;
    for (std::size_t i = 0; i < batches; ++i) {
        window.enter(in_flight);
        auto block = base::Block::allocate(bytes.size());
        std::memcpy(block->data(), bytes.data(), bytes.size());
        const base::MutableBytes view(block->data(), bytes.size());
        must(logs[i % logs.size()]->append({.frame = {std::move(block), view},
                                            .records = view,
                                            .home = &commit_thread,
                                            .done = [&](storage::Result<storage::Appended> done) {
                                                must(std::move(done));
                                                window.leave();
                                            }}));
    }
    window.wait_until_empty();
}

void measure(const std::string& directory, std::size_t partitions, std::int64_t log_gib,
             std::size_t batches) {
    auto volume = must(storage::PosixVolume::open(
        directory, {.honest_sync = true,
                    .create_root = true,
                    .metrics = nullptr,
                    .descriptors = std::make_shared<storage::DescriptorCache>(kOpenFiles)}));
    if (log_gib > 0) {
        must(storage::testing::LargeLog::make(*volume, "topic.AAAAAAAAAAAAAAAAAAAAAA/0", log_gib));
    }
    NoSession session;
    base::ThreadPool io_pool("io", 4);
    storage::LogDir log_dir(
        {.volume = volume.get(),
         .session = &session,
         .io_pool = &io_pool,
         .clock = &base::Clock::system(),
         .owner = {.broker = base::BrokerId{1}, .incarnation = {base::Uuid::random()}},
         .journal = true});
    std::vector<storage::PartitionLogOptions> options;
    for (std::size_t i = 0; i < partitions; ++i) {
        options.push_back({.log_dir = &log_dir,
                           .directory = fmt::format("topic.AAAAAAAAAAAAAAAAAAAAAA/{}", i),
                           .epoch = base::LeaderEpoch{1},
                           .earlier = storage::candidates_below(*volume, 1, 0, log_gib > 0),
                           .config = {}});
    }
    Logs logs;
    for (auto& log : storage::PartitionLog::open_together(std::move(options)))
        logs.push_back(must(std::move(log)));
    log_dir.start();
    append(logs, partitions, static_cast<int>(partitions));  // each begins its epoch
    const auto own = cpu_seconds(RUSAGE_THREAD);
    const auto all = cpu_seconds(RUSAGE_SELF);
    append(logs, batches, kInFlight);
    const auto us_a_batch = [&](double seconds) {
        return seconds * 1e6 / static_cast<double>(batches);
    };
    fmt::print(
        "{{\"partitions\":{},\"log_gib\":{},\"append_us\":{:.2f},\"all_threads_us\":{:.2f}}}\n",
        partitions, log_gib, us_a_batch(cpu_seconds(RUSAGE_THREAD) - own),
        us_a_batch(cpu_seconds(RUSAGE_SELF) - all));
    std::fflush(stdout);
    (void)storage::PartitionLog::release_together(logs, std::chrono::seconds(10));
    log_dir.stop();
    io_pool.stop();
}

}  // namespace

int main(int argc, char** argv) {
    std::string directory;
    std::size_t batches = 100'000;
    CLI::App app("What an append costs, by partitions and by the length of the log.");
    app.add_option("--dir", directory, "an empty directory; stays full")->required();
    app.add_option("--batches", batches);
    CLI11_PARSE(app, argc, argv);
    try {
        for (const std::size_t partitions : {1, 10, 100, 1'000, 10'000})
            measure(fmt::format("{}/p{}", directory, partitions), partitions, 0, batches);
        for (const std::int64_t gib : {1, 10, 100})
            measure(fmt::format("{}/g{}", directory, gib), 1, gib, batches);
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
}
