#pragma once

#include "base/ids.h"
#include "catalog/error.h"
#include "catalog/image.h"
#include "catalog/model.h"

#include <boost/json/object.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

/// Changes of metadata: what a line of the control log says, and what it does to an image.
namespace kaas::catalog {

struct TopicCreated {
    Topic topic;
};

/// Appends partitions to a topic.
struct PartitionsAdded {
    base::TopicId topic;
    std::vector<Partition> partitions;
};

/// Dynamic configs; a value that is absent goes back to its default.
struct ConfigsChanged {
    /// A topic, or a broker (kNoBroker: all of them).
    std::variant<base::TopicId, base::BrokerId> resource;
    std::vector<std::pair<std::string, std::optional<std::string>>> values;
};

/// The name is free at once; the directories go later (`TopicReclaimed`).
struct TopicDeleted {
    base::TopicId topic;
};

struct TopicReclaimed {
    base::TopicId topic;
};

/// A broker joins, or comes back as a new incarnation. Partitions that an earlier life led are not
/// led until `LeadershipRenewed` or `Assigned`.
struct BrokerRegistered {
    Broker broker;
};

/// Every session of the broker is marked or ended.
struct BrokerGone {
    base::BrokerId broker;
};

/// The broker is about to leave: until it registers again it serves what it has, and is given
/// nothing new.
struct BrokerDraining {
    base::BrokerId broker;
};

/// A broker that is gone is forgotten, but for the replicas that name it.
struct BrokerUnregistered {
    base::BrokerId broker;
};

/// The broker's present incarnations lead again what its earlier ones led, each partition under its
/// next leader epoch: one line for a restart, however many partitions there are (DESIGN 6).
struct LeadershipRenewed {
    base::BrokerId broker;
};

/// A new leader epoch of one partition.
struct Assignment {
    base::TopicPartition partition;
    std::vector<base::BrokerId> replicas;
    Holder leader;
    base::LeaderEpoch leader_epoch;
    std::string volume;
};
struct Assigned {
    std::vector<Assignment> assignments;
};

/// Who shall hold a partition, preferred leader first.
struct ReplicaList {
    base::TopicPartition partition;
    std::vector<base::BrokerId> replicas;
};
/// Edits the replicas, without a new leader epoch. A list without the present leader is the
/// partition's `target` until one of it leads; any other holds at once, and ends a target.
struct ReplicasChanged {
    std::vector<ReplicaList> lists;
};

struct PartitionEpoch {
    base::TopicPartition partition;
    base::LeaderEpoch epoch;
    friend auto operator<=>(const PartitionEpoch&, const PartitionEpoch&) = default;
};

/// The controller wants these epochs back, each the newest of its partition (DESIGN 9): what
/// follows is `Released`, or a new epoch because the holder died.
struct AskedBack {
    std::vector<PartitionEpoch> epochs;
};

/// Holders gave these epochs up, for ever.
struct Released {
    std::vector<PartitionEpoch> epochs;
};

/// A holder serves: its log is open, from what `written` holds (none: nothing had been written
/// yet).
struct OpenedEpoch {
    base::TopicPartition partition;
    base::LeaderEpoch epoch;
    base::LeaderEpoch written = base::kNoLeaderEpoch;
    friend auto operator<=>(const OpenedEpoch&, const OpenedEpoch&) = default;
};
struct Opened {
    std::vector<OpenedEpoch> epochs;
};

/// False when a report says nothing that the partition does not know, or comes too late to matter.
[[nodiscard]] bool is_news(const Partition& partition, const PartitionEpoch& released);
[[nodiscard]] bool is_news(const Partition& partition, const OpenedEpoch& opened);

using Change =
    std::variant<TopicCreated, PartitionsAdded, ConfigsChanged, TopicDeleted, TopicReclaimed,
                 BrokerRegistered, BrokerGone, BrokerDraining, BrokerUnregistered,
                 LeadershipRenewed, Assigned, ReplicasChanged, AskedBack, Released, Opened>;

/// The line of a change: `{"change":"topic-created",...}`.
[[nodiscard]] boost::json::object to_json(const Change& change);
/// Errors: kMalformed; kNewerFormat for a change that this version does not know.
[[nodiscard]] Result<Change> parse_change(const boost::json::object& line);

/// Builds the next image from one that stays as it is.
/// Thread: one at a time.
class ImageEditor {
public:
    /// Starts a cluster without anything in it.
    explicit ImageEditor(std::string cluster_id);
    explicit ImageEditor(const Image& base);

    /// All of the change, or nothing. Errors: kMalformed, when the change does not fit the image (a
    /// topic that exists already, an epoch that goes back): a line that no controller wrote on this
    /// image.
    [[nodiscard]] Result<void> apply(const Change& change);
    /// A controller takes over: its changes are counted from none.
    void begin_epoch(base::ControllerEpoch epoch, base::BrokerId controller);

    /// What is built so far.
    [[nodiscard]] const Image& image() const { return *image_; }
    /// Ends the editing.
    [[nodiscard]] ImagePtr finish() &&;

private:
    friend class PictureCodec;
    class Applier;

    Topic& edit_topic(const base::TopicId& id);
    void put_topic(std::shared_ptr<Topic> topic);
    void drop_topic(const base::TopicId& id);

    std::shared_ptr<Image> image_;
    /// Topics that only this editor holds, so that a change of 10,000 partitions copies them once.
    std::unordered_map<base::TopicId, std::shared_ptr<Topic>> own_;
};

/// The whole image as the first line of a control log.
[[nodiscard]] boost::json::object to_picture(const Image& image);
/// Errors: kMalformed, kNewerFormat.
[[nodiscard]] Result<ImagePtr> parse_picture(const boost::json::object& picture);

}  // namespace kaas::catalog
