#pragma once

#include "base/timer_queue.h"
#include "catalog/model.h"
#include "coordinator/group_metrics.h"
#include "coordinator/group_offsets.h"
#include "coordinator/group_requests.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kaas::coordinator {

/// A member of a group (Apache `ClassicGroupMember`). It stays where it is in memory.
struct Member {
    MemberIdentity identity;
    std::string client_id{};
    std::string client_host{};
    std::chrono::milliseconds rebalance_timeout{};
    std::chrono::milliseconds session_timeout{};
    std::vector<MemberProtocol> protocols{};  ///< the best one first
    std::string assignment{};
    bool is_new = false;  ///< has not got through its first rebalance
    /// Armed while the member may fall silent.
    base::TimerQueue::Entry session{};
    /// Who waits for the assignment; empty: nobody. `Group::answer_join` is for those that join.
    Done<SyncGroupAnswer> syncing{};
    Done<JoinGroupAnswer> joining{};

    [[nodiscard]] const std::string& id() const { return identity.member_id; }
    [[nodiscard]] bool is_static() const { return identity.group_instance_id.has_value(); }
    /// Waits for an answer of ours, so its silence says nothing.
    [[nodiscard]] bool is_waiting() const { return !is_new && (joining || syncing); }
    /// Empty for a protocol that the member does not have.
    [[nodiscard]] const std::string& metadata(std::string_view protocol) const;
    void answer_sync(SyncGroupAnswer answer);
};

/// A consumer group: its members, how far its rebalance is, and its offsets (Apache
/// `ClassicGroup`). Keeps the rules that hold among members; who calls decides when things happen,
/// and cancels a member's timer before the member goes. Counts itself in the metrics.
/// Thread: the coordinators' loop, or whoever loads the slot.
class Group {
public:
    Group(std::string id, GroupMetrics& metrics);
    ~Group();
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

    /// What the journal says of a group beside its offsets: its last generation that had an
    /// assignment, or that it is empty.
    struct Stored {
        std::int32_t generation = 0;
        std::optional<std::int64_t> since_ms{};
        std::optional<std::string> protocol_type{};
        std::optional<std::string> protocol_name{};
        std::optional<std::string> leader{};
        struct StoredMember {
            MemberIdentity identity;
            std::string client_id;
            std::string client_host;
            std::chrono::milliseconds rebalance_timeout;
            std::chrono::milliseconds session_timeout;
            std::string metadata;
            std::string assignment;
        };
        std::vector<StoredMember> members{};
        catalog::UnknownKeys unknown{};
    };
    /// Replaces all but the offsets. Only before the group serves.
    void load(Stored stored);

    [[nodiscard]] const std::string& id() const { return id_; }
    [[nodiscard]] GroupState state() const { return state_; }
    [[nodiscard]] bool is(GroupState state) const { return state_ == state; }
    /// Where it came from: a rebalance from Empty waits for more members.
    [[nodiscard]] GroupState previous_state() const { return previous_state_; }
    void move_to(GroupState state, std::int64_t now_ms);
    /// When it came to its state; empty if a journal did not say.
    [[nodiscard]] std::optional<std::int64_t> since_ms() const { return since_ms_; }

    [[nodiscard]] std::int32_t generation() const { return generation_; }
    [[nodiscard]] const std::optional<std::string>& protocol_type() const { return protocol_type_; }
    [[nodiscard]] const std::optional<std::string>& protocol_name() const { return protocol_name_; }
    [[nodiscard]] const std::optional<std::string>& leader() const { return leader_; }
    [[nodiscard]] bool is_leader(std::string_view member_id) const { return leader_ == member_id; }

    [[nodiscard]] std::map<std::string, Member>& members() { return members_; }
    [[nodiscard]] const std::map<std::string, Member>& members() const { return members_; }
    [[nodiscard]] Member* find(const std::string& member_id);
    /// The member that has this instance id now.
    [[nodiscard]] Member* find_static(const std::string& instance_id);
    /// NONE, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    [[nodiscard]] ErrorCode check_member(const MemberIdentity& claimed);
    /// Longest of all.
    [[nodiscard]] std::chrono::milliseconds rebalance_timeout() const;

