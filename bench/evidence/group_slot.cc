// What the groups of one slot cost, without broker and disk: a commit of 10 partitions, the replay
// of a million lines as a start reads them, and the memory of 10,000 groups. Prints a line of JSON
// a case.
#include "coordinator/group_slot.h"

#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/timer_queue.h"
#include "base/uuid.h"
#include "coordinator/group_config.h"
#include "coordinator/group_metrics.h"
#include "coordinator/group_requests.h"
#include "coordinator/slot_writer.h"
#include "engine/engine.h"

#include <boost/json/parse.hpp>
#include <fmt/format.h>

#include <malloc.h>
#include <sys/resource.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace kaas;               // NOLINT(google-build-using-namespace)
using namespace kaas::coordinator;  // NOLINT(google-build-using-namespace)
using bench::cpu_seconds;

/// Everything is durable at once.
class Journal final : public SlotWriter {
public:
    void append(std::string change) override {
        bytes += change.size();
        if (keep) lines.push_back(std::move(change));
    }
    void settle(Settled done) override { waiting.push_back(std::move(done)); }
    void flush() {
        while (!waiting.empty()) {
            auto now = std::exchange(waiting, {});
            for (auto& done : now) done(true);
        }
    }

    std::size_t bytes = 0;
    bool keep = false;
    std::vector<std::string> lines;
    std::vector<Settled> waiting;
};

struct World {
    Journal journal;
    base::TimerQueue timers;
    base::metrics::Registry registry;
    GroupMetrics metrics{registry};
    GroupConfig config;
    GroupSlot slot{journal, timers, base::Clock::system(), config, metrics};
};

OffsetCommitRequest request(std::size_t group, std::int64_t offset, std::int32_t partitions) {
    static const base::TopicId topic{base::Uuid::random()};
    CommitTopic commit{.id = topic, .name = "orders", .partitions = {}};
    for (std::int32_t i = 0; i < partitions; ++i) {
        commit.partitions.push_back({base::PartitionId{i}, base::Offset{offset + i}, 3, ""});
    }
    return {.version = 9,
            .group_id = fmt::format("group-{}", group),
            .member = {},
            .topics = {std::move(commit)}};
}

void commit(World& world, std::size_t groups, std::size_t commits, std::int32_t partitions) {
    for (std::size_t i = 0; i < commits; ++i) {
        world.slot.commit(request(i % groups, static_cast<std::int64_t>(i), partitions),
                          [](const OffsetCommitAnswer& /*answer*/) {});
        if (i % 50 == 49) world.journal.flush();
    }
    world.journal.flush();
}

void measure_commits(std::size_t commits) {
    World world;
    commit(world, 50, 1'000, 10);
    world.journal.bytes = 0;
    const auto began = cpu_seconds(RUSAGE_THREAD);
    commit(world, 50, commits, 10);
    const auto used = cpu_seconds(RUSAGE_THREAD) - began;
    fmt::print("{{\"case\":\"commit\",\"partitions\":10,\"cpu_us\":{:.2f},\"bytes\":{}}}\n",
               used * 1e6 / static_cast<double>(commits), world.journal.bytes / commits);
}

void measure_replay(std::size_t lines, std::int32_t partitions) {
    World writer;
    writer.journal.keep = true;
    commit(writer, 1'000, lines, partitions);
    World reader;
    const auto began = cpu_seconds(RUSAGE_THREAD);
    for (const auto& line : writer.journal.lines) {
        if (!reader.slot.load_change(boost::json::parse(line).as_object())) {
            throw std::runtime_error("a line was refused: " + line);
        }
    }
    const auto used = cpu_seconds(RUSAGE_THREAD) - began;
    if (reader.slot.picture() != writer.slot.picture()) throw std::runtime_error("not the same");
    fmt::print("{{\"case\":\"replay\",\"lines\":{},\"partitions\":{},\"cpu_s\":{:.2f}}}\n", lines,
               partitions, used);
}

/// A consumer's join in both of its steps, and its assignment.
void join(World& world, std::size_t group) {
    JoinGroupRequest asked{
        .client = {.version = 9, .client_id = "consumer-orders-1", .client_host = "/10.11.12.13"},
        .group_id = fmt::format("group-{}", group),
        .member = {},
        .session_timeout = std::chrono::hours(1),
        .rebalance_timeout = std::chrono::minutes(5),
        .protocol_type = "consumer",
        .protocols = {{"range", std::string(100, 'r')},
                      {"cooperative-sticky", std::string(100, 'c')}}};
    auto again = asked;
    world.slot.join(std::move(asked), [&](const JoinGroupAnswer& answer) {
        again.member.member_id = answer.member_id;
    });
    auto sync = [&world, id = again.group_id](const JoinGroupAnswer& answer) {
        world.slot.sync({.group_id = id,
                         .member = {.member_id = answer.member_id},
                         .generation = answer.generation,
                         .assignments = {{answer.member_id, std::string(100, 'a')}}},
                        [](const SyncGroupAnswer& /*answer*/) {});
    };
    world.slot.join(std::move(again), std::move(sync));
    while (auto work = world.timers.take_due(base::Clock::system().now())) work();
}

void measure_memory(std::size_t groups) {
    World world;
    world.config.initial_rebalance_delay = std::chrono::milliseconds(0);
    const auto before = mallinfo2().uordblks;
    for (std::size_t i = 0; i < groups; ++i) {
        join(world, i);
        world.journal.flush();
    }
    // Each commits as its member; here it is enough that the offsets are there.
    World offsets;
    commit(offsets, groups, groups, 10);
    const auto used = mallinfo2().uordblks - before;
    fmt::print(
        "{{\"case\":\"memory\",\"groups\":{},\"stable\":{},\"partitions\":10,\"mib\":{:.1f}}}\n",
        groups, world.metrics.of(GroupState::kStable).value(),
        static_cast<double>(used) / (1 << 20));
    world.slot.close();
}

}  // namespace

int main() {
    try {
        base::log::configure({.level = base::log::Level::kError});
        measure_commits(500'000);
        measure_replay(1'000'000, 1);
        measure_replay(200'000, 10);
        measure_memory(10'000);
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
}
