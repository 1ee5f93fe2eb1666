#pragma once

#include "base/ids.h"
#include "catalog/image.h"
#include "cluster/slot_host.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kaas::simulation {

/// Everything that anybody outside was told, and what must hold of it. The first contradiction is
/// kept. Values of records and of slots are used once.
class Ledger {
public:
    [[nodiscard]] const std::optional<std::string>& violation() const { return violation_; }
    void violated(std::string what);

    // Records.
    /// What an acknowledgement must lie behind: everything acknowledged before it was asked for.
    [[nodiscard]] std::int64_t floor_of(const base::TopicPartition& id) const;
    void acked(const base::TopicPartition& id, base::LeaderEpoch epoch, const std::string& writer,
               std::int64_t offset, const std::string& value, std::int64_t floor, bool durable);
    /// Somebody read the whole log of a leader, and `known` had been acknowledged by it before.
    void seen(const base::TopicPartition& id, base::LeaderEpoch epoch, std::int64_t known,
              const std::vector<std::string>& values, bool durable);
    /// So much was acknowledged under just this epoch.
    [[nodiscard]] std::int64_t acked_under(const base::TopicPartition& id,
                                           base::LeaderEpoch epoch) const;
    /// A machine lost what was not synced: what was promised without a sync is void.
    void forget_what_is_not_durable();

    // Slots: lists of texts that only grow.
    void slot_acked(const cluster::SlotId& id, base::LeaderEpoch epoch, const std::string& text);
    void slot_opened(const cluster::SlotId& id, base::LeaderEpoch epoch, const std::string& writer,
                     const std::vector<std::string>& texts);
    /// What a slot holds has everything that was acknowledged below `epoch`.
    void slot_seen(const cluster::SlotId& id, base::LeaderEpoch epoch,
                   const std::vector<std::string>& texts);

    // The controller.
    /// A process goes by this image.
    void applied(const std::string& process, const catalog::Image& image,
                 catalog::ImageVersion& last);
    void created(const std::string& name, base::TopicId id);
    void asked_to_delete(const std::string& name) { deletes_asked_.insert(name); }
    [[nodiscard]] bool may_go(const std::string& name) const {
        return deletes_asked_.contains(name);
    }
    void deleted(base::TopicId id) { deleted_.insert(id); }
    void producer_ids(std::int64_t first, std::int64_t count);
    /// What was answered stands in the image of the end.
    void check_end(const catalog::Image& image);

    struct Counts {
        std::size_t acked = 0;
        std::size_t read = 0;
        std::size_t slot_acked = 0;
        std::size_t slot_opened = 0;
        std::size_t images = 0;
        std::size_t reigns = 0;
        std::size_t created = 0;
        std::size_t deleted = 0;
    };
    [[nodiscard]] Counts counts() const;

private:
    struct Record {
        std::string value;
        std::optional<base::LeaderEpoch> acked;  ///< under which it was; none: only seen
        bool durable = true;
    };
    struct Partition {
        std::map<std::int64_t, Record> records;
        std::int64_t acked_end = 0;
        std::map<base::LeaderEpoch, std::int64_t> acked_ends;
        std::map<base::LeaderEpoch, std::string> writers;
    };
    struct Slot {
        std::vector<std::pair<base::LeaderEpoch, std::string>> acked;
        std::map<base::LeaderEpoch, std::string> writers;
    };
    void is_writer(std::map<base::LeaderEpoch, std::string>& writers, const std::string& where,
                   base::LeaderEpoch epoch, const std::string& writer);

    std::optional<std::string> violation_;
    std::map<base::TopicPartition, Partition> partitions_;
    std::map<cluster::SlotId, Slot> slots_;
    std::map<catalog::ImageVersion, std::uint64_t> images_;
    std::map<base::ControllerEpoch, base::BrokerId> reigns_;
    std::map<base::TopicId, std::string> created_;
    std::set<std::string> deletes_asked_;
    std::set<base::TopicId> deleted_;
    std::map<std::int64_t, std::int64_t> producers_;
    Counts counts_;
};

}  // namespace kaas::simulation
