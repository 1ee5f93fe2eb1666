#include "base/ids.h"
#include "base/result.h"
#include "catalog/change.h"
#include "catalog/error.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "catalog/topic_name.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <memory>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

namespace kaas::catalog {
namespace {

std::unexpected<Error> misfit(std::string why) {
    return fail(ErrorCode::kMalformed, "change does not fit: " + std::move(why));
}

std::string shown(const base::TopicPartition& id) {
    return id.topic.uuid.to_string() + "-" + std::to_string(id.partition.value());
}

Result<void> check_partitions(const std::vector<Partition>& partitions) {
    for (const auto& partition : partitions) {
        if (partition.runs.empty() || partition.runs.back().first > partition.leader_epoch) {
            return misfit("a partition without a volume for its leader epoch");
        }
    }
    return {};
}

void move_on(Partition& partition, Holder leader, base::LeaderEpoch epoch,
             const std::string& volume) {
    if (partition.volume() != volume) partition.runs.push_back({epoch, volume});
    partition.leader = leader;
    partition.leader_epoch = epoch;
    partition.released = false;
    partition.asked_back = false;
}

bool contains(const std::vector<base::BrokerId>& brokers, base::BrokerId id) {
    return std::ranges::find(brokers, id) != brokers.end();
}

void note_opened(Partition& partition, const OpenedEpoch& opened) {
    partition.opened_epoch = opened.epoch;
    partition.written_epoch = std::max(partition.written_epoch, opened.written);
    const auto lowest =
        partition.written_epoch == base::kNoLeaderEpoch ? opened.epoch : partition.written_epoch;
    auto& runs = partition.runs;
    while (runs.size() > 1 && runs[1].first <= lowest) runs.erase(runs.begin());
    // One run alone says nothing about where it began: so it reads back as it was.
    if (runs.size() == 1) runs.front().first = base::LeaderEpoch(0);
}

}  // namespace

bool is_news(const Partition& partition, const PartitionEpoch& released) {
    return released.epoch == partition.leader_epoch && !partition.released;
}

bool is_news(const Partition& partition, const OpenedEpoch& opened) {
    if (opened.epoch > partition.leader_epoch || opened.epoch < partition.opened_epoch)
        return false;
    return opened.epoch > partition.opened_epoch || opened.written > partition.written_epoch;
}

/// What each change does. Checks come before the first edit, so that a change happens whole or not
/// at all.
class ImageEditor::Applier {
public:
    explicit Applier(ImageEditor& editor) : editor_(editor), image_(*editor.image_) {}

    Result<void> operator()(const TopicCreated& change) {
        const auto& topic = change.topic;
        if (image_.topic(topic.name) != nullptr || image_.topic(topic.id) != nullptr ||
            image_.deletions_.contains(topic.id)) {
            return misfit("topic '" + topic.name + "' was there before");
        }
        if (topic.partitions.empty())
            return misfit("topic '" + topic.name + "' without partitions");
        KAAS_TRY(check_partitions(topic.partitions));
        image_.partition_count_ += topic.partitions.size();
        if (has_collision_characters(topic.name)) {
            const auto unified = unified_topic_name(topic.name);
            const auto* names = image_.by_unified_name_.find(unified);
            auto more = names == nullptr ? std::vector<std::string>() : *names;
            more.push_back(topic.name);
            image_.by_unified_name_.put(unified, std::move(more));
        }
        editor_.put_topic(std::make_shared<Topic>(topic));
        return {};
    }

    Result<void> operator()(const PartitionsAdded& change) {
        if (image_.topic(change.topic) == nullptr) return no_topic(change.topic);
        KAAS_TRY(check_partitions(change.partitions));
        auto& topic = editor_.edit_topic(change.topic);
        topic.partitions.insert(topic.partitions.end(), change.partitions.begin(),
                                change.partitions.end());
        image_.partition_count_ += change.partitions.size();
        return {};
    }

    Result<void> operator()(const ConfigsChanged& change) {
        ConfigMap* configs = nullptr;
        if (const auto* id = std::get_if<base::TopicId>(&change.resource)) {
            if (image_.topic(*id) == nullptr) return no_topic(*id);
            configs = &editor_.edit_topic(*id).configs;
        } else {
            configs = &image_.broker_configs_[std::get<base::BrokerId>(change.resource)];
        }
        for (const auto& [key, value] : change.values) {
            if (value) {
                configs->insert_or_assign(key, *value);
            } else {
                configs->erase(key);
            }
        }
        std::erase_if(image_.broker_configs_,
                      [](const auto& entry) { return entry.second.empty(); });
        return {};
    }

