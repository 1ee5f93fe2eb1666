// How members come: JoinGroup and SyncGroup.

#include "base/log.h"
#include "base/uuid.h"
#include "coordinator/classic_protocol.h"
#include "coordinator/group.h"
#include "coordinator/group_journal.h"
#include "coordinator/group_metrics.h"
#include "coordinator/group_requests.h"
#include "coordinator/record_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::coordinator {
namespace {

/// How long a new member may wait for the end of its first rebalance without a word (Apache
/// `CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS`).
constexpr std::chrono::minutes kNewMemberTimeout{5};
/// From here on a new member is told its id, and comes back with it (KIP-394).
constexpr std::int16_t kIdRequiredFrom = 4;
/// From here on the leader can be told to leave the assignment as it is (KIP-814).
constexpr std::int16_t kSkipAssignmentFrom = 9;

/// As `java.util.UUID` prints it: what clients know of member ids.
std::string java_text(const base::Uuid& id) {
    std::string text;
    for (std::size_t i = 0; i < id.bytes.size(); ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
        fmt::format_to(std::back_inserter(text), "{:02x}", id.bytes.at(i));
    }
    return text;
}

/// Of two protocols with one name the first counts; a vote for each would make none fit all.
void drop_repeated(std::vector<MemberProtocol>& protocols) {
    std::set<std::string> seen;
    std::erase_if(protocols, [&](const auto& one) { return !seen.insert(one.name).second; });
}

/// What a group's record would take if one of its members had these protocols.
std::size_t bytes_with(const Group& group, const Member& member, const JoinGroupRequest& request) {
    const auto protocol = group.protocol_name().value_or("");
    const auto changed = std::ranges::find(request.protocols, protocol, &MemberProtocol::name);
    return group_record_bytes(group, assignments_of(group)) - member.metadata(protocol).size() +
           (changed == request.protocols.end() ? 0 : changed->metadata.size());
}

void warn_too_large(std::string_view group_id) {
    base::log::warn("groups",
                    "group '{}' is not kept: its members' metadata and assignments are larger than "
                    "max.message.bytes of __consumer_offsets",
                    group_id);
}

std::string reason_of(std::string_view what, const JoinGroupRequest& request) {
    const bool given = request.reason && !request.reason->empty();
    return fmt::format("{}: {}", what, given ? *request.reason : "no reason given");
}

}  // namespace

void ClassicProtocol::join(JoinGroupRequest request, Done<JoinGroupAnswer> done) {
    if (bytes_of(request.protocols) > config_.record_max_bytes) {
        // Apache takes it, and says this when the assignment comes.
        warn_too_large(request.group_id);
        done({.error = ErrorCode::kUnknownServerError,
              .member_id = std::move(request.member.member_id)});
        return;
    }
    drop_repeated(request.protocols);
    const bool is_new_member = request.member.member_id.empty();
    auto* group = groups_.find(request.group_id);
    const bool is_new_group = group == nullptr;
    if (is_new_group && !is_new_member) {
        done({.error = ErrorCode::kUnknownMemberId,
              .member_id = std::move(request.member.member_id)});
        return;
    }
    if (is_new_group) group = &groups_.find_or_create(request.group_id);
    join_group(*group, std::move(request), std::move(done));
    // The group is there from now on, even if its first member never comes back.
    if (is_new_group) store(*group, new_group_text(*group));
}

void ClassicProtocol::join_group(Group& group, JoinGroupRequest request,
                                 Done<JoinGroupAnswer> done) {
    const std::string member_id = request.member.member_id;
    if (!has_room_for(group, member_id)) {
        if (auto* member = group.find(member_id); member != nullptr) remove(group, *member);
        if (auto expected = group.expected().find(member_id); expected != group.expected().end()) {
            timers_.cancel(expected->second);
            group.expected().erase(expected);
        }
        done({.error = ErrorCode::kGroupMaxSizeReached});
    } else if (!group.supports(request.protocol_type, request.protocols)) {
        done({.error = ErrorCode::kInconsistentGroupProtocol, .member_id = member_id});
    } else if (member_id.empty()) {
        join_new(group, std::move(request), std::move(done));
    } else {
        join_known(group, std::move(request), std::move(done));
    }
}

bool ClassicProtocol::has_room_for(Group& group, const std::string& member_id) const {
    const auto* member = group.find(member_id);
    switch (group.state()) {
        case GroupState::kEmpty: return true;
        case GroupState::kPreparingRebalance:
            return (member != nullptr && member->joining) ||
                   group.joining_count() < config_.max_size;
        case GroupState::kCompletingRebalance:
        case GroupState::kStable:
            return member != nullptr || group.members().size() < config_.max_size;
    }
    return false;
}

