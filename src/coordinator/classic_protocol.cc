#include "coordinator/classic_protocol.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/timer_queue.h"
#include "coordinator/group.h"
#include "coordinator/group_config.h"
#include "coordinator/group_journal.h"
#include "coordinator/group_metrics.h"
#include "coordinator/group_requests.h"
#include "coordinator/group_table.h"
#include "coordinator/slot_writer.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::coordinator {
namespace {

constexpr std::string_view kLog = "groups";

}  // namespace

ClassicProtocol::ClassicProtocol(GroupTable& groups, SlotWriter& writer, base::TimerQueue& timers,
                                 const base::Clock& clock, const GroupConfig& config,
                                 GroupMetrics& metrics, NewId new_id)
    : groups_(groups),
      writer_(writer),
      timers_(timers),
      clock_(clock),
      config_(config),
      metrics_(metrics),
      new_id_(new_id) {}

void ClassicProtocol::start() {
    for (const auto& [id, group] : groups_) {
        for (auto& [member_id, member] : group->members()) touch(*group, member);
        // `group.max.size` is smaller than it was: the members may commit, and then some are
        // refused.
        if (group->members().size() > config_.max_size) rebalance(*group, "too many members");
    }
}

void ClassicProtocol::close() {
    closed_ = true;
    for (const auto& [id, group] : groups_) {
        for (auto& [member_id, member] : group->members()) {
            timers_.cancel(member.session);
            group->answer_join(member,
                               {.error = ErrorCode::kNotCoordinator, .member_id = member.id()});
            member.answer_sync({.error = ErrorCode::kNotCoordinator});
        }
        cancel_timers(*group);
    }
}

void ClassicProtocol::cancel_timers(Group& group) {
    timers_.cancel(group.join_timer);
    timers_.cancel(group.sync_timer);
    for (auto& [member_id, time_limit] : group.expected()) timers_.cancel(time_limit);
}

void ClassicProtocol::rebalance_or_complete(Group& group, std::string_view why) {
    if (group.is(GroupState::kPreparingRebalance)) {
        complete_if_all_joined(group);
    } else {
        rebalance(group, why);
    }
}

void ClassicProtocol::rebalance(Group& group, std::string_view why) {
    if (group.is(GroupState::kCompletingRebalance)) {
        for (auto& [member_id, member] : group.members()) {
            member.assignment.clear();
            if (!member.syncing) continue;
            member.answer_sync({.error = ErrorCode::kRebalanceInProgress});
            touch(group, member);
        }
    }
    group.owes_sync().clear();
    timers_.cancel(group.sync_timer);
    const bool is_first = group.is(GroupState::kEmpty);
    group.move_to(GroupState::kPreparingRebalance, clock_.wall_ms());
    base::log::info(kLog, "group '{}' rebalances after generation {}: {}", group.id(),
                    group.generation(), why);
    if (is_first) {
        const auto delay = config_.initial_rebalance_delay;
        using std::chrono::milliseconds;
        wait_for_more(group, delay,
                      std::max(group.rebalance_timeout() - delay, milliseconds::zero()));
    } else if (group.all_joined()) {
        complete_join(group);
    } else {
        timers_.arm(group.join_timer, clock_.now() + group.rebalance_timeout(),
                    [this, &group] { complete_join(group); });
    }
}

void ClassicProtocol::wait_for_more(Group& group, std::chrono::milliseconds delay,
                                    std::chrono::milliseconds remaining) {
    timers_.arm(group.join_timer, clock_.now() + delay, [this, &group, delay, remaining] {
        using std::chrono::milliseconds;
        if (!group.member_added || remaining == milliseconds::zero()) {
            complete_join(group);
            return;
        }
        group.member_added = false;
        wait_for_more(group, std::min(config_.initial_rebalance_delay, remaining),
                      std::max(remaining - delay, milliseconds::zero()));
    });
}

void ClassicProtocol::complete_if_all_joined(Group& group) {
    // The first rebalance of a group ends by time, not by number: more may come.
    const bool may = group.is(GroupState::kPreparingRebalance) &&
                     group.previous_state() != GroupState::kEmpty && group.all_joined();
    if (may) complete_join(group);
}

void ClassicProtocol::complete_join(Group& group) {
    timers_.cancel(group.join_timer);
    remove_missing(group);
    if (!group.elect_joined_leader() && !group.members().empty()) {
        // Only static members are left, and none of them is here.
        timers_.arm(group.join_timer, clock_.now() + group.rebalance_timeout(),
                    [this, &group] { complete_join(group); });
        return;
    }
    group.begin_generation(clock_.wall_ms());
    if (group.is(GroupState::kEmpty)) {
        base::log::info(kLog, "group '{}' is empty with generation {}", group.id(),
                        group.generation());
        store(group, group_text(group, {}));
        return;
    }
    base::log::info(kLog, "group '{}' has generation {} with {} members", group.id(),
                    group.generation(), group.members().size());
    for (auto& [member_id, member] : group.members()) {
        group.answer_join(member, joined(group, member));
        touch(group, member);
        member.is_new = false;
        group.owes_sync().insert(member_id);
    }
    timers_.arm(group.sync_timer, clock_.now() + group.rebalance_timeout(),
                [this, &group] { expire_syncs(group); });
}

