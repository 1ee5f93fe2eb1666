#include "load/rebalance.h"

#include "common/api.h"
#include "common/fd.h"
#include "load/coordinator_messages.h"
#include "load/process.h"
#include "load/socket.h"
#include "load/workloads.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::bench {
namespace {

/// As large as the metadata of a cooperative-sticky member of a few partitions is.
std::string metadata(size_t owned_partitions) {
    return std::string(150 + owned_partitions * 4, 'm');
}

constexpr size_t kAssignmentBytes = 100;

}  // namespace

struct RebalanceRounds::Member {
    explicit Member(const Address& address) : socket(connect_to(address)) {}

    void send(const std::string& frame) { send_all(socket, frame); }

    template <typename Read>
    auto receive(Api api, Read read) {
        const auto answer = receive_frame(socket);
        auto reader = after_header(api, answer);
        return read(reader);
    }

    void send_join(size_t owned_partitions) {
        send(join_group_request(self, metadata(owned_partitions)));
    }

    JoinAnswer receive_join() {
        auto found = receive(Api::kJoinGroup, read_join_group);
        if (!found) fail("JoinGroup answer does not parse");
        if (found->error != kMemberIdRequired) expect_no_error("JoinGroup", found->error);
        self.id = found->member;
        self.generation = found->generation;
        return *found;
    }

    Fd socket;
    Membership self;
};

RebalanceRounds::~RebalanceRounds() = default;

RebalanceRounds::RebalanceRounds(const Address& address, std::string group, size_t members)
    : address_(address), group_(std::move(group)) {
    for (size_t i = 0; i < members; ++i) admit(newcomer());
}

/// One with its id, which is not in the group yet.
std::unique_ptr<RebalanceRounds::Member> RebalanceRounds::newcomer() {
    auto member = std::make_unique<Member>(address_);
    member->self.group = group_;
    member->send_join(0);
    member->receive_join();
    return member;
}

void RebalanceRounds::admit(std::unique_ptr<Member> newcomer) {
    newcomer->send_join(0);
    hear_of_rebalance(nullptr);
    members_.push_back(std::move(newcomer));
    rejoin(members_.back().get());
}

/// All join, `joining` has asked already; and sync.
void RebalanceRounds::rejoin(const Member* joining) {
    for (auto& member : members_) {
        if (member.get() != joining) member->send_join(1);
    }
    for (auto& member : members_) {
        auto joined = member->receive_join();
        if (joined.leader != joined.member) continue;
        leader_ = std::move(joined.leader);
        ids_ = std::move(joined.members);
    }
    if (ids_.size() != members_.size()) fail("a generation without all of the members");
    sync_all();
}

void RebalanceRounds::sync_all() {
    const std::string assignment(kAssignmentBytes, 'a');
    for (auto& member : members_) {
        const bool leads = member->self.id == leader_;
        member->send(sync_group_request(member->self, leads ? ids_ : std::vector<std::string>{},
                                        assignment));
    }
    for (auto& member : members_) {
        expect_no_error("SyncGroup", member->receive(Api::kSyncGroup, read_throttle_and_error));
    }
}

void RebalanceRounds::hear_of_rebalance(const Member* except) {
    for (auto& member : members_) {
        if (member.get() != except) member->send(heartbeat_request(member->self));
    }
    for (auto& member : members_) {
        if (member.get() == except) continue;
        auto heard = member->receive(Api::kHeartbeat, read_throttle_and_error);
        // The join that it will hear of may still be on its way.
        while (heard == 0) {
            member->send(heartbeat_request(member->self));
            heard = member->receive(Api::kHeartbeat, read_throttle_and_error);
        }
        if (heard != kRebalanceInProgress) expect_no_error("Heartbeat", heard);
    }
}

void RebalanceRounds::round() {
    auto comes = newcomer();
    const auto began = now_ns();
    admit(std::move(comes));
    // What it owns is another number than before, so that the group has to be balanced anew.
    auto* gave_up = members_.front().get();
    gave_up->send_join(0);
    hear_of_rebalance(gave_up);
    rejoin(gave_up);
    latency.record(now_ns() - began);

    auto& leaver = *members_.back();
    leaver.send(leave_group_request(leaver.self));
    expect_no_error("LeaveGroup", leaver.receive(Api::kLeaveGroup, read_throttle_and_error));
    members_.pop_back();
    hear_of_rebalance(nullptr);
    rejoin(nullptr);
}

}  // namespace kaas::bench
