#pragma once

#include "base/clock.h"
#include "base/timer_queue.h"
#include "base/uuid.h"
#include "coordinator/group.h"
#include "coordinator/group_config.h"
#include "coordinator/group_metrics.h"
#include "coordinator/group_requests.h"
#include "coordinator/group_table.h"
#include "coordinator/slot_writer.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kaas::coordinator {

/// The protocol by which members of a group join, get their assignments from a leader among them,
/// and are missed when they fall silent (Apache `GroupMetadataManager`, `classicGroup...`; KIPs
/// 134, 345, 394, 559, 800, 814). Works on the groups of one slot.
///
/// A group's metadata goes to the journal when its assignment is made, when it becomes empty, and
/// when a static member gets another id without a rebalance; what lies between is not kept, and
/// after a crash the group stands where it was last written, with its sessions begun anew.
/// Thread: the coordinators' loop.
class ClassicProtocol {
public:
    /// Where the ids of members come from.
    using NewId = base::Uuid (*)();

    ClassicProtocol(GroupTable& groups, SlotWriter& writer, base::TimerQueue& timers,
                    const base::Clock& clock, const GroupConfig& config, GroupMetrics& metrics,
                    NewId new_id);

    /// Loaded members have their full session from now on.
    void start();
    /// Answers all who wait with NOT_COORDINATOR, cancels all timers.
    void close();

    void join(JoinGroupRequest request, Done<JoinGroupAnswer> done);
    void sync(SyncGroupRequest request, Done<SyncGroupAnswer> done);
    [[nodiscard]] ErrorCode heartbeat(const HeartbeatRequest& request);
    [[nodiscard]] LeaveGroupAnswer leave(const LeaveGroupRequest& request);

    /// The member has shown that it lives.
    void touch(Group& group, Member& member) { touch(group, member, member.session_timeout); }
    /// Before a group is erased. Requires that it is Empty.
    void cancel_timers(Group& group);

private:
    void join_group(Group& group, JoinGroupRequest request, Done<JoinGroupAnswer> done);
    [[nodiscard]] bool has_room_for(Group& group, const std::string& member_id) const;
    void join_new(Group& group, JoinGroupRequest request, Done<JoinGroupAnswer> done);
    void hand_out_id(Group& group, std::string member_id, std::chrono::milliseconds time_limit,
                     Done<JoinGroupAnswer> done);
    void join_known(Group& group, JoinGroupRequest request, Done<JoinGroupAnswer> done);
    void add(Group& group, JoinGroupRequest request, std::string member_id,
             Done<JoinGroupAnswer> done);
    void rejoin(Group& group, Member& member, JoinGroupRequest request, Done<JoinGroupAnswer> done);
    void replace_static(Group& group, Member& old, JoinGroupRequest request, std::string new_id,
                        Done<JoinGroupAnswer> done);
    void answer_replaced(const Group& group, const Member& member, bool knows_skipping,
                         std::string leader_before, Done<JoinGroupAnswer> done);

    void rebalance_or_complete(Group& group, std::string_view why);
    void rebalance(Group& group, std::string_view why);
    void wait_for_more(Group& group, std::chrono::milliseconds delay,
                       std::chrono::milliseconds remaining);
    void complete_if_all_joined(Group& group);
    void complete_join(Group& group);
    void remove_missing(Group& group);
    [[nodiscard]] JoinGroupAnswer joined(const Group& group, const Member& member) const;

    void sync_now(Group& group, SyncGroupRequest request, Done<SyncGroupAnswer> done);
    void store_assignment(Group& group, std::vector<SyncGroupRequest::Assignment> assignments);
    /// It cannot be kept: who waits for it is told, and the members may try another one.
    void fail_assignment(Group& group);
    void distribute(const std::string& group_id, std::int32_t generation,
                    std::vector<SyncGroupRequest::Assignment> assignments);
    void store(Group& group, std::string text);

    [[nodiscard]] ErrorCode leave_one(Group& group, const LeaveGroupRequest::Member& leaving);
    void remove(Group& group, Member& member);

    void touch(Group& group, Member& member, std::chrono::milliseconds timeout);
    void expire_member(Group& group, Member& member);
    void expire_id(Group& group, const std::string& member_id);
    void expire_syncs(Group& group);
    void paid_sync(Group& group, const std::string& member_id);

    GroupTable& groups_;
    SlotWriter& writer_;
    base::TimerQueue& timers_;
    const base::Clock& clock_;
    const GroupConfig& config_;
    GroupMetrics& metrics_;
    NewId new_id_;
    bool closed_ = false;
};

}  // namespace kaas::coordinator
