// The load generator: one thread, raw pre-encoded requests, one line of JSON as its result.
// Every error code, short answer, wrong offset or closed connection ends it with exit code 1.

#include "common/api.h"
#include "common/bytes.h"
#include "common/fd.h"
#include "load/connection.h"
#include "load/coordinator_messages.h"
#include "load/coordinator_workloads.h"
#include "load/histogram.h"
#include "load/loop.h"
#include "load/messages.h"
#include "load/process.h"
#include "load/rebalance.h"
#include "load/socket.h"
#include "load/workloads.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <asm-generic/socket.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kaas::bench {
namespace {

struct Options {
    std::string address = "127.0.0.1:9092";
    std::string topic = fmt::format("bench-{}", getpid());
    bool keep_topic = false;
    int partitions = 1;
    size_t connections = 1;
    Plan plan;
    ProduceWorkload::Options produce;
    FetchLimits fetch;
    double fill_mb = 64;
    bool discard = false;
    size_t metadata_topics = 1;
    size_t idle_connections = 10'000;
    size_t members = 100;
};

constexpr int16_t kTopicAlreadyExists = 36;
/// For a topic to get its leaders.
constexpr int64_t kPatienceNs = 30'000'000'000;

/// One blocking question; the reader of the answer stands after the response header.
template <typename Read>
auto ask(const Fd& socket, Api api, const std::string& frame, Read read) {
    const auto answer = call(socket, frame);
    Reader reader(answer);
    reader.i32();
    skip_response_header_tags(api, reader);
    return read(reader);
}

/// Creates the topic and waits until every partition is led. Metadata may know a leader before the
/// leader knows itself, so each partition is read from too.
Topic prepare_topic(const Options& options) {
    const auto socket = connect_to(parse_address(options.address));
    const auto created =
        ask(socket, Api::kCreateTopics, create_topic_request(options.topic, options.partitions),
            read_create_topic);
    if (!created || (*created != 0 && *created != kTopicAlreadyExists)) {
        fail(fmt::format("CreateTopics: error code {}", created.value_or(-1)));
    }
    int16_t error = 0;
    for (const auto end = now_ns() + kPatienceNs; now_ns() < end;) {
        Topic topic;
        error = ask(socket, Api::kMetadata, metadata_request({options.topic}), [&](Reader& reader) {
                    return read_metadata(reader, &topic);
                }).value_or(-1);
        if (error != 0) continue;
        if (topic.partitions != options.partitions) {
            fail(fmt::format("topic {} has {} partitions", topic.name, topic.partitions));
        }
        std::vector<Position> starts;
        starts.reserve(static_cast<size_t>(topic.partitions));
        for (int i = 0; i < topic.partitions; ++i) starts.push_back({i, 0});
        const FetchLimits least{.max_wait_ms = 0, .min_bytes = 0, .partition_max_bytes = 1};
        error =
            ask(socket, Api::kFetch, fetch_request(topic, starts, least), read_fetch).value_or(-1);
        if (error == 0) return topic;
    }
    fail(fmt::format("the topic is not ready after 30 s: error code {}", error));
}

void delete_topic(const Options& options) {
    if (options.keep_topic) return;
    call(connect_to(parse_address(options.address)), delete_topic_request(options.topic));
}

std::vector<std::unique_ptr<Connection>> connect_all(const Options& options) {
    std::vector<std::unique_ptr<Connection>> connections;
    connections.reserve(options.connections);
    for (size_t i = 0; i < options.connections; ++i) {
        connections.push_back(
            std::make_unique<Connection>(static_cast<int>(i), parse_address(options.address),
                                         Connection::Options{.answered = options.produce.acks != 0,
                                                             .copy_records = !options.discard}));
    }
    return connections;
}

Options one_plain_connection(const Options& options) {
    auto plain = options;
    plain.connections = 1;
    plain.produce.acks = -1;
    return plain;
}

std::string latency_json(std::string_view name, const Histogram& latency) {
    return fmt::format(
        R"(,"{0}p50_ms":{1:.4f},"{0}p90_ms":{2:.4f},"{0}p99_ms":{3:.4f},"{0}max_ms":{4:.4f})", name,
        latency.quantile_ms(0.5), latency.quantile_ms(0.9), latency.quantile_ms(0.99),
        latency.max_ms());
}

std::string result_json(std::string_view workload, const Measured& measured, uint64_t requests) {
    const auto count = static_cast<double>(requests);
    const auto gigabytes = static_cast<double>(measured.counters.bytes) / 1e9;
    const auto ratio = [](double part, double of) { return of > 0 ? part / of : 0; };
    return fmt::format(
        R"({{"workload":"{}","seconds":{:.3f},"requests":{},"bytes":{},"requests_s":{:.1f},"mb_s":{:.2f},)"
        R"("records_s":{:.0f},"broker_cpu_us_request":{:.2f},"broker_cpu_s_gb":{:.4f},)"
        R"("broker_cpu_s":{:.4f},"broker_rss_mb":{:.1f},"broker_rss_peak_mb":{:.1f},)"
        R"("load_cpu_s":{:.4f},"other_cpu_s":{:.3f})",
        workload, measured.seconds, requests, measured.counters.bytes, count / measured.seconds,
        gigabytes * 1e3 / measured.seconds,
        static_cast<double>(measured.counters.records) / measured.seconds,
        ratio(measured.broker_cpu_s * 1e6, count), ratio(measured.broker_cpu_s, gigabytes),
        measured.broker_cpu_s, measured.broker_rss_mb, measured.broker_rss_peak_mb,
        measured.own_cpu_s, measured.other_cpu_s);
}

void report(std::string_view workload, const Measured& measured, const Histogram& latency,
            const std::string& more = {}) {
    fmt::print("{}{}{}}}\n", result_json(workload, measured, measured.counters.requests),
               latency_json("", latency), more);
}

void run_produce(Options& options) {
    const auto topic = prepare_topic(options);
    ProduceWorkload workload(topic, options.produce);
    {
        auto connections = connect_all(options);
        options.plan.paced = connections.size();
        const auto measured = drive(connections, workload, options.plan);
        report("produce", measured, workload.latency,
               fmt::format(R"(,"batch_bytes":{})", workload.batch_bytes()));
    }
    delete_topic(options);
}

void run_fetch(Options& options) {
    const auto topic = prepare_topic(options);
    ProduceWorkload filler(topic, {.shape = options.produce.shape});
    const auto batches = std::max<int64_t>(
        static_cast<int64_t>(options.fill_mb * 1e6 / static_cast<double>(filler.batch_bytes())), 1);
    {
        auto connections = connect_all(one_plain_connection(options));
        const Plan fill{
            .warmup_s = 0,
            .seconds = 600,
            .in_flight = 5,
            .requests = static_cast<uint64_t>(batches) * static_cast<uint64_t>(topic.partitions)};
        drive(connections, filler, fill);
    }
    FetchWorkload workload(topic, {.shape = options.produce.shape,
                                   .batch_bytes = filler.batch_bytes(),
                                   .batches = batches,
                                   .partitions_per_request = options.produce.partitions_per_request,
                                   .in_flight = options.plan.in_flight,
                                   .connections = options.connections,
                                   .limits = options.fetch});
    {
        auto connections = connect_all(options);
        options.plan.paced = connections.size();
        const auto measured = drive(connections, workload, options.plan);
        report("fetch", measured, workload.latency);
    }
    delete_topic(options);
}

void run_metadata(Options& options) {
    std::vector<std::string> names;
    for (size_t i = 0; i < options.metadata_topics; ++i) {
        auto one = options;
        one.topic += fmt::format("-{}", i);
        prepare_topic(one);
        names.push_back(one.topic);
    }
    MetadataWorkload workload(names);
    {
        auto connections = connect_all(options);
        options.plan.paced = connections.size();
        report("metadata", drive(connections, workload, options.plan), workload.latency);
    }
    for (const auto& name : names) {
        auto one = options;
        one.topic = name;
        delete_topic(one);
    }
}

void run_end_to_end(Options& options) {
    const auto topic = prepare_topic(options);
    EndToEndWorkload workload(topic, options.produce.shape);
    {
        options.connections = 2;
        auto connections = connect_all(options);
        options.plan.paced = 1;
        options.plan.in_flight = 1;
        auto measured = drive(connections, workload, options.plan);
        // A request of this workload is a batch that went all the way.
        measured.counters.requests = workload.latency.count();
        report("e2e", measured, workload.latency,
               latency_json("produce_", workload.produce_latency));
    }
    delete_topic(options);
}

/// Asks until the coordinator is there. What `frame` does is done thereby.
template <typename Read>
void await_coordinator(const Fd& socket, Api api, const std::string& frame, Read read) {
    int16_t error = 0;
    for (const auto end = now_ns() + kPatienceNs; now_ns() < end;) {
        error = ask(socket, api, frame, read).value_or(-1);
        if (error == 0) return;
        if (!coordinator_is_coming(error)) break;
    }
    fail(fmt::format("no coordinator: error code {}", error));
}

void find_coordinator(const Fd& socket, const std::string& key, CoordinatorKind kind) {
    await_coordinator(socket, Api::kFindCoordinator, find_coordinator_request(key, kind),
                      read_find_coordinator);
}

void run_commit(Options& options) {
    const auto topic = prepare_topic(options);
    {
        const auto socket = connect_to(parse_address(options.address));
        for (size_t i = 0; i < options.connections; ++i) {
            const auto group = CommitWorkload::group(topic, i);
            find_coordinator(socket, group, CoordinatorKind::kGroup);
            await_coordinator(socket, Api::kOffsetCommit,
                              offset_commit_request(topic, group, topic.partitions, 0),
                              read_offset_commit);
        }
    }
    CommitWorkload workload(topic, options.connections);
    {
        auto connections = connect_all(options);
        options.plan.paced = connections.size();
        report("commit", drive(connections, workload, options.plan), workload.latency);
    }
    delete_topic(options);
}

void run_transaction(Options& options) {
    const auto topic = prepare_topic(options);
    ProducerAnswer producer;
    {
        const auto socket = connect_to(parse_address(options.address));
        find_coordinator(socket, topic.name, CoordinatorKind::kTransaction);
        await_coordinator(socket, Api::kInitProducerId, init_producer_id_request(topic.name),
                          [&](Reader& reader) {
                              producer =
                                  read_producer(reader).value_or(ProducerAnswer{.error = -1});
                              return std::optional(producer.error);
                          });
    }
    TransactionWorkload workload(topic, options.produce.shape, topic.name, producer);
    {
        options.connections = 1;
        options.plan.in_flight = 1;
        auto connections = connect_all(options);
        auto measured = drive(connections, workload, options.plan);
        // A request of this workload is a transaction.
        measured.counters.requests = workload.latency.count();
        report("transaction", measured, workload.latency,
               fmt::format(R"(,"again":{})", workload.again));
    }
    delete_topic(options);
}

/// What this process, the broker and the machine use while `work` runs.
template <typename Work>
Measured measured_while(const Options& options, Work work) {
    const auto before = process_use(options.plan.broker);
    const auto own_before = own_cpu_s();
    const auto machine_before = machine_cpu_s();
    const auto start = now_ns();
    const uint64_t count = work();
    const auto after = process_use(options.plan.broker);
    Measured measured{.seconds = static_cast<double>(now_ns() - start) / 1e9,
                      .counters = {.requests = count, .bytes = 0, .records = 0},
                      .broker_cpu_s = after.cpu_s - before.cpu_s,
                      .broker_rss_mb = after.rss_mb,
                      .broker_rss_peak_mb = after.rss_peak_mb,
                      .own_cpu_s = own_cpu_s() - own_before,
                      .other_cpu_s = machine_cpu_s() - machine_before};
    measured.other_cpu_s -= measured.own_cpu_s + measured.broker_cpu_s;
    return measured;
}

/// A request of this workload is a round.
void run_rebalance(Options& options) {
    const auto address = parse_address(options.address);
    {
        const auto socket = connect_to(address);
        find_coordinator(socket, options.topic, CoordinatorKind::kGroup);
        const Membership nobody{.group = options.topic, .generation = 0, .id = "nobody"};
        await_coordinator(socket, Api::kHeartbeat, heartbeat_request(nobody), [](Reader& reader) {
            const auto error = read_throttle_and_error(reader);
            return error == kUnknownMemberId ? std::optional<int16_t>(0) : error;
        });
    }
    RebalanceRounds rounds(address, options.topic, options.members);
    const auto run_for = [&](double seconds) {
        uint64_t count = 0;
        const auto end = now_ns() + static_cast<int64_t>(seconds * 1e9);
        do {
            rounds.round();
            ++count;
        } while (now_ns() < end);
        return count;
    };
    run_for(options.plan.warmup_s);
    rounds.latency.clear();
    const auto measured = measured_while(options, [&] { return run_for(options.plan.seconds); });
    report("rebalance", measured, rounds.latency);
}

/// Connect, ApiVersions, close; one after the other.
void run_connect(Options& options) {
    const auto address = parse_address(options.address);
    const auto hello = api_versions_request();
    Histogram latency;
    const auto run_for = [&](double seconds) {
        uint64_t count = 0;
        for (const auto end = now_ns() + static_cast<int64_t>(seconds * 1e9); now_ns() < end;
             ++count) {
            const auto start = now_ns();
            const auto socket = connect_to(address);
            const auto answer = call(socket, hello);
            Reader reader(answer);
            reader.i32();
            if (read_api_versions(reader) != 0) fail("ApiVersions is answered with an error");
            latency.record(now_ns() - start);
            // A reset instead of TIME_WAIT, or the ports would be used up.
            const linger reset{.l_onoff = 1, .l_linger = 0};
            setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        }
        return count;
    };
    run_for(options.plan.warmup_s);
    latency.clear();
    const auto measured = measured_while(options, [&] { return run_for(options.plan.seconds); });
    report("connect", measured, latency);
}

/// Holds connections that have said hello and nothing since; tells what they cost the broker.
void run_idle(Options& options) {
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    const auto address = parse_address(options.address);
    const auto hello = api_versions_request();
    const auto before = process_use(options.plan.broker);
    std::vector<Fd> sockets;
    for (size_t i = 0; i < options.idle_connections; ++i) {
        sockets.push_back(connect_to(address));
        call(sockets.back(), hello);
    }
    const auto opened = process_use(options.plan.broker);
    const timespec hold{.tv_sec = static_cast<time_t>(options.plan.seconds), .tv_nsec = 0};
    nanosleep(&hold, nullptr);
    const auto after = process_use(options.plan.broker);
    for (const auto& socket : sockets) {
        char byte = 0;
        if (recv(socket.get(), &byte, 1, MSG_DONTWAIT) >= 0 || errno != EAGAIN) {
            fail("an idle connection was closed");
        }
    }
    fmt::print(
        R"({{"workload":"idle","connections":{},"seconds":{:.3f},"broker_rss_before_mb":{:.1f},)"
        R"("broker_rss_mb":{:.1f},"broker_cpu_us_connection":{:.1f},"broker_cpu_s_idle":{:.4f}}})"
        "\n",
        sockets.size(), options.plan.seconds, before.rss_mb, after.rss_mb,
        (opened.cpu_s - before.cpu_s) * 1e6 / static_cast<double>(sockets.size()),
        after.cpu_s - opened.cpu_s);
}

using Run = void (*)(Options&);

CLI::App* add_workload(CLI::App& app, Options& options, const char* name, const char* help) {
    auto* verb = app.add_subcommand(name, help);
    verb->add_option("--broker", options.address, "numeric address and port")
        ->capture_default_str();
    verb->add_option("--pid", options.plan.broker, "the broker, to measure its CPU and memory");
    verb->add_option("--seconds", options.plan.seconds)->capture_default_str();
    verb->add_option("--warmup", options.plan.warmup_s, "seconds before it counts")
        ->capture_default_str();
    return verb;
}

void add_topic(CLI::App* verb, Options& options) {
    verb->add_option("--topic", options.topic, "created if missing, deleted after")
        ->capture_default_str();
    verb->add_flag("--keep", options.keep_topic, "do not delete the topic");
    verb->add_option("--partitions", options.partitions)->capture_default_str();
    verb->add_option("--connections", options.connections)->capture_default_str();
    verb->add_option("--in-flight", options.plan.in_flight, "requests open on each connection")
        ->capture_default_str();
    verb->add_option("--requests", options.plan.requests, "end after so many, if time allows");
    verb->add_option("--rate", options.plan.rate, "requests a second, evenly paced; 0: as they go")
        ->capture_default_str();
}

void add_batches(CLI::App* verb, Options& options) {
    verb->add_option("--records", options.produce.shape.records, "in a batch")
        ->capture_default_str();
    verb->add_option("--value-bytes", options.produce.shape.value_bytes, "of each record")
        ->capture_default_str();
    verb->add_option("--partitions-per-request", options.produce.partitions_per_request)
        ->capture_default_str();
}

int run(int count, char** arguments) {
    Options options;
    CLI::App app("Load for a Kafka broker; prints one line of JSON.");
    app.require_subcommand(1);
    std::map<std::string, Run> runs;

    auto* produce = add_workload(app, options, "produce", "pre-encoded batches");
    add_topic(produce, options);
    add_batches(produce, options);
    produce->add_option("--acks", options.produce.acks)->capture_default_str();
    runs["produce"] = run_produce;

    auto* fetch = add_workload(app, options, "fetch", "cached data, filled by itself first");
    add_topic(fetch, options);
    add_batches(fetch, options);
    fetch->add_option("--bytes", options.fetch.partition_max_bytes, "asked of each partition")
        ->capture_default_str();
    fetch->add_option("--fill-mb", options.fill_mb, "in each partition")->capture_default_str();
    fetch->add_flag("--discard", options.discard, "have the kernel drop the records (MSG_TRUNC)");
    runs["fetch"] = run_fetch;

    auto* metadata = add_workload(app, options, "metadata", "of some topics");
    add_topic(metadata, options);
    metadata->add_option("--topics", options.metadata_topics)->capture_default_str();
    runs["metadata"] = run_metadata;

    auto* end_to_end = add_workload(app, options, "e2e", "produce at a rate, read by long poll");
    add_topic(end_to_end, options);
    add_batches(end_to_end, options);
    runs["e2e"] = run_end_to_end;

    auto* commit = add_workload(app, options, "commit", "offsets, a group for each connection");
    add_topic(commit, options);
    runs["commit"] = run_commit;

    auto* transaction = add_workload(app, options, "transaction", "of one producer, in turn");
    add_topic(transaction, options);
    add_batches(transaction, options);
    runs["transaction"] = run_transaction;

    auto* rebalance = add_workload(app, options, "rebalance", "one member comes and goes");
    rebalance->add_option("--members", options.members, "beside it")->capture_default_str();
    runs["rebalance"] = run_rebalance;

    add_workload(app, options, "connect", "connect, ApiVersions, close");
    runs["connect"] = run_connect;

    auto* idle = add_workload(app, options, "idle", "open connections that do nothing");
    idle->add_option("--connections", options.idle_connections)->capture_default_str();
    runs["idle"] = run_idle;

    CLI11_PARSE(app, count, arguments);
    runs.at(app.get_subcommands().front()->get_name())(options);
    return 0;
}

}  // namespace
}  // namespace kaas::bench

int main(int count, char** arguments) { return kaas::bench::run(count, arguments); }
