#include "coordinator/group.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "coordinator/group_metrics.h"
#include "coordinator/group_requests.h"
#include "wire/message.h"
#include "wire/messages/consumer_protocol_subscription.h"
#include "wire/reader.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::coordinator {
namespace {

const std::string kNothing;

/// The topics of what a consumer tells its leader. All versions begin as version 0 does. False:
/// that is no subscription.
bool add_topics(const std::string& metadata, std::set<std::string>& topics) {
    wire::Reader in(base::as_bytes(metadata));
    (void)in.int16();  // its version
    const auto subscription = wire::decode<wire::ConsumerProtocolSubscription>(in, 0);
    if (!subscription) return false;
    for (const auto& topic : subscription->topics) topics.emplace(std::string_view(topic));
    return true;
}

}  // namespace

const std::string& Member::metadata(std::string_view protocol) const {
    const auto found = std::ranges::find(protocols, protocol, &MemberProtocol::name);
    return found == protocols.end() ? kNothing : found->metadata;
}

void Member::answer_sync(SyncGroupAnswer answer) {
    if (!syncing) return;
    std::exchange(syncing, {})(std::move(answer));
}

Group::Group(std::string id, GroupMetrics& metrics) : id_(std::move(id)), metrics_(metrics) {
    metrics_.of(state_).add(1);
}

Group::~Group() { metrics_.of(state_).add(-1); }

void Group::load(Stored stored) {
    members_.clear();
    static_members_.clear();
    support_.clear();
    generation_ = stored.generation;
    since_ms_ = stored.since_ms;
    protocol_type_ = std::move(stored.protocol_type);
    protocol_name_ = std::move(stored.protocol_name);
    leader_ = std::move(stored.leader);
    unknown = std::move(stored.unknown);
    for (auto& kept : stored.members) {
        auto& member = members_[kept.identity.member_id];
        if (kept.identity.group_instance_id) {
            static_members_[*kept.identity.group_instance_id] = kept.identity.member_id;
        }
        member.identity = std::move(kept.identity);
        member.client_id = std::move(kept.client_id);
        member.client_host = std::move(kept.client_host);
        member.rebalance_timeout = kept.rebalance_timeout;
        member.session_timeout = kept.session_timeout;
        member.protocols.push_back({protocol_name_.value_or(""), std::move(kept.metadata)});
        member.assignment = std::move(kept.assignment);
        count_votes(member, 1);
    }
    metrics_.of(state_).add(-1);
    state_ = members_.empty() ? GroupState::kEmpty : GroupState::kStable;
    metrics_.of(state_).add(1);
    subscribed_ = compute_subscribed();
}

void Group::move_to(GroupState state, std::int64_t now_ms) {
    metrics_.of(state_).add(-1);
    previous_state_ = std::exchange(state_, state);
    metrics_.of(state_).add(1);
    since_ms_ = now_ms;
}

Member* Group::find(const std::string& member_id) {
    const auto place = members_.find(member_id);
    return place == members_.end() ? nullptr : &place->second;
}

Member* Group::find_static(const std::string& instance_id) {
    const auto place = static_members_.find(instance_id);
    return place == static_members_.end() ? nullptr : find(place->second);
}

ErrorCode Group::check_member(const MemberIdentity& claimed) {
    if (claimed.group_instance_id) {
        const auto* holder = find_static(*claimed.group_instance_id);
        if (holder == nullptr) return ErrorCode::kUnknownMemberId;
        if (holder->id() != claimed.member_id) return ErrorCode::kFencedInstanceId;
    }
    return members_.contains(claimed.member_id) ? ErrorCode::kNone : ErrorCode::kUnknownMemberId;
}

std::chrono::milliseconds Group::rebalance_timeout() const {
    std::chrono::milliseconds longest{0};
    for (const auto& [id, member] : members_) longest = std::max(longest, member.rebalance_timeout);
    return longest;
}

bool Group::supports(const std::string& protocol_type,
                     const std::vector<MemberProtocol>& protocols) const {
    if (state_ == GroupState::kEmpty) return !protocol_type.empty() && !protocols.empty();
    return protocol_type_ == protocol_type &&
           std::ranges::any_of(protocols, [&](const MemberProtocol& protocol) {
               const auto support = support_.find(protocol.name);
               return (support == support_.end() ? 0 : support->second) == members_.size();
           });
}

