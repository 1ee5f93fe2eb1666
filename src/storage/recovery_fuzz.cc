// Any bytes as a partition's manifest, last segment and its indexes: a log opens or refuses by
// name, and what it then serves, searches and appends to never crashes it.
#include "base/assert.h"
#include "base/bytes.h"
#include "base/log.h"
#include "storage/epoch_beginning.h"
#include "storage/producer_state.h"
#include "storage/testing_log.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace kaas;
using namespace kaas::storage;

constexpr std::string_view kPartition = "topic.AAAAAAAAAAAAAAAAAAAAAA/0";

/// The parts of the input between form feeds, which no JSON has.
std::vector<std::string_view> split(std::string_view text, std::size_t parts) {
    std::vector<std::string_view> result;
    for (; parts > 1; --parts) {
        const auto end = std::min(text.find('\f'), text.size());
        result.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    result.push_back(text);
    return result;
}

void put(Volume& volume, const std::string& path, std::string_view text) {
    auto file = volume.create(path);
    KAAS_ASSERT(file);
    const auto piece = base::as_bytes(text);
    KAAS_ASSERT((*file)->write_at(0, {&piece, 1}));
}

void use(testing::Broker& broker, PartitionLog& log) {
    (void)testing::read_values(log);
    (void)log.first_at_or_after(0, Isolation::kReadCommitted);
    (void)log.of_max_timestamp(Isolation::kReadUncommitted);
    bool acknowledged = false;
    const auto bytes = testing::make_batch({});
    if (!log.append(testing::to_append(bytes, Acks::kAll, broker.executor,
                                       [&](auto answer) { acknowledged = answer.has_value(); }))) {
        return;
    }
    broker.commit_all();
    KAAS_ASSERT(acknowledged);
    (void)log.release(std::chrono::milliseconds(0));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    base::log::configure({.level = base::log::Level::kError});
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    (void)decode_snapshot(base::as_bytes(text));
    // Indexes before the segment, whose bytes may hold anything.
    const auto parts = split(text, 4);
    MemoryVolume volume;
    base::ManualClock clock;
    const PartitionPaths paths{std::string(kPartition)};
    const base::LeaderEpoch epoch{0};
    KAAS_ASSERT(make_topic_directory(volume, *paths.directory));
    KAAS_ASSERT(make_partition_directory(volume, *paths.directory));
    KAAS_ASSERT(volume.make_directory(paths.epoch_directory(epoch)));
    put(volume, paths.epoch_directory(epoch) + "/manifest-1.jsonl", parts[0]);
    put(volume, paths.file({epoch, base::Offset{0}}, ".index"), parts[1]);
    put(volume, paths.file({epoch, base::Offset{0}}, ".timeindex"), parts[2]);
    put(volume, paths.file({epoch, base::Offset{0}}, ".log"), parts[3]);
    testing::Broker broker(volume, clock);
    if (auto log = broker.open(1)) use(broker, **log);
    return 0;
}