void ClassicProtocol::join_new(Group& group, JoinGroupRequest request, Done<JoinGroupAnswer> done) {
    const auto instance_id = request.member.group_instance_id;
    auto new_id =
        fmt::format("{}-{}", instance_id.value_or(request.client.client_id), java_text(new_id_()));
    if (instance_id) {
        if (auto* old = group.find_static(*instance_id); old != nullptr) {
            replace_static(group, *old, std::move(request), std::move(new_id), std::move(done));
        } else {
            add(group, std::move(request), std::move(new_id), std::move(done));
        }
    } else if (request.client.version < kIdRequiredFrom) {
        add(group, std::move(request), std::move(new_id), std::move(done));
    } else {
        hand_out_id(group, std::move(new_id), request.session_timeout, std::move(done));
    }
}

void ClassicProtocol::hand_out_id(Group& group, std::string member_id,
                                  std::chrono::milliseconds time_limit,
                                  Done<JoinGroupAnswer> done) {
    timers_.arm(group.expected()[member_id], clock_.now() + time_limit,
                [this, &group, member_id] { expire_id(group, member_id); });
    done({.error = ErrorCode::kMemberIdRequired, .member_id = std::move(member_id)});
}

void ClassicProtocol::join_known(Group& group, JoinGroupRequest request,
                                 Done<JoinGroupAnswer> done) {
    auto member_id = request.member.member_id;
    if (auto expected = group.expected().find(member_id); expected != group.expected().end()) {
        if (request.member.group_instance_id) {
            // Ids are handed out to dynamic members only. Apache throws here.
            done({.error = ErrorCode::kUnknownServerError});
            return;
        }
        timers_.cancel(expected->second);
        add(group, std::move(request), std::move(member_id), std::move(done));
        return;
    }
    if (const auto error = group.check_member(request.member); error != ErrorCode::kNone) {
        done({.error = error, .member_id = std::move(member_id)});
        return;
    }
    auto& member = *group.find(member_id);
    // An answer that got lost, or a follower that asks whether anything is new.
    const bool changes = member.protocols != request.protocols;
    const bool repeats =
        !changes && (group.is(GroupState::kCompletingRebalance) ||
                     (group.is(GroupState::kStable) && !group.is_leader(member_id)));
    if (repeats) {
        done(joined(group, member));
        return;
    }
    rejoin(group, member, std::move(request), std::move(done));
}

void ClassicProtocol::add(Group& group, JoinGroupRequest request, std::string member_id,
                          Done<JoinGroupAnswer> done) {
    if (group.is(GroupState::kPreparingRebalance) && group.previous_state() == GroupState::kEmpty) {
        group.member_added = true;
    }
    const auto why = reason_of("a member comes", request);
    auto& member = group.add(std::move(request), std::move(member_id));
    group.await_join(member, std::move(done));
    touch(group, member, kNewMemberTimeout);
    rebalance_or_complete(group, why);
}

void ClassicProtocol::rejoin(Group& group, Member& member, JoinGroupRequest request,
                             Done<JoinGroupAnswer> done) {
    const auto why = reason_of("a member comes back", request);
    group.update(member, std::move(request));
    group.await_join(member, std::move(done));
    rebalance_or_complete(group, why);
}

void ClassicProtocol::replace_static(Group& group, Member& old, JoinGroupRequest request,
                                     std::string new_id, Done<JoinGroupAnswer> done) {
    if (group.is(GroupState::kStable) &&
        bytes_with(group, old, request) > config_.record_max_bytes) {
        warn_too_large(group.id());
        auto answer = joined(group, old);
        answer.error = ErrorCode::kUnknownServerError;
        answer.member_id.clear();
        answer.members.clear();
        done(std::move(answer));
        return;
    }
    auto leader_before = group.leader().value_or("");
    const bool knows_skipping = request.client.version >= kSkipAssignmentFrom;
    const auto why = reason_of("a static member comes back", request);
    auto& member = group.rename_static(old, std::move(new_id));
    touch(group, member);
    group.update(member, std::move(request));
    if (group.is(GroupState::kStable) && group.protocol_name() == group.select_protocol()) {
        store(group, group_text(group, assignments_of(group)));
        answer_replaced(group, member, knows_skipping, std::move(leader_before), std::move(done));
        return;
    }
    group.await_join(member, std::move(done));
    rebalance_or_complete(group, why);
}

void ClassicProtocol::answer_replaced(const Group& group, const Member& member, bool knows_skipping,
                                      std::string leader_before, Done<JoinGroupAnswer> done) {
    auto answer = joined(group, member);
    if (knows_skipping) {
        answer.skip_assignment = group.is_leader(member.id());
    } else {
        // It would assign anew if it knew that it leads, and nobody else would hear of that.
        answer.leader = std::move(leader_before);
        answer.members.clear();
    }
    answer_settled(writer_, std::move(done), std::move(answer),
                   {.error = ErrorCode::kNotCoordinator});
}

