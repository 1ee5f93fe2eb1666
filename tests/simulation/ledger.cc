#include "ledger.h"

#include "base/ids.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/slot_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kaas::simulation {
namespace {

std::string name_of(const base::TopicPartition& id) {
    return fmt::format("{}-{}", id.topic.uuid.to_string(), id.partition);
}
std::string name_of(const cluster::SlotId& id) { return fmt::format("slot {}", id.slot); }

/// What two images of one version must have in common.
std::uint64_t sum_of(const catalog::Image& image) {
    std::uint64_t sum = std::hash<std::string>()(image.cluster_id());
    const auto mix = [&](std::uint64_t value) { sum = (sum ^ value) * 0x100000001B3U; };
    const auto mix_uuid = [&](const base::Uuid& uuid) { mix(std::hash<base::Uuid>()(uuid)); };
    mix(static_cast<std::uint64_t>(image.controller().value()));
    for (const auto& [id, broker] : image.brokers()) {
        mix(static_cast<std::uint64_t>(id.value()) * 2 + (broker->draining ? 1 : 0));
        for (const auto& [volume, session] : broker->sessions) mix_uuid(session.uuid);
    }
    std::uint64_t topics = 0;  // in whatever order
    const auto outer = sum;
    image.for_each_topic([&](const catalog::Topic& topic) {
        sum = outer;
        mix_uuid(topic.id.uuid);
        mix(std::hash<std::string>()(topic.name));
        for (const auto& partition : topic.partitions) {
            for (const auto replica : partition.replicas) {
                mix(static_cast<std::uint64_t>(replica.value()));
            }
            mix_uuid(partition.leader.incarnation.uuid);
            mix(static_cast<std::uint64_t>(partition.leader_epoch.value()));
            mix((partition.released ? 1U : 0U) + (partition.asked_back ? 2U : 0U));
        }
        topics += sum;
    });
    return outer ^ topics;
}

}  // namespace

void Ledger::violated(std::string what) {
    if (!violation_) violation_ = std::move(what);
}

std::int64_t Ledger::floor_of(const base::TopicPartition& id) const {
    const auto found = partitions_.find(id);
    return found == partitions_.end() ? 0 : found->second.acked_end;
}

std::int64_t Ledger::acked_under(const base::TopicPartition& id, base::LeaderEpoch epoch) const {
    const auto found = partitions_.find(id);
    if (found == partitions_.end()) return 0;
    const auto end = found->second.acked_ends.find(epoch);
    return end == found->second.acked_ends.end() ? 0 : end->second;
}

void Ledger::is_writer(std::map<base::LeaderEpoch, std::string>& writers, const std::string& where,
                       base::LeaderEpoch epoch, const std::string& writer) {
    const auto [known, is_new] = writers.emplace(epoch, writer);
    if (!is_new && known->second != writer) {
        violated(fmt::format("{}: both {} and {} write under epoch {}", where, known->second,
                             writer, epoch));
    }
}

void Ledger::acked(const base::TopicPartition& id, base::LeaderEpoch epoch,
                   const std::string& writer, std::int64_t offset, const std::string& value,
                   std::int64_t floor, bool durable) {
    ++counts_.acked;
    auto& partition = partitions_[id];
    is_writer(partition.writers, name_of(id), epoch, writer);
    if (durable && offset < floor) {
        violated(fmt::format("{}: {} is acknowledged at offset {}, below {} that was before it",
                             name_of(id), value, offset, floor));
    }
    const auto [known, is_new] = partition.records.emplace(offset, Record{value, epoch, durable});
    if (!is_new && known->second.value != value) {
        violated(fmt::format("{}: offset {} is acknowledged for {} under epoch {}, and was {}",
                             name_of(id), offset, value, epoch, known->second.value));
    }
    known->second.acked = epoch;
    known->second.durable = durable;
    partition.acked_end = std::max(partition.acked_end, offset + 1);
    auto& end = partition.acked_ends[epoch];
    end = std::max(end, offset + 1);
}

