#pragma once

#include "base/ids.h"
#include "catalog/config_map.h"

#include <boost/json/object.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// What a cluster knows about itself: plain values, shared by pointer once they stand in an
/// `Image`.
namespace kaas::catalog {

inline constexpr base::BrokerId kNoBroker{-1};

/// Keys of a JSON object that this version does not know: kept, and written back where they stood.
/// Null when there are none.
using UnknownKeys = std::shared_ptr<const boost::json::object>;

/// One life of a broker on one volume: the one writer of a leader epoch (DESIGN 9).
struct Holder {
    base::BrokerId broker = kNoBroker;
    base::Incarnation incarnation;
    friend bool operator==(const Holder&, const Holder&) = default;
};

/// Leader epochs from `first` on, until the next run, live on `volume`.
struct EpochRun {
    base::LeaderEpoch first{0};
    std::string volume;
    friend bool operator==(const EpochRun&, const EpochRun&) = default;
};

struct Partition {
    /// Ordered; the head is the preferred leader. Metadata's `replicas` (DESIGN 8).
    std::vector<base::BrokerId> replicas;
    /// What `replicas` becomes once one of these leads; empty: it stays as it is. The present
    /// leader is not among them, for it is always among the replicas.
    std::vector<base::BrokerId> target{};
    Holder leader;
    base::LeaderEpoch leader_epoch{0};
    /// The leader gave this epoch up, for ever (DESIGN 9): nobody serves until the next one.
    bool released = false;
    /// The controller wants this epoch back, to let another lead: its holder serves no more, and
    /// releases it.
    bool asked_back = false;
    /// Newest epoch whose holder has opened its log, and with it closed all epochs between the one
    /// that it serves from and its own: a taker's walk need look at neither.
    base::LeaderEpoch opened_epoch = base::kNoLeaderEpoch;
    /// The epoch that it serves from: durable on its volume. None: nothing had been written.
    base::LeaderEpoch written_epoch = base::kNoLeaderEpoch;
    /// Where each epoch that a walk may look at lives; never empty, the last run holds
    /// `leader_epoch`.
    std::vector<EpochRun> runs;
    UnknownKeys unknown{};

    /// Volume of the current leader epoch.
    [[nodiscard]] const std::string& volume() const { return runs.back().volume; }
    /// Volume of an epoch that a walk may look at.
    [[nodiscard]] const std::string& volume_of(base::LeaderEpoch epoch) const;
};

/// An epoch that a taker looks at, newest first.
struct WalkedEpoch {
    base::LeaderEpoch epoch;
    std::string volume;
    bool written = false;  ///< known to be there
    friend bool operator==(const WalkedEpoch&, const WalkedEpoch&) = default;
};
/// What the holder of `partition.leader_epoch` walks when it opens the log (DESIGN 6).
[[nodiscard]] std::vector<WalkedEpoch> epochs_to_walk(const Partition& partition);

struct Topic {
    std::string name;
    base::TopicId id;
    std::vector<Partition> partitions;  ///< by index
    ConfigMap configs{};                ///< only what differs from the defaults
    UnknownKeys unknown{};

    [[nodiscard]] const Partition* partition(base::PartitionId index) const {
        auto at = static_cast<std::size_t>(index.value());
        return index.value() >= 0 && at < partitions.size() ? &partitions[at] : nullptr;
    }
};
using TopicPtr = std::shared_ptr<const Topic>;

/// Where clients (or brokers) reach a broker: one entry of `advertised.listeners`.
struct Endpoint {
    std::string listener;
    std::string security_protocol;
    std::string host;
    std::uint16_t port = 0;
    friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

/// What a broker says of a volume.
struct BrokerVolume {
    std::string path;  ///< of its root, as it stands there
    std::map<std::string, std::string> labels{};
    bool default_eligible = true;  ///< takes partitions of topics that ask for no volume
    bool cordoned = false;         ///< by the broker's own settings, which a dynamic one overrules
    bool takes_partitions = true;  ///< false: has the cluster's own files and nothing else
    friend bool operator==(const BrokerVolume&, const BrokerVolume&) = default;
};

struct Broker {
    base::BrokerId id = kNoBroker;
    /// Its incarnation on each volume that it uses. Empty: gone, known only because partitions name
    /// it.
    std::map<std::string, base::Incarnation, std::less<>> sessions{};
    /// Every volume that it has data on, by name: one without a session is missing.
    std::map<std::string, BrokerVolume, std::less<>> volumes{};
    std::vector<Endpoint> endpoints{};
    std::optional<std::string> rack{};
    /// Serves what it has, gets nothing new, and is about to leave.
    bool draining = false;
    UnknownKeys unknown{};

    [[nodiscard]] bool living() const { return !sessions.empty(); }
    [[nodiscard]] const Endpoint* endpoint(std::string_view listener) const {
        for (const auto& one : endpoints) {
            if (one.listener == listener) return &one;
        }
        return nullptr;
    }
};
using BrokerPtr = std::shared_ptr<const Broker>;
/// True when `registered`, a broker of an image that has just been registered so, would be the same
/// again.
[[nodiscard]] bool same_registration(const Broker& registered, const Broker& again);

/// A deleted topic whose directories are not yet reclaimed.
struct Deletion {
    std::string name;
    base::TopicId id;
    std::vector<std::string> volumes;  ///< where it may have directories, sorted
    UnknownKeys unknown{};
};

}  // namespace kaas::catalog