    /// True if a member with these protocols fits to the others.
    [[nodiscard]] bool supports(const std::string& protocol_type,
                                const std::vector<MemberProtocol>& protocols) const;
    /// Requires `supports`, and that neither id is a member's. The first one leads.
    Member& add(JoinGroupRequest request, std::string member_id);
    /// As it comes back, with what it knows now. Requires `supports`.
    void update(Member& member, JoinGroupRequest request);
    /// Answers whoever waits under this id (UNKNOWN_MEMBER_ID), and elects another leader if it
    /// led.
    void remove(const std::string& member_id);
    /// A static member has come back under a new id, and keeps everything else; the old id is
    /// fenced.
    Member& rename_static(Member& member, std::string new_id);

    /// The member waits for the end of a rebalance.
    void await_join(Member& member, Done<JoinGroupAnswer> done);
    /// Answers if the member waits.
    void answer_join(Member& member, JoinGroupAnswer answer);
    [[nodiscard]] std::size_t joining_count() const { return joining_; }
    /// Nobody is missing, and nobody who was told to come back under an id has yet to.
    [[nodiscard]] bool all_joined() const {
        return members_.size() == joining_ && expected_.empty();
    }
    /// The leader is somebody who takes part in the rebalance. False: nobody does.
    [[nodiscard]] bool elect_joined_leader();

    /// Ids that were given out and not used yet (KIP-394), each with its time limit.
    [[nodiscard]] std::map<std::string, base::TimerQueue::Entry>& expected() { return expected_; }
    /// Members that owe a SyncGroup in this generation.
    [[nodiscard]] std::set<std::string>& owes_sync() { return owes_sync_; }

    /// The next generation, with the protocol that most members put first of those that all have;
    /// Empty without members. Resets who owes a SyncGroup.
    void begin_generation(std::int64_t now_ms);
    /// What most members would vote for now. Requires members.
    [[nodiscard]] std::string select_protocol() const;

    /// True also when nobody can tell.
    [[nodiscard]] bool is_subscribed_to(const std::string& topic) const;
    [[nodiscard]] bool uses_consumer_protocol() const { return protocol_type_ == "consumer"; }
    /// The topics of all members, as far as they told: Apache
    /// `ClassicGroup.computeSubscribedTopics`.
    [[nodiscard]] const std::optional<std::set<std::string>>& subscribed() const {
        return subscribed_;
    }

    GroupOffsets offsets{};
    /// What stands in the journal, as an object's text without braces; empty: nothing but offsets.
    std::string stored_text{};
    /// An assignment of this generation is on its way to the journal.
    bool storing = false;
    /// A member came while the first rebalance waited, so it waits on.
    bool member_added = false;
    base::TimerQueue::Entry join_timer{};
    base::TimerQueue::Entry sync_timer{};
    catalog::UnknownKeys unknown{};

private:
    void count_votes(const Member& member, int by);
    [[nodiscard]] std::optional<std::set<std::string>> compute_subscribed() const;

    std::string id_;
    GroupMetrics& metrics_;
    GroupState state_ = GroupState::kEmpty;
    GroupState previous_state_ = GroupState::kEmpty;
    std::optional<std::int64_t> since_ms_{};
    std::int32_t generation_ = 0;
    std::optional<std::string> protocol_type_{};
    std::optional<std::string> protocol_name_{};
    std::optional<std::string> leader_{};
    std::map<std::string, Member> members_;
    std::map<std::string, std::string> static_members_;  ///< instance id to member id
    std::map<std::string, std::size_t> support_;         ///< protocol to how many have it
    std::size_t joining_ = 0;
    std::map<std::string, base::TimerQueue::Entry> expected_;
    std::set<std::string> owes_sync_;
    std::optional<std::set<std::string>> subscribed_{};
};

}  // namespace kaas::coordinator