void Ledger::seen(const base::TopicPartition& id, base::LeaderEpoch epoch, std::int64_t known,
                  const std::vector<std::string>& values, bool durable) {
    ++counts_.read;
    auto& partition = partitions_[id];
    const auto end = static_cast<std::int64_t>(values.size());
    if (end < known) {
        violated(
            fmt::format("{}: a read under epoch {} ends at {}, and {} were acknowledged "
                        "under it before",
                        name_of(id), epoch, end, known));
    }
    for (const auto& [offset, record] : partition.records) {
        // A later owner has found all that an earlier one has promised.
        if (offset >= end && record.acked && *record.acked < epoch) {
            violated(
                fmt::format("{}: {} at offset {}, acknowledged under epoch {}, is lost under "
                            "epoch {}, which ends at {}",
                            name_of(id), record.value, offset, *record.acked, epoch, end));
        }
    }
    for (std::int64_t offset = 0; offset < end; ++offset) {
        const auto& value = values[static_cast<std::size_t>(offset)];
        const auto [record, is_new] =
            partition.records.emplace(offset, Record{value, std::nullopt, durable});
        if (!is_new && record->second.value != value) {
            violated(fmt::format("{}: at offset {} there was {}, and under epoch {} it is {}",
                                 name_of(id), offset, record->second.value, epoch, value));
        }
    }
}

void Ledger::forget_what_is_not_durable() {
    for (auto& [id, partition] : partitions_) {
        const bool lost = std::erase_if(partition.records,
                                        [](const auto& one) { return !one.second.durable; }) > 0;
        if (!lost) continue;
        partition.acked_end = 0;
        partition.acked_ends.clear();
    }
}

void Ledger::slot_acked(const cluster::SlotId& id, base::LeaderEpoch epoch,
                        const std::string& text) {
    ++counts_.slot_acked;
    slots_[id].acked.emplace_back(epoch, text);
}

void Ledger::slot_opened(const cluster::SlotId& id, base::LeaderEpoch epoch,
                         const std::string& writer, const std::vector<std::string>& texts) {
    ++counts_.slot_opened;
    is_writer(slots_[id].writers, name_of(id), epoch, writer);
    slot_seen(id, epoch, texts);
}

void Ledger::slot_seen(const cluster::SlotId& id, base::LeaderEpoch epoch,
                       const std::vector<std::string>& texts) {
    auto& slot = slots_[id];
    auto at = texts.begin();
    for (const auto& [acked, text] : slot.acked) {
        if (acked >= epoch) continue;  // the zombie's late look at what is not its own any more
        const auto found = std::find(at, texts.end(), text);
        if (found == texts.end()) {
            return violated(
                fmt::format("{}: {}, acknowledged under epoch {}, is lost or out of "
                            "order under epoch {}",
                            name_of(id), text, acked, epoch));
        }
        at = std::next(found);
    }
    if (std::set<std::string>(texts.begin(), texts.end()).size() != texts.size()) {
        violated(fmt::format("{}: a change is there twice under epoch {}", name_of(id), epoch));
    }
}

void Ledger::applied(const std::string& process, const catalog::Image& image,
                     catalog::ImageVersion& last) {
    ++counts_.images;
    const auto version = image.version();
    if (version < last) {
        violated(fmt::format("{} goes from image {}.{} back to {}.{}", process, last.epoch,
                             last.changes, version.epoch, version.changes));
    }
    last = version;
    const auto sum = sum_of(image);
    const auto [known, is_new] = images_.emplace(version, sum);
    if (!is_new && known->second != sum) {
        violated(fmt::format("there are two images {}.{}, and {} has the other one", version.epoch,
                             version.changes, process));
    }
    const auto [reign, is_first] = reigns_.emplace(version.epoch, image.controller());
    if (!is_first && reign->second != image.controller()) {
        violated(fmt::format("controller epoch {} is both broker {}'s and broker {}'s",
                             version.epoch, reign->second, image.controller()));
    }
}

void Ledger::created(const std::string& name, base::TopicId id) {
    ++counts_.created;
    created_[id] = name;
}

void Ledger::producer_ids(std::int64_t first, std::int64_t count) {
    const auto next = producers_.lower_bound(first);
    const bool overlaps = (next != producers_.end() && next->first < first + count) ||
                          (next != producers_.begin() && std::prev(next)->second > first);
    if (overlaps) violated(fmt::format("producer ids from {} on are given twice", first));
    producers_.emplace(first, first + count);
}

void Ledger::check_end(const catalog::Image& image) {
    for (const auto& [id, name] : created_) {
        const bool there = image.topic(id) != nullptr;
        if (deleted_.contains(id) ? there : !there && !deletes_asked_.contains(name)) {
            violated(fmt::format("topic {} ({}) was {}, and is {}", name, id.uuid.to_string(),
                                 there ? "deleted" : "created", there ? "there" : "gone"));
        }
    }
}

Ledger::Counts Ledger::counts() const {
    auto counts = counts_;
    counts.reigns = reigns_.size();
    counts.deleted = deleted_.size();
    return counts;
}

}  // namespace kaas::simulation
