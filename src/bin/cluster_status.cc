#include "bin/cluster_status.h"

#include "base/ids.h"
#include "base/mutex.h"
#include "bin/cli.h"
#include "catalog/model.h"
#include "cluster/cluster_status.h"
#include "storage/posix_volume.h"
#include "storage/volume.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::bin {
namespace {

namespace json = boost::json;
using cluster::ClusterStatus;
using MemberState = ClusterStatus::MemberState;
using SessionState = ClusterStatus::SessionState;

std::string_view name_of(MemberState state) {
    switch (state) {
        case MemberState::kLiving: return "living";
        case MemberState::kDraining: return "draining";
        case MemberState::kFenced: return "fenced";
        case MemberState::kGone: return "gone";
    }
    return "gone";
}
std::string_view name_of(SessionState state) {
    switch (state) {
        case SessionState::kAlive: return "alive";
        case SessionState::kEnded: return "ended";
        case SessionState::kNotLookedAt: return "not looked at";
    }
    return "not looked at";
}

std::vector<int> ids(const std::vector<base::BrokerId>& brokers) {
    std::vector<int> out;
    for (const auto id : brokers) out.push_back(id.value());
    return out;
}

// For scripts.

json::object to_json(const ClusterStatus::Member& member) {
    json::object out{{"broker_id", member.id.value()}, {"state", name_of(member.state)}};
    if (member.rack) out["rack"] = *member.rack;
    json::array endpoints;
    for (const auto& one : member.endpoints) {
        endpoints.push_back({{"listener", one.listener},
                             {"security_protocol", one.security_protocol},
                             {"host", one.host},
                             {"port", one.port}});
    }
    out["endpoints"] = std::move(endpoints);
    json::array sessions;
    for (const auto& one : member.sessions) {
        sessions.push_back({{"volume", one.volume},
                            {"path", one.path},
                            {"incarnation", one.incarnation.uuid.to_string()},
                            {"state", name_of(one.state)},
                            {"cordoned", one.cordoned},
                            {"leads", one.leads}});
    }
    out["sessions"] = std::move(sessions);
    out["missing_volumes"] =
        json::array(member.missing_volumes.begin(), member.missing_volumes.end());
    return out;
}

std::string to_json(const ClusterStatus& status, bool is_heard) {
    json::object controller{{"broker_id", status.controller.value()},
                            {"epoch", status.epoch.value()},
                            {"newest_epoch", status.newest_epoch.value()},
                            {"reigns", status.reigns},
                            {"heard", is_heard},
                            {"changes", status.changes}};
    if (status.address && status.address->epoch == status.newest_epoch) {
        controller["host"] = status.address->host;
        controller["port"] = status.address->port;
    }
    json::array members;
    for (const auto& member : status.members) members.push_back(to_json(member));
    json::array moves;
    for (const auto& move : status.moves) {
        const auto to = ids(move.to);
        moves.push_back({{"topic", move.topic},
                         {"partition", move.partition.value()},
                         {"from", move.from.value()},
                         {"to", json::array(to.begin(), to.end())}});
    }
    json::array offline;
    for (const auto& one : status.offline) {
        offline.push_back(
            {{"topic", one.topic}, {"partition", one.partition.value()}, {"why", one.why}});
    }
    return json::serialize(json::object{{"cluster_id", status.cluster_id},
                                        {"controller", std::move(controller)},
                                        {"topics", status.topics},
                                        {"partitions", status.partitions},
                                        {"members", std::move(members)},
                                        {"moves", std::move(moves)},
                                        {"offline", std::move(offline)}}) +
           '\n';
}

// For people.

std::string controller_text(const ClusterStatus& status, bool is_heard) {
    if (!status.reigns) {
        return fmt::format("none; the last was broker {}, epoch {}", status.controller,
                           status.epoch);
    }
    if (status.newest_epoch > status.epoch) {
        return fmt::format("epoch {} was just won, after broker {} with epoch {}",
                           status.newest_epoch, status.controller, status.epoch);
    }
    const auto where = status.address && status.address->epoch == status.epoch
                           ? fmt::format(" at {}:{}", status.address->host, status.address->port)
                           : "";
    return fmt::format("broker {}{}, epoch {}, {} changes{}", status.controller, where,
                       status.epoch, status.changes,
                       is_heard ? "" : "; NOT HEARD: what follows may be old");
}

void print_member(std::FILE* out, const ClusterStatus::Member& member) {
    fmt::print(out, "broker {:<5} {:<9}", member.id, name_of(member.state));
    if (member.rack) fmt::print(out, " rack {}", *member.rack);
    for (const auto& one : member.endpoints) {
        fmt::print(out, " {}://{}:{}", one.listener, one.host, one.port);
    }
    fmt::print(out, "\n");
    for (const auto& one : member.sessions) {
        fmt::print(out, "  volume {} at {}: session {} {}, leads {}{}\n", one.volume, one.path,
                   one.incarnation.uuid.to_string(), name_of(one.state), one.leads,
                   one.cordoned ? ", cordoned" : "");
    }
    for (const auto& volume : member.missing_volumes) {
        fmt::print(out, "  volume {}: missing\n", volume);
    }
}

void print(std::FILE* out, const ClusterStatus& status, bool is_heard) {
    fmt::print(out, "cluster      {}\ncontroller   {}\ntopics       {}, with {} partitions\n",
               status.cluster_id, controller_text(status, is_heard), status.topics,
               status.partitions);
    for (const auto& member : status.members) print_member(out, member);
    fmt::print(out, "moves        {}\n", status.moves.size());
    for (const auto& move : status.moves) {
        fmt::print(out, "  {}-{}: from {} to {}\n", move.topic, move.partition, move.from,
                   move.to.empty() ? "any" : fmt::format("{}", fmt::join(ids(move.to), " or ")));
    }
    fmt::print(out, "offline      {}\n", status.offline.size());
    for (const auto& one : status.offline) {
        fmt::print(out, "  {}-{}: {}\n", one.topic, one.partition, one.why);
    }
}

/// Nobody marks the sessions of a cluster that has died as a whole: only its controller's silence
/// tells of it.
bool is_heard(const std::vector<storage::Volume*>& volumes, const ClusterStatus& status) {
    constexpr std::chrono::milliseconds kPause{50};
    constexpr std::chrono::seconds kPatience{3};  // it counts once a second
    if (!status.reigns) return false;
    const auto first = cluster::controller_beat(volumes, status.newest_epoch);
    base::Mutex mutex;
    base::CondVar nobody;
    for (auto waited = kPause; first && waited < kPatience; waited += kPause) {
        base::MutexLock lock(mutex);
        nobody.wait_for(mutex, kPause);
        const auto now = cluster::controller_beat(volumes, status.newest_epoch);
        if (now && *now != *first) return true;
    }
    return false;
}

}  // namespace

bool show_cluster_status(const ClusterStatusCommand& command, std::FILE* out, std::string& error) {
    std::vector<std::unique_ptr<storage::PosixVolume>> opened;
    std::vector<storage::Volume*> volumes;
    for (const auto& path : command.paths) {
        auto volume = storage::PosixVolume::open(path);
        if (!volume) {
            error = volume.error().context;
            return false;
        }
        volumes.push_back(volume->get());
        opened.push_back(std::move(*volume));
    }
    const auto status = cluster::read_cluster_status(volumes);
    if (!status) {
        error = status.error().context;
        return false;
    }
    const bool heard = is_heard(volumes, *status);
    if (command.json) {
        fmt::print(out, "{}", to_json(*status, heard));
    } else {
        print(out, *status, heard);
    }
    return true;
}

}  // namespace kaas::bin