void ClassicProtocol::sync(SyncGroupRequest request, Done<SyncGroupAnswer> done) {
    const auto differs = [](const auto& asked, const auto& known) {
        return asked && known && *asked != *known;
    };
    auto* group = groups_.find(request.group_id);
    auto error =
        group == nullptr ? ErrorCode::kUnknownMemberId : group->check_member(request.member);
    if (error == ErrorCode::kNone) {
        if (request.generation != group->generation()) {
            error = ErrorCode::kIllegalGeneration;
        } else if (differs(request.protocol_type, group->protocol_type()) ||
                   differs(request.protocol_name, group->protocol_name())) {
            error = ErrorCode::kInconsistentGroupProtocol;
        } else if (group->is(GroupState::kPreparingRebalance)) {
            error = ErrorCode::kRebalanceInProgress;
        }
    }
    if (error != ErrorCode::kNone) {
        done({.error = error});
        return;
    }
    sync_now(*group, std::move(request), std::move(done));
}

void ClassicProtocol::sync_now(Group& group, SyncGroupRequest request, Done<SyncGroupAnswer> done) {
    auto& member = *group.find(request.member.member_id);
    paid_sync(group, member.id());
    if (group.is(GroupState::kStable)) {
        answer_settled(writer_, std::move(done),
                       {.protocol_type = group.protocol_type(),
                        .protocol_name = group.protocol_name(),
                        .assignment = member.assignment},
                       {.error = ErrorCode::kNotCoordinator});
        return;
    }
    // A request that was sent again takes the place of the one that nobody waits for any more.
    member.answer_sync({.error = ErrorCode::kRebalanceInProgress});
    member.syncing = std::move(done);
    if (group.is_leader(member.id()) && !group.storing) {
        store_assignment(group, std::move(request.assignments));
    }
}

void ClassicProtocol::paid_sync(Group& group, const std::string& member_id) {
    group.owes_sync().erase(member_id);
    if (group.owes_sync().empty()) timers_.cancel(group.sync_timer);
}

void ClassicProtocol::store_assignment(Group& group,
                                       std::vector<SyncGroupRequest::Assignment> assignments) {
    // A sum first: nobody else waits while a request of any size is taken apart.
    if (bytes_of(assignments) > config_.record_max_bytes) return fail_assignment(group);
    Assignments by_member;
    for (const auto& one : assignments) by_member[one.member_id] = one.assignment;
    if (group_record_bytes(group, by_member) > config_.record_max_bytes)
        return fail_assignment(group);
    group.storing = true;
    store(group, group_text(group, by_member));
    writer_.settle([this, group_id = group.id(), generation = group.generation(),
                    assignments = std::move(assignments)](bool durable) mutable {
        if (durable) distribute(group_id, generation, std::move(assignments));
    });
}

void ClassicProtocol::fail_assignment(Group& group) {
    warn_too_large(group.id());
    for (auto& [member_id, member] : group.members()) {
        if (!member.syncing) continue;
        member.answer_sync({.error = ErrorCode::kUnknownServerError});
        touch(group, member);
    }
    rebalance(group, "its assignment is too large");
}

void ClassicProtocol::distribute(const std::string& group_id, std::int32_t generation,
                                 std::vector<SyncGroupRequest::Assignment> assignments) {
    auto* group = groups_.find(group_id);
    // Somebody came or went meanwhile: the next generation will have its own.
    const bool counts = !closed_ && group != nullptr &&
                        group->is(GroupState::kCompletingRebalance) &&
                        group->generation() == generation && group->storing;
    if (!counts) return;
    group->storing = false;
    for (auto& [member_id, member] : group->members()) member.assignment.clear();
    for (auto& one : assignments) {
        auto* member = group->find(one.member_id);
        if (member != nullptr) member->assignment = std::move(one.assignment);
    }
    group->move_to(GroupState::kStable, clock_.wall_ms());
    metrics_.rebalances.add();
    for (auto& [member_id, member] : group->members()) {
        if (!member.syncing) continue;
        // Whoever asked after this was on its way to the journal needs a check of its own.
        answer_settled(writer_, std::exchange(member.syncing, {}),
                       {.protocol_type = group->protocol_type(),
                        .protocol_name = group->protocol_name(),
                        .assignment = member.assignment},
                       {.error = ErrorCode::kNotCoordinator});
        touch(*group, member);
    }
}

}  // namespace kaas::coordinator