    Result<void> operator()(const TopicDeleted& change) {
        const auto* topic = image_.topic(change.topic);
        if (topic == nullptr) return no_topic(change.topic);
        std::set<std::string> volumes;
        for (const auto& partition : topic->partitions) {
            for (const auto& run : partition.runs) volumes.insert(run.volume);
        }
        image_.deletions_.emplace(
            topic->id, Deletion{topic->name, topic->id, {volumes.begin(), volumes.end()}, nullptr});
        image_.partition_count_ -= topic->partitions.size();
        editor_.drop_topic(change.topic);
        return {};
    }

    Result<void> operator()(const TopicReclaimed& change) {
        if (image_.deletions_.erase(change.topic) == 0) {
            return misfit("no deletion of " + change.topic.uuid.to_string());
        }
        return {};
    }

    Result<void> operator()(const BrokerRegistered& change) {
        image_.brokers_.insert_or_assign(change.broker.id,
                                         std::make_shared<const Broker>(change.broker));
        return {};
    }

    Result<void> operator()(const BrokerGone& change) {
        const auto* known = image_.broker(change.broker);
        if (known == nullptr) return no_broker(change.broker);
        auto gone = std::make_shared<Broker>(*known);
        gone->sessions.clear();
        gone->draining = false;
        image_.brokers_.insert_or_assign(change.broker, std::move(gone));
        return {};
    }

    Result<void> operator()(const BrokerDraining& change) {
        const auto* known = image_.broker(change.broker);
        if (known == nullptr) return no_broker(change.broker);
        auto draining = std::make_shared<Broker>(*known);
        draining->draining = true;
        image_.brokers_.insert_or_assign(change.broker, std::move(draining));
        return {};
    }

    Result<void> operator()(const BrokerUnregistered& change) {
        const auto* known = image_.broker(change.broker);
        if (known == nullptr) return no_broker(change.broker);
        if (known->living()) return misfit("a living broker is unregistered");
        image_.brokers_.erase(change.broker);
        return {};
    }

    Result<void> operator()(const LeadershipRenewed& change) {
        const auto* broker = image_.broker(change.broker);
        if (broker == nullptr) return no_broker(change.broker);
        std::vector<base::TopicId> topics;
        image_.for_each_topic([&](const Topic& topic) {
            if (std::ranges::any_of(topic.partitions, [&](const Partition& partition) {
                    return renewable(partition, *broker);
                })) {
                topics.push_back(topic.id);
            }
        });
        for (const auto& id : topics) {
            for (auto& partition : editor_.edit_topic(id).partitions) {
                if (!renewable(partition, *broker)) continue;
                const auto volume = partition.volume();
                move_on(partition, {broker->id, broker->sessions.find(volume)->second},
                        partition.leader_epoch + 1, volume);
            }
        }
        return {};
    }

    Result<void> operator()(const Assigned& change) {
        std::unordered_set<base::TopicPartition> seen;
        for (const auto& one : change.assignments) {
            const auto* partition = image_.partition(one.partition);
            if (partition == nullptr) return no_partition(one.partition);
            if (one.leader_epoch <= partition->leader_epoch || !seen.insert(one.partition).second) {
                return misfit("leader epoch of " + shown(one.partition) + " does not grow");
            }
        }
        for (const auto& one : change.assignments) {
            auto& partition = edit(one.partition);
            partition.replicas = one.replicas;
            if (contains(partition.target, one.leader.broker)) partition.target.clear();
            move_on(partition, one.leader, one.leader_epoch, one.volume);
        }
        return {};
    }

    Result<void> operator()(const ReplicasChanged& change) {
        for (const auto& [id, replicas] : change.lists) {
            if (image_.partition(id) == nullptr) return no_partition(id);
            if (replicas.empty()) return misfit("no replicas of " + shown(id));
        }
        for (const auto& [id, replicas] : change.lists) {
            auto& partition = edit(id);
            if (!image_.led(partition) || contains(replicas, partition.leader.broker)) {
                partition.replicas = replicas;
                partition.target.clear();
            } else {
                partition.target = replicas;
            }
        }
        return {};
    }

