#include "cluster/cluster_status.h"

#include "base/ids.h"
#include "base/result.h"
#include "catalog/control_log.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/balancer.h"
#include "cluster/controller_address.h"
#include "cluster/election.h"
#include "cluster/error.h"
#include "cluster/identity.h"
#include "cluster/session.h"
#include "storage/error.h"
#include "storage/volume.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kaas::cluster {
namespace {

using Status = ClusterStatus;
using SessionState = Status::SessionState;

/// The volumes that were given, by the names that they have in the cluster.
struct Given {
    std::map<std::string, storage::Volume*, std::less<>> by_name;
    storage::Volume* cluster = nullptr;
};

Result<Given> identify(const std::vector<storage::Volume*>& volumes) {
    Given given;
    for (auto* volume : volumes) {
        KAAS_TRY_ASSIGN(sign, read_identity(*volume));
        if (!sign) return fail(ErrorCode::kStorage, volume->root() + ": no volume of kaas is here");
        if (volume->hold(catalog::control_path().directory)) given.cluster = volume;
        given.by_name.emplace(sign->volume, volume);
    }
    if (given.cluster == nullptr) {
        return fail(ErrorCode::kStorage, volumes.front()->root() +
                                             ": the cluster's own files (__cluster) are on another "
                                             "volume; name that one, too");
    }
    return given;
}

SessionState look_at(storage::Volume& volume, const std::string& path) {
    auto held = volume.hold(path);
    if (!held) {
        const bool is_gone = held.error().code == storage::ErrorCode::kNotFound;
        return is_gone ? SessionState::kEnded : SessionState::kNotLookedAt;
    }
    auto seen = (*held)->look();
    if (!seen) return SessionState::kNotLookedAt;
    return *seen == storage::Liveness::kAlive ? SessionState::kAlive : SessionState::kEnded;
}

/// The newest epoch whose controller has written a picture, and what it says by now.
Result<catalog::ImagePtr> newest_image(storage::Volume& cluster, base::ControllerEpoch newest) {
    for (auto epoch = newest; epoch > base::ControllerEpoch(0); epoch = epoch - 1) {
        auto image = catalog::glimpse_control(cluster, epoch);
        if (!image) return failed(std::move(image).error());
        if (*image != nullptr) return std::move(*image);
    }
    return fail(ErrorCode::kStorage, cluster.root() + ": no controller has written anything yet");
}

class Reader {
public:
    Reader(const catalog::Image& image, const Given& given) : image_(image), given_(given) {}

    void read(Status& status) {
        for (const auto& [id, broker] : image_.brokers()) status.members.push_back(member(*broker));
        for (const auto* topic : image_.topics_by_name()) {
            for (std::size_t i = 0; i < topic->partitions.size(); ++i) {
                read(status, *topic, base::PartitionId(static_cast<std::int32_t>(i)));
            }
        }
    }

private:
    Status::Member member(const catalog::Broker& broker) {
        Status::Member out{.id = broker.id,
                           .state = Status::MemberState::kGone,
                           .rack = broker.rack,
                           .endpoints = broker.endpoints,
                           .sessions = {},
                           .missing_volumes = {}};
        bool is_fenced = false;
        for (const auto& [volume, incarnation] : broker.sessions) {
            const auto known = broker.volumes.find(volume);
            const auto state = session(broker.id, volume, incarnation);
            is_fenced |= state == SessionState::kEnded;
            out.sessions.push_back({.volume = volume,
                                    .incarnation = incarnation,
                                    .state = state,
                                    .path = known == broker.volumes.end() ? "" : known->second.path,
                                    .cordoned = is_cordoned(image_, broker, volume)});
        }
        for (const auto& [volume, known] : broker.volumes) {
            if (broker.living() && !broker.sessions.contains(volume)) {
                out.missing_volumes.push_back(volume);
            }
        }
        if (broker.living()) {
            out.state = is_fenced         ? Status::MemberState::kFenced
                        : broker.draining ? Status::MemberState::kDraining
                                          : Status::MemberState::kLiving;
        }
        return out;
    }