void ClassicProtocol::remove_missing(Group& group) {
    std::vector<Member*> missing;
    for (auto& [member_id, member] : group.members()) {
        if (!member.joining && !member.is_static()) missing.push_back(&member);
    }
    for (auto* member : missing) remove(group, *member);
}

JoinGroupAnswer ClassicProtocol::joined(const Group& group, const Member& member) const {
    JoinGroupAnswer answer{.generation = group.generation(),
                           .protocol_type = group.protocol_type(),
                           .protocol_name = group.protocol_name(),
                           .leader = group.leader().value_or(""),
                           .member_id = member.id()};
    if (!group.is_leader(member.id())) return answer;
    answer.members.reserve(group.members().size());
    for (const auto& [id, one] : group.members()) {
        answer.members.push_back({one.identity, one.metadata(group.protocol_name().value_or(""))});
    }
    return answer;
}

void ClassicProtocol::store(Group& group, std::string text) {
    group.stored_text = std::move(text);
    writer_.append(group_line(group.stored_text));
}

ErrorCode ClassicProtocol::heartbeat(const HeartbeatRequest& request) {
    auto* group = groups_.find(request.group_id);
    if (group == nullptr) return ErrorCode::kUnknownMemberId;
    if (const auto error = group->check_member(request.member); error != ErrorCode::kNone) {
        return error;
    }
    if (request.generation != group->generation()) return ErrorCode::kIllegalGeneration;
    touch(*group, *group->find(request.member.member_id));
    return group->is(GroupState::kPreparingRebalance) ? ErrorCode::kRebalanceInProgress
                                                      : ErrorCode::kNone;
}

LeaveGroupAnswer ClassicProtocol::leave(const LeaveGroupRequest& request) {
    LeaveGroupAnswer answer;
    auto* group = groups_.find(request.group_id);
    bool somebody_left = false;
    for (const auto& leaving : request.members) {
        const auto error =
            group == nullptr ? ErrorCode::kUnknownMemberId : leave_one(*group, leaving);
        somebody_left |= error == ErrorCode::kNone;
        answer.members.push_back({leaving.identity, error});
    }
    if (somebody_left && !group->is(GroupState::kEmpty)) {
        rebalance_or_complete(*group, "members have left");
    }
    return answer;
}

ErrorCode ClassicProtocol::leave_one(Group& group, const LeaveGroupRequest::Member& leaving) {
    const auto& [member_id, instance_id] = leaving.identity;
    Member* member = nullptr;
    if (member_id.empty()) {
        member = instance_id ? group.find_static(*instance_id) : nullptr;
        if (member == nullptr) return ErrorCode::kUnknownMemberId;
    } else if (auto expected = group.expected().find(member_id);
               expected != group.expected().end()) {
        timers_.cancel(expected->second);
        group.expected().erase(expected);
        return ErrorCode::kNone;
    } else {
        const auto error = group.check_member(leaving.identity);
        if (error != ErrorCode::kNone) return error;
        member = group.find(member_id);
    }
    base::log::debug(kLog, "member '{}' leaves group '{}': {}", member->id(), group.id(),
                     leaving.reason.value_or("no reason given"));
    remove(group, *member);
    return ErrorCode::kNone;
}

void ClassicProtocol::remove(Group& group, Member& member) {
    timers_.cancel(member.session);
    group.remove(std::string(member.id()));
}

void ClassicProtocol::touch(Group& group, Member& member, std::chrono::milliseconds timeout) {
    timers_.arm(member.session, clock_.now() + timeout,
                [this, &group, &member] { expire_member(group, member); });
}

void ClassicProtocol::expire_member(Group& group, Member& member) {
    if (member.is_waiting()) return;
    base::log::info(kLog, "member '{}' of group '{}' has failed", member.id(), group.id());
    metrics_.expired_members.add();
    remove(group, member);
    if (!group.is(GroupState::kPreparingRebalance)) {
        rebalance(group, "a member has failed");
    } else if (group.all_joined()) {
        complete_join(group);
    }
}

void ClassicProtocol::expire_id(Group& group, const std::string& member_id) {
    group.expected().erase(member_id);
    if (group.is(GroupState::kPreparingRebalance) && group.all_joined()) complete_join(group);
}

void ClassicProtocol::expire_syncs(Group& group) {
    const bool may = group.is(GroupState::kCompletingRebalance) || group.is(GroupState::kStable);
    if (!may || group.owes_sync().empty()) return;
    const auto missing = std::exchange(group.owes_sync(), {});
    for (const auto& member_id : missing) {
        if (auto* member = group.find(member_id); member != nullptr) remove(group, *member);
    }
    rebalance(group, "members did not ask for their assignment");
}

}  // namespace kaas::coordinator