    Result<void> operator()(const AskedBack& change) {
        KAAS_TRY(check_epochs(change.epochs));
        for (const auto& one : change.epochs) {
            const auto& partition = *image_.partition(one.partition);
            if (one.epoch != partition.leader_epoch || partition.released) {
                return misfit("epoch asked back of " + shown(one.partition) + " is not held");
            }
        }
        for (const auto& one : change.epochs) edit(one.partition).asked_back = true;
        return {};
    }

    Result<void> operator()(const Released& change) {
        KAAS_TRY(check_epochs(change.epochs));
        for (const auto& one : change.epochs) {
            if (!is_news(*image_.partition(one.partition), one)) continue;
            auto& partition = edit(one.partition);
            partition.released = true;
            partition.asked_back = false;
        }
        return {};
    }

    Result<void> operator()(const Opened& change) {
        KAAS_TRY(check_epochs(change.epochs));
        for (const auto& one : change.epochs) {
            if (one.written > one.epoch) return misfit("an epoch served from a later one");
        }
        for (const auto& one : change.epochs) {
            if (is_news(*image_.partition(one.partition), one))
                note_opened(edit(one.partition), one);
        }
        return {};
    }

private:
    static std::unexpected<Error> no_topic(const base::TopicId& id) {
        return misfit("no topic " + id.uuid.to_string());
    }
    static std::unexpected<Error> no_partition(const base::TopicPartition& id) {
        return misfit("no partition " + shown(id));
    }
    static std::unexpected<Error> no_broker(base::BrokerId id) {
        return misfit("no broker " + std::to_string(id.value()));
    }

    template <class Entry>
    Result<void> check_epochs(const std::vector<Entry>& entries) const {
        for (const auto& entry : entries) {
            const auto* partition = image_.partition(entry.partition);
            if (partition == nullptr) return no_partition(entry.partition);
            if (entry.epoch > partition->leader_epoch) {
                return misfit("epoch of " + shown(entry.partition) + " is not given yet");
            }
        }
        return {};
    }

    /// Led by an earlier life of `broker`, or given up by it, on a volume where it lives again.
    static bool renewable(const Partition& partition, const Broker& broker) {
        if (partition.leader.broker != broker.id) return false;
        auto session = broker.sessions.find(partition.volume());
        return session != broker.sessions.end() &&
               (partition.released || partition.leader.incarnation != session->second);
    }

    Partition& edit(const base::TopicPartition& id) {
        return editor_.edit_topic(id.topic)
            .partitions[static_cast<std::size_t>(id.partition.value())];
    }

    ImageEditor& editor_;
    Image& image_;
};

ImageEditor::ImageEditor(std::string cluster_id) : image_(std::make_shared<Image>()) {
    image_->cluster_id_ = std::move(cluster_id);
}

// Not make_shared: copying an image is the editor's privilege.
ImageEditor::ImageEditor(const Image& base) : image_(new Image(base)) {}

Result<void> ImageEditor::apply(const Change& change) {
    KAAS_TRY(std::visit(Applier(*this), change));
    ++image_->version_.changes;
    return {};
}

void ImageEditor::begin_epoch(base::ControllerEpoch epoch, base::BrokerId controller) {
    image_->version_ = {epoch, 0};
    image_->controller_ = controller;
}

ImagePtr ImageEditor::finish() && {
    own_.clear();
    return std::move(image_);
}

Topic& ImageEditor::edit_topic(const base::TopicId& id) {
    auto own = own_.find(id);
    if (own != own_.end()) return *own->second;
    auto copy = std::make_shared<Topic>(*image_->topic(id));
    auto& topic = *copy;
    put_topic(std::move(copy));
    return topic;
}

void ImageEditor::put_topic(std::shared_ptr<Topic> topic) {
    image_->by_id_.put(topic->id, topic);
    image_->by_name_.put(topic->name, topic);
    own_.insert_or_assign(topic->id, std::move(topic));
}

void ImageEditor::drop_topic(const base::TopicId& id) {
    const auto topic = *image_->by_id_.find(id);  // keeps the name alive while it is erased
    if (has_collision_characters(topic->name)) {
        const auto unified = unified_topic_name(topic->name);
        auto names = *image_->by_unified_name_.find(unified);
        std::erase(names, topic->name);
        if (names.empty()) {
            image_->by_unified_name_.erase(unified);
        } else {
            image_->by_unified_name_.put(unified, std::move(names));
        }
    }
    image_->by_name_.erase(topic->name);
    image_->by_id_.erase(id);
    own_.erase(id);
}

}  // namespace kaas::catalog
