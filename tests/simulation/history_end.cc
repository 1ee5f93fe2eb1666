#include "base/ids.h"
#include "broker.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "catalog/slot.h"
#include "cluster/controller.h"
#include "cluster/node.h"
#include "cluster/partition_table.h"
#include "history.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kaas::simulation {

// The end.

std::string History::what_is_wrong() {
    (void)all_is_well();
    return wrong_;
}

bool History::all_is_well() {
    wrong_.clear();
    cluster::Node* reigning = nullptr;
    for (int id = 1; id <= settings_.brokers; ++id) {
        auto* broker = running(id);
        if (broker == nullptr || broker->node() == nullptr) {
            wrong_ = fmt::format("b{} does not run", id);
            return false;
        }
        if (broker->process.frozen) {
            wrong_ = fmt::format("b{} is frozen", id);
            return false;
        }
        if (broker->node()->controller().reigning()) {
            if (reigning != nullptr) {
                wrong_ = "two reign";
                return false;
            }
            reigning = broker->node();
        }
    }
    if (reigning == nullptr) {
        wrong_ = "nobody reigns";
        return false;
    }
    return all_agree(*reigning) && all_is_served(*reigning->partitions().image());
}

/// All brokers live for the one that reigns, and have heard all that it said.
bool History::all_agree(cluster::Node& reigning) {
    const auto image = reigning.partitions().image();
    for (int id = 1; id <= settings_.brokers; ++id) {
        const auto* broker = image->broker(base::BrokerId(id));
        if (broker == nullptr || !broker->living() || broker->draining) {
            wrong_ = fmt::format("b{} does not live for the controller", id);
            return false;
        }
        if (running(id)->node()->partitions().image()->version() != image->version()) {
            wrong_ = fmt::format("b{} has not heard of the last image", id);
            return false;
        }
    }
    return true;
}

bool History::all_is_served(const catalog::Image& image) {
    bool well = true;
    image.for_each_topic([&](const catalog::Topic& topic) {
        if (!well) return;
        for (std::size_t i = 0; i < topic.partitions.size(); ++i) {
            const auto& partition = topic.partitions[i];
            const auto leader = image.leader(partition);
            const base::PartitionId index(static_cast<std::int32_t>(i));
            bool serves = false;
            if (leader != catalog::kNoBroker) {
                auto* broker = running(leader.value());
                if (const auto kind = catalog::slot_kind(topic.name)) {
                    serves = broker->keeper().lists().contains({*kind, index});
                } else {
                    const auto hosted = broker->node()->partitions().reader().find(topic.id, index);
                    serves = hosted.state == cluster::Hosting::kServing;
                }
            }
            if (!serves) {
                well = false;
                wrong_ = fmt::format("{}-{} of leader {}, epoch {}, is not served", topic.name, i,
                                     leader, partition.leader_epoch);
                return;
            }
        }
    });
    return well;
}

/// All of it is written to and read once more, as clients do.
void History::check_all() {
    const auto image = running(1)->node()->partitions().image();
    ledger_.check_end(*image);
    std::vector<base::TopicPartition> all;
    image->for_each_topic([&](const catalog::Topic& topic) {
        if (catalog::slot_kind(topic.name)) return;
        for (std::size_t i = 0; i < topic.partitions.size(); ++i) {
            all.push_back({topic.id, base::PartitionId(static_cast<std::int32_t>(i))});
        }
    });
    std::ranges::sort(all);
    for (const auto& id : all) {
        if (use(id)) continue;
        ledger_.violated(fmt::format("{}-{} is served, and not written and read",
                                     id.topic.uuid.to_string(), id.partition));
    }
    for (int id = 1; id <= settings_.brokers; ++id) {
        auto* broker = running(id);
        if (broker == nullptr || broker->node() == nullptr) continue;
        for (const auto& [slot, list] : broker->keeper().lists()) {
            ledger_.slot_seen(slot, list.first + 1, list.second);
        }
    }
}

/// Its leader may move meanwhile, to even things out.
bool History::use(const base::TopicPartition& id) {
    for (int attempt = 0; attempt < 20; ++attempt, machine_.sleep(std::chrono::milliseconds(500))) {
        const auto image = running(1)->node()->partitions().image();
        const auto* topic = image->topic(id.topic);
        const auto* partition = image->partition(id);
        if (topic == nullptr || partition == nullptr) return true;
        const auto leads = image->leader(*partition);
        if (leads == catalog::kNoBroker) continue;
        auto* leader = running(leads.value());
        if (leader == nullptr || leader->node() == nullptr) continue;
        const bool durable = !topic->configs.contains("flush.messages");
        if (append(*leader, id, fmt::format("end.{}", ++values_), durable) &&
            read_whole(*leader, id)) {
            return true;
        }
    }
    return false;
}

}  // namespace kaas::simulation
