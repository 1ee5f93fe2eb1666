// Any text as the journal of a group slot: a picture and changes, a line each. It loads or refuses;
// what loaded gives a picture that loads again as the same, and serves until all its groups are
// gone.

#include "base/assert.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/timer_queue.h"
#include "coordinator/group_config.h"
#include "coordinator/group_metrics.h"
#include "coordinator/group_requests.h"
#include "coordinator/group_slot.h"
#include "coordinator/testing_journal.h"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

namespace json = boost::json;
using namespace kaas;
using namespace kaas::coordinator;

struct World {
    base::ManualClock clock;
    base::TimerQueue timers;
    base::metrics::Registry registry;
    GroupMetrics metrics{registry};
    GroupConfig config;
    testing::ManualJournal journal;
    GroupSlot slot{journal, timers, clock, config, metrics};

    void pass(std::chrono::milliseconds time) {
        clock.advance(time);
        while (auto work = timers.take_due(clock.now())) work();
        journal.settle_all();
    }
};

std::optional<json::object> object_of(std::string_view line) {
    boost::system::error_code wrong;
    auto value = json::parse(json::string_view(line.data(), line.size()), wrong);
    if (wrong || !value.is_object()) return std::nullopt;
    return std::move(value.as_object());
}

/// The first line is a picture, the others are changes.
bool load(GroupSlot& slot, std::string_view text) {
    bool is_first = true;
    while (!text.empty()) {
        const auto end = text.find('\n');
        const auto object = object_of(text.substr(0, end));
        if (!object) return false;
        if (!(is_first ? slot.load_picture(*object) : slot.load_change(*object))) return false;
        is_first = false;
        text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    }
    return true;
}

/// Commits to every group, ends every transaction, lets every member and every offset expire.
void use(World& world) {
    world.slot.start();
    const auto picture = world.slot.picture();
    for (const auto& group : picture.at("groups").as_array()) {
        const std::string id(group.at("group").as_string());
        world.slot.commit(
            {.group_id = id,
             .member = {},
             .topics = {{{}, "t", {{base::PartitionId{0}, base::Offset{1}, -1, {}}}}}},
            [](const OffsetCommitAnswer& /*answer*/) {});
        world.slot.describe({id}, [](const DescribeGroupsAnswer& /*answer*/) {});
    }
    for (const auto& producer : picture.at("producers").as_array()) {
        world.slot.end_transaction(
            {.producer = base::ProducerId{producer.at("producer").as_int64()},
             .epoch = base::ProducerEpoch{INT16_MAX},
             .coordinator_epoch = INT32_MAX,
             .commit = true},
            [](ErrorCode /*error*/) {});
    }
    for (int i = 0; i < 40; ++i) world.pass(std::chrono::days(1));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    base::log::configure({.level = base::log::Level::kError});
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    World world;
    if (load(world.slot, text)) {
        const auto picture = world.slot.picture();
        World other;
        const auto again = other.slot.load_picture(picture);
        KAAS_ASSERT(again.has_value());
        KAAS_ASSERT(other.slot.picture() == picture);
        use(world);
    }
    world.slot.close();
    world.journal.settle_waiting(false);
    return 0;
}
