#pragma once

#include "base/ids.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/controller_address.h"
#include "cluster/error.h"
#include "storage/volume.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// What a person asks of a cluster first: who is there, who reigns, what moves, what is offline.
namespace kaas::cluster {

/// Read from the volumes alone, by nobody's leave: it is the same with every broker dead. Brokers
/// act on the controller's word; this is what stands written, some milliseconds old.
struct ClusterStatus {
    enum class SessionState {
        kAlive,
        kEnded,       ///< marked: its broker can acknowledge nothing any more
        kNotLookedAt  ///< its volume was not given, or cannot be read
    };
    struct Session {
        std::string volume;
        base::Incarnation incarnation;
        SessionState state = SessionState::kNotLookedAt;
        std::string path;  ///< where the broker has the volume
        bool cordoned = false;
        std::size_t leads = 0;  ///< partitions and slots
    };
    enum class MemberState {
        kLiving,
        kDraining,
        kFenced,  ///< a session of it was ended, and the controller has not acted on that yet
        kGone,    ///< known only because partitions name it
    };
    struct Member {
        base::BrokerId id;
        MemberState state = MemberState::kGone;
        std::optional<std::string> rack;
        std::vector<catalog::Endpoint> endpoints;
        std::vector<Session> sessions;
        std::vector<std::string> missing_volumes;  ///< it has data there, and cannot use them
    };
    struct Move {
        std::string topic;
        base::PartitionId partition;
        base::BrokerId from = catalog::kNoBroker;
        std::vector<base::BrokerId> to;  ///< one of these; empty: any that lives
    };
    struct Offline {
        std::string topic;
        base::PartitionId partition;
        std::string why;
    };

    std::string cluster_id;
    base::BrokerId controller = catalog::kNoBroker;
    base::ControllerEpoch epoch{0};         ///< whose controller wrote what stands here
    base::ControllerEpoch newest_epoch{0};  ///< above `epoch`: one that has written nothing yet
    bool reigns = false;                    ///< `newest_epoch` was not ended by another
    std::optional<ControllerAddress> address;
    std::uint64_t changes = 0;
    std::size_t topics = 0;
    std::size_t partitions = 0;
    std::vector<Member> members;
    std::vector<Move> moves;
    std::vector<Offline> offline;
};

/// `volumes`: those whose sessions are to be looked at; one of them has the cluster's own files.
/// Changes nothing. Errors: kStorage, with what is missing.
[[nodiscard]] Result<ClusterStatus> read_cluster_status(
    const std::vector<storage::Volume*>& volumes);
/// The counter of a controller's epoch: while it lives, it is another one every second.
[[nodiscard]] Result<std::int64_t> controller_beat(const std::vector<storage::Volume*>& volumes,
                                                   base::ControllerEpoch epoch);

}  // namespace kaas::cluster