Member& Group::add(JoinGroupRequest request, std::string member_id) {
    if (members_.empty()) protocol_type_ = request.protocol_type;
    if (!leader_) leader_ = member_id;
    expected_.erase(member_id);
    auto& member = members_[member_id];
    if (request.member.group_instance_id) {
        static_members_[*request.member.group_instance_id] = member_id;
    }
    member.identity = {std::move(member_id), std::move(request.member.group_instance_id)};
    member.client_id = std::move(request.client.client_id);
    member.client_host = std::move(request.client.client_host);
    member.rebalance_timeout = request.rebalance_timeout;
    member.session_timeout = request.session_timeout;
    member.protocols = std::move(request.protocols);
    member.is_new = true;
    count_votes(member, 1);
    return member;
}

void Group::update(Member& member, JoinGroupRequest request) {
    count_votes(member, -1);
    member.protocols = std::move(request.protocols);
    count_votes(member, 1);
    member.rebalance_timeout = request.rebalance_timeout;
    member.session_timeout = request.session_timeout;
}

void Group::await_join(Member& member, Done<JoinGroupAnswer> done) {
    // A request that was sent again takes the place of the one that nobody waits for any more.
    answer_join(member, {.error = ErrorCode::kRebalanceInProgress, .member_id = member.id()});
    member.joining = std::move(done);
    ++joining_;
}

void Group::remove(const std::string& member_id) {
    if (auto* member = find(member_id); member != nullptr) {
        answer_join(*member, {.error = ErrorCode::kUnknownMemberId});
        member->answer_sync({.error = ErrorCode::kUnknownMemberId});
        count_votes(*member, -1);
        if (member->is_static()) static_members_.erase(*member->identity.group_instance_id);
        KAAS_ASSERT(!member->session.armed());
        members_.erase(member_id);
    }
    if (is_leader(member_id)) {
        leader_ = members_.empty() ? std::nullopt : std::optional(members_.begin()->first);
    }
    owes_sync_.erase(member_id);
}

Member& Group::rename_static(Member& member, std::string new_id) {
    answer_join(member, {.error = ErrorCode::kFencedInstanceId, .member_id = member.id()});
    member.answer_sync({.error = ErrorCode::kFencedInstanceId});
    auto node = members_.extract(member.id());
    if (is_leader(node.key())) leader_ = new_id;
    if (owes_sync_.erase(node.key()) > 0) owes_sync_.insert(new_id);
    static_members_[*member.identity.group_instance_id] = new_id;
    node.key() = new_id;
    node.mapped().identity.member_id = std::move(new_id);
    node.mapped().is_new = false;
    return members_.insert(std::move(node)).position->second;
}

void Group::answer_join(Member& member, JoinGroupAnswer answer) {
    if (!member.joining) return;
    --joining_;
    std::exchange(member.joining, {})(std::move(answer));
}

bool Group::elect_joined_leader() {
    if (!leader_) return false;
    if (const auto* leader = find(*leader_); leader != nullptr && leader->joining) return true;
    for (const auto& [id, member] : members_) {
        if (!member.joining) continue;
        leader_ = id;
        return true;
    }
    return false;
}

void Group::begin_generation(std::int64_t now_ms) {
    generation_ = static_cast<std::int32_t>(static_cast<std::uint32_t>(generation_) + 1);
    protocol_name_ = members_.empty() ? std::nullopt : std::optional(select_protocol());
    subscribed_ = compute_subscribed();
    move_to(members_.empty() ? GroupState::kEmpty : GroupState::kCompletingRebalance, now_ms);
    owes_sync_.clear();
    storing = false;
}

std::string Group::select_protocol() const {
    std::map<std::string_view, std::size_t> votes;
    for (const auto& [id, member] : members_) {
        for (const auto& protocol : member.protocols) {
            const auto support = support_.find(protocol.name);
            if (support == support_.end() || support->second != members_.size()) continue;
            ++votes[protocol.name];
            break;
        }
    }
    KAAS_ASSERT(!votes.empty());
    return std::string(
        std::ranges::max_element(votes, {}, [](const auto& vote) { return vote.second; })->first);
}

bool Group::is_subscribed_to(const std::string& topic) const {
    return subscribed_ ? subscribed_->contains(topic) : uses_consumer_protocol();
}

std::optional<std::set<std::string>> Group::compute_subscribed() const {
    if (!uses_consumer_protocol()) return std::nullopt;
    std::set<std::string> topics;
    if (members_.empty()) return topics;
    if (!protocol_name_) return std::nullopt;
    for (const auto& [id, member] : members_) {
        if (!add_topics(member.metadata(*protocol_name_), topics)) return std::nullopt;
    }
    return topics;
}

void Group::count_votes(const Member& member, int by) {
    for (const auto& protocol : member.protocols) {
        auto& support = support_[protocol.name];
        support += static_cast<std::size_t>(by);
        if (support == 0) support_.erase(protocol.name);
    }
}

}  // namespace kaas::coordinator
