// Any text as the journal of a transaction slot: a picture and changes, a line each. It loads or
// refuses; what loaded serves, ends its transactions, and its picture loads again as the same.
#include "base/assert.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/metrics.h"
#include "base/timer_queue.h"
#include "coordinator/testing_transactions.h"
#include "coordinator/transaction_slot.h"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace {

namespace json = boost::json;
using namespace kaas;
using namespace kaas::coordinator;

struct World {
    testing::ManualJournal journal;
    base::TimerQueue timers;
    base::ManualClock clock;
    TransactionConfig config;
    testing::ManualIds ids;
    testing::ManualMarkers markers;
    base::metrics::Registry registry;
    TransactionMetrics metrics = TransactionMetrics::of(registry);
    TransactionSlot slot{{.writer = journal,
                          .timers = timers,
                          .clock = clock,
                          .config = config,
                          .producer_ids = ids,
                          .markers = markers,
                          .metrics = metrics,
                          .epoch = base::LeaderEpoch(1)}};
};

std::map<std::string, json::value> contents(const TransactionSlot& slot) {
    std::map<std::string, json::value> contents;
    const auto picture = slot.picture();
    for (const auto& one : picture.at("transactions").as_array())
        contents.emplace(one.at("transactional_id").as_string(), one);
    return contents;
}

/// Each id is used as far as it goes.
void use(World& world) {
    for (const auto& [id, line] : contents(world.slot)) {
        const ProducerIdAndEpoch who{
            base::ProducerId(line.at("producer_id").to_number<std::int64_t>()),
            base::ProducerEpoch(line.at("producer_epoch").to_number<std::int16_t>())};
        world.slot.add_partitions({id, who, {testing::partition("t", 0)}, kEpochBump},
                                  [](ErrorCode) {});
        world.slot.end_txn({id, who, true, kEpochBump}, [](const EndTxnAnswer&) {});
        world.slot.init_producer_id({id, std::chrono::seconds(1)},
                                    [](const InitProducerIdAnswer&) {});
    }
    for (int round = 0; round < 3; ++round) {
        world.journal.settle_all();
        world.markers.answer_all();
        world.clock.advance(std::chrono::seconds(20));
        while (auto due = world.timers.take_due(world.clock.now())) due();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view text(reinterpret_cast<const char*>(data), size);
    World world;
    for (bool first = true; !text.empty(); first = false) {
        const auto end = std::min(text.find('\n'), text.size());
        boost::system::error_code wrong;
        const auto line = json::parse(text.substr(0, end), wrong);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (wrong || !line.is_object()) return 0;
        const auto loaded = first ? world.slot.load_picture(line.get_object())
                                  : world.slot.load_change(line.get_object());
        if (!loaded) return 0;
    }
    World again;
    KAAS_ASSERT(again.slot.load_picture(world.slot.picture()));
    KAAS_ASSERT(contents(again.slot) == contents(world.slot));
    world.slot.start();
    use(world);
    for (const auto& line : world.journal.lines)
        KAAS_ASSERT(again.slot.load_change(json::parse(line).as_object()));
    KAAS_ASSERT(contents(again.slot) == contents(world.slot));
    return 0;
}