    SessionState session(base::BrokerId id, const std::string& volume,
                         const base::Incarnation& incarnation) {
        const auto given = given_.by_name.find(volume);
        if (given == given_.by_name.end()) return SessionState::kNotLookedAt;
        const auto [known, is_new] = sessions_.try_emplace(incarnation);
        if (is_new) known->second = look_at(*given->second, session_path(id, incarnation));
        return known->second;
    }

    void read(Status& status, const catalog::Topic& topic, base::PartitionId index) {
        const auto& partition = topic.partitions[static_cast<std::size_t>(index.value())];
        if (partition.asked_back || !partition.target.empty()) {
            status.moves.push_back({.topic = topic.name,
                                    .partition = index,
                                    .from = partition.leader.broker,
                                    .to = partition.target});
        }
        auto why = why_offline(partition);
        if (!why.empty()) status.offline.push_back({topic.name, index, std::move(why)});
        count(status, partition);
    }

    std::string why_offline(const catalog::Partition& partition) {
        const auto leader = partition.leader.broker;
        if (leader == catalog::kNoBroker) return "nobody has led it yet";
        if (partition.released) {
            return fmt::format("broker {} has released epoch {}, and nobody has the next one",
                               leader, partition.leader_epoch);
        }
        if (image_.led(partition)) {
            const auto state = session(leader, partition.volume(), partition.leader.incarnation);
            if (state != SessionState::kEnded) return {};
            return fmt::format(
                "the session of broker {} on volume '{}' was ended; the controller "
                "has not acted on it yet",
                leader, partition.volume());
        }
        const auto* broker = image_.broker(leader);
        if (broker != nullptr && broker->living()) {
            return fmt::format("volume '{}' is missing at broker {}", partition.volume(), leader);
        }
        return fmt::format("broker {} is gone, and no broker lives that has volume '{}'", leader,
                           partition.volume());
    }

    void count(Status& status, const catalog::Partition& partition) const {
        for (auto& member : status.members) {
            if (member.id != partition.leader.broker) continue;
            for (auto& session : member.sessions) {
                session.leads += session.incarnation == partition.leader.incarnation &&
                                 session.volume == partition.volume();
            }
        }
    }

    const catalog::Image& image_;
    const Given& given_;
    std::map<base::Incarnation, SessionState> sessions_;
};

}  // namespace

Result<ClusterStatus> read_cluster_status(const std::vector<storage::Volume*>& volumes) {
    KAAS_TRY_ASSIGN(given, identify(volumes));
    KAAS_TRY_ASSIGN(newest, newest_election(*given.cluster));
    KAAS_TRY_ASSIGN(image, newest_image(*given.cluster, newest));
    Status status;
    status.cluster_id = image->cluster_id();
    status.controller = image->controller();
    status.epoch = image->version().epoch;
    status.newest_epoch = newest;
    status.reigns = look_at(*given.cluster, election_path(newest)) == SessionState::kAlive;
    status.changes = image->version().changes;
    status.topics = image->topic_count();
    status.partitions = image->partition_count();
    // A hint that helps people; without it the rest is as true.
    if (auto address = newest_address(*given.cluster)) status.address = std::move(*address);
    Reader(*image, given).read(status);
    return status;
}

Result<std::int64_t> controller_beat(const std::vector<storage::Volume*>& volumes,
                                     base::ControllerEpoch epoch) {
    KAAS_TRY_ASSIGN(given, identify(volumes));
    auto held = given.cluster->hold(election_path(epoch));
    if (!held) return failed(std::move(held).error());
    auto beat = (*held)->last_beat();
    if (!beat) return failed(std::move(beat).error());
    return *beat;
}

}  // namespace kaas::cluster
