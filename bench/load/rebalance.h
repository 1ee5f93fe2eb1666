#pragma once

#include "load/histogram.h"
#include "load/socket.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace kaas::bench {

/// A group of members of the cooperative protocol, each on a connection of its own, and one that
/// comes and goes. What is timed is what a newcomer causes: it joins, all others learn of it by a
/// heartbeat, join and sync; then the one that gave a partition up joins again with what is left to
/// it, and all do the same once more (KIP-429). Members answer at once: it is the coordinator that
/// is measured, not the pace of heartbeats, which is the clients' own choice.
class RebalanceRounds {
public:
    /// Ends with the group stable.
    RebalanceRounds(const Address& address, std::string group, size_t members);
    ~RebalanceRounds();
    RebalanceRounds(const RebalanceRounds&) = delete;
    RebalanceRounds& operator=(const RebalanceRounds&) = delete;

    /// One coming, which is timed, and one going.
    void round();

    Histogram latency;

private:
    struct Member;
    std::unique_ptr<Member> newcomer();
    void admit(std::unique_ptr<Member> newcomer);
    void rejoin(const Member* joining);
    void hear_of_rebalance(const Member* except);
    void sync_all();

    Address address_;
    std::string group_;
    std::vector<std::unique_ptr<Member>> members_;
    // Of the generation, as its leader was told.
    std::string leader_;
    std::vector<std::string> ids_;
};

}  // namespace kaas::bench
