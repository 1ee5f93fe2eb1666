#include "broker/handlers/offset_for_leader_epoch.h"

#include "broker/errors.h"
#include "broker/handlers/partition_access.h"
#include "storage/partition_log.h"

#include <cstddef>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using Asked = wire::OffsetForLeaderEpochRequest::OffsetForLeaderPartition;
using Answer = wire::OffsetForLeaderEpochResponse::EpochEndOffset;

/// One request under way: what it was told, and by which logs.
struct Asking {
    CallPtr call;
    wire::OffsetForLeaderEpochResponse response;
    std::vector<std::pair<Answer*, storage::LogPtr>> told;
};

void answer_one(Asking& asking, std::string_view topic, const Asked& asked, Answer& out) {
    out.partition = asked.partition;
    auto log = led_log(*asking.call, TopicRef::named(topic), asked.partition);
    if (const auto* slot =
            log ? nullptr : led_slot(*asking.call, TopicRef::named(topic), asked.partition)) {
        out.error_code = check_epoch(*slot, asked.current_leader_epoch);
        if (out.error_code != wire::ErrorCode::kNone ||
            asked.leader_epoch != slot->leader_epoch.value())
            return;
        out.leader_epoch = asked.leader_epoch;
        out.end_offset = 0;
        return;
    }
    if (!log) {
        out.error_code = log.error();
        return;
    }
    auto end =
        (*log)->end_of_epoch(base::LeaderEpoch(asked.leader_epoch), asked.current_leader_epoch);
    if (!end) {
        out.error_code = to_wire(end.error().code);
        return;
    }
    out.leader_epoch = end->epoch.value();
    out.end_offset = end->offset.value();
    asking.told.emplace_back(&out, std::move(*log));
}

/// Takes back what was told on a volume whose session does not hold any more. Blocks.
void check_sessions(Asking& asking) {
    std::map<const storage::LogDir*, storage::Result<void>> checks;
    for (auto& [out, log] : asking.told) {
        const auto [check, is_new] = checks.try_emplace(&log->log_dir());
        if (is_new) check->second = log->confirm_session();
        if (check->second) continue;
        *out = {.error_code = to_wire(check->second.error().code), .partition = out->partition};
    }
}

}  // namespace

void offset_for_leader_epoch(CallPtr call, wire::OffsetForLeaderEpochRequest request) {
    auto asking = std::make_shared<Asking>();
    asking->call = std::move(call);
    auto& topics = asking->response.topics;
    topics.resize(request.topics.size());
    for (std::size_t t = 0; t < topics.size(); ++t) {
        const auto& asked = request.topics[t];
        topics[t].topic = asked.topic;
        topics[t].partitions.resize(asked.partitions.size());
        for (std::size_t p = 0; p < asked.partitions.size(); ++p) {
            answer_one(*asking, asked.topic, asked.partitions[p], topics[t].partitions[p]);
        }
    }
    if (asking->told.empty()) return asking->call->answer(asking->response);
    auto& io_pool = asking->call->services().io_pool;
    io_pool.post([asking = std::move(asking)]() mutable {
        check_sessions(*asking);
        auto& home = asking->call->home();
        home.post([asking = std::move(asking)] { asking->call->answer(asking->response); });
    });
}

}  // namespace kaas::broker
