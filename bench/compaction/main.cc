// How fast one thread compacts: fills a log on a real directory, compacts it once, and prints one
// line of JSON. This looks at a part of the broker from within, so that nothing else is in the
// figure.
#include "base/buffer.h"
#include "base/clock.h"
#include "base/executor.h"
#include "engine/engine.h"
#include "storage/log_cleaner.h"
#include "storage/log_dir.h"
#include "storage/partition_log.h"
#include "storage/posix_volume.h"
#include "wire/compression.h"
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
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace kaas;  // NOLINT(google-build-using-namespace)
using bench::cpu_seconds;
using bench::must;
using bench::NoSession;

struct Workload {
    std::string directory;
    std::size_t input_mb = 200;
    std::size_t value_bytes = 100;
    std::size_t records_per_batch = 100;
    std::uint64_t keys = 100'000;
    wire::Compression codec = wire::Compression::kNone;
};

/// Gives batches of random keys, as a producer would send them.
class Producer {
public:
    explicit Producer(const Workload& workload) : workload_(workload) {
        // Half random, half the same: packs about two to one.
        value_.resize(workload.value_bytes);
        for (std::size_t i = 0; i < value_.size() / 2; ++i)
            value_[i] = static_cast<std::byte>(random_());
    }

    [[nodiscard]] std::vector<std::byte> batch() {
        wire::BatchBuilder builder({.compression = workload_.codec});
        for (std::size_t i = 0; i < workload_.records_per_batch; ++i) {
            const auto key = fmt::format("key-{:012}", random_() % workload_.keys);
            builder.add(base::Clock::system().wall_ms(), base::as_bytes(key),
                        base::ByteView(value_));
            raw_bytes_ += key.size() + value_.size() + 10;
        }
        return builder.build();
    }
    [[nodiscard]] std::uint64_t raw_bytes() const { return raw_bytes_; }

private:
    const Workload& workload_;
    std::mt19937_64 random_{1};
    std::vector<std::byte> value_;
    std::uint64_t raw_bytes_ = 0;
};

void append(storage::PartitionLog& log, const std::vector<std::byte>& bytes) {
    auto block = base::Block::allocate(bytes.size());
    std::memcpy(block->data(), bytes.data(), bytes.size());
    const base::MutableBytes view(block->data(), bytes.size());
    must(log.append({.frame = {std::move(block), view},
                     .records = view,
                     .acks = storage::Acks::kNone,
                     .done = {}}));
}

void run(const Workload& workload) {
    auto volume = must(storage::PosixVolume::open(
        workload.directory, {.honest_sync = true, .create_root = true, .metrics = nullptr}));
    NoSession session;
    base::InlineExecutor inline_executor;
    storage::LogDir log_dir(
        {.volume = volume.get(),
         .session = &session,
         .io_pool = &inline_executor,
         .clock = &base::Clock::system(),
         .owner = {.broker = base::BrokerId{1}, .incarnation = {base::Uuid::random()}}});
    storage::LogConfig config;
    config.compacted = true;
    config.segment_bytes = 64 << 20;
    config.flush_messages = storage::LogConfig::kNoLimit;
    const auto log =
        must(storage::PartitionLog::open({.log_dir = &log_dir,
                                          .directory = "bench.AAAAAAAAAAAAAAAAAAAAAA/0",
                                          .epoch = base::LeaderEpoch{0},
                                          .earlier = {},
                                          .config = config}));
    Producer producer(workload);
    while (producer.raw_bytes() < workload.input_mb * 1'000'000) {
        for (int i = 0; i < 50; ++i) append(*log, producer.batch());
        while (log_dir.run_cycle()) {
        }
    }
    base::metrics::Registry metrics;
    storage::LogCleaner cleaner({.config = {},
                                 .logs = [&] { return std::vector<storage::LogPtr>{log}; },
                                 .metrics = &metrics});
    const auto stored = log->view().bytes() - log->view().last.facts.bytes;
    const auto raw = static_cast<double>(producer.raw_bytes()) * static_cast<double>(stored) /
                     static_cast<double>(log->view().bytes());
    const auto began = std::chrono::steady_clock::now();
    const auto cpu_began = cpu_seconds(RUSAGE_THREAD);
    if (!cleaner.run_once()) throw std::runtime_error("nothing to compact");
    const auto cpu = cpu_seconds(RUSAGE_THREAD) - cpu_began;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    const auto counted = [&](const char* name) { return metrics.counter(name, "").value(); };
    fmt::print(
        "{{\"compaction_mb_per_core_s\": {:.0f}, \"compaction_mb_s\": {:.0f}, \"input_mb\": "
        "{:.0f}, "
        "\"stored_mb\": {:.0f}, \"cpu_s\": {:.2f}, \"wall_s\": {:.2f}, \"records_kept\": {}, "
        "\"records_dropped\": {}, \"bytes_out\": {}}}\n",
        raw / 1e6 / cpu, raw / 1e6 / took.count(), raw / 1e6, static_cast<double>(stored) / 1e6,
        cpu, took.count(), counted("kaas_compaction_records_kept_total"),
        counted("kaas_compaction_records_dropped_total"),
        counted("kaas_compaction_bytes_out_total"));
    // Nobody else drives the cycles: what the compaction has asked for must not be waited for.
    while (log_dir.run_cycle()) {
    }
    must(log->release(std::chrono::seconds(5)));
}

}  // namespace

int main(int argc, char** argv) {
    const std::map<std::string, wire::Compression> codecs = {{"none", wire::Compression::kNone},
                                                             {"gzip", wire::Compression::kGzip},
                                                             {"snappy", wire::Compression::kSnappy},
                                                             {"lz4", wire::Compression::kLz4},
                                                             {"zstd", wire::Compression::kZstd}};
    Workload workload;
    CLI::App app{"Compacts a log once and says how fast."};
    app.add_option("--directory", workload.directory, "An empty directory for the log")->required();
    app.add_option("--input-mb", workload.input_mb, "Uncompressed bytes to compact, in 10^6");
    app.add_option("--value-bytes", workload.value_bytes);
    app.add_option("--records-per-batch", workload.records_per_batch);
    app.add_option("--keys", workload.keys, "How many keys there are");
    std::string codec = "none";
    app.add_option("--codec", codec)->check(CLI::IsMember(codecs));
    CLI11_PARSE(app, argc, argv);
    workload.codec = codecs.at(codec);
    try {
        run(workload);
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench_compaction: {}\n", error.what());
        return 1;
    }
    return 0;
}
