#pragma once

#include "base/clock.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "catalog/change.h"
#include "catalog/control_log.h"
#include "catalog/image.h"
#include "cluster/admin.h"
#include "cluster/error.h"
#include "storage/session_check.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kaas::cluster {

/// What the cluster's configuration says to the controller.
struct ControllerConfig {
    std::int32_t default_partitions = 1;          ///< `num.partitions`
    std::int16_t default_replication_factor = 1;  ///< `default.replication.factor`
    /// Why these configs cannot be a topic's, in Apache's words; absent when they can.
    std::function<std::optional<std::string>(const catalog::ConfigMap&)> topic_config_fault;
};

/// A batch of changes that is durable and checked: what brokers are told.
struct Push {
    catalog::ImagePtr image;               ///< after all of them
    std::vector<catalog::Change> changes;  ///< in order; together they lead to `image`
};

/// The one writer of the cluster's metadata while its election epoch lasts.
///
/// Requests queue up; `step` takes all that wait, validates each against what the ones before it
/// did, writes their lines with one fsync, checks its own session, and only then pushes the image
/// and answers (DESIGN rule 7). The first failure of log or check ends it for good: everything in
/// hand and later gets kNotController. A create, delete or growth is answered when every living
/// broker has applied it, or at its deadline.
///
/// Thread: requests and `applied` from any; `step` from one at a time, which may block (the control
/// thread).
class Controller {
public:
    struct Parts {
        catalog::ControlLog log;         ///< this epoch's, with its picture durable
        catalog::ImagePtr image;         ///< what the picture says
        storage::SessionCheck* session;  ///< of the election epoch; outlives the controller
        const base::Clock* clock = &base::Clock::system();
        ControllerConfig config;
        /// Gets each push in order, on the thread of `step`.
        std::function<void(const Push&)> push;
        /// Called, from any thread, when there is work for `step`.
        std::function<void()> wake = [] {};
    };

    explicit Controller(Parts parts);
    ~Controller();

    void create_topics(CreateTopics request, Reply<std::vector<CreatedTopic>> reply);
    void delete_topics(DeleteTopics request, Reply<std::vector<DeletedTopic>> reply);
    void create_partitions(CreatePartitions request, Reply<std::vector<GrownTopic>> reply);
    void alter_configs(AlterConfigs request, Reply<std::monostate> reply);
    void allocate_producer_ids(std::int32_t count, Reply<ProducerIdBlock> reply);

    /// A broker joins or comes back with new sessions; its partitions are renewed in the same step.
    /// The caller has proven every earlier session of it marked or ended.
    void register_broker(catalog::Broker broker, Reply<catalog::ImageVersion> reply);
    /// A broker has left: it released everything, or every session of it is marked.
    void remove_broker(base::BrokerId broker, Reply<std::monostate> reply);
    /// What holders report about their partitions. Stale reports are dropped.
    void released(std::vector<catalog::PartitionEpoch> epochs);
    void written(std::vector<catalog::PartitionEpoch> epochs);
    /// No volume has anything left of a deleted topic.
    void reclaimed(base::TopicId topic);

    /// `broker` has applied all images up to `version`: it routes by them, and its new logs are
    /// open.
    void applied(base::BrokerId broker, catalog::ImageVersion version);

    /// Does all that waits, and answers what is due. Gives the time when it wants to be called
    /// again.
    base::Clock::Steady step();
    /// False once the reign is over.
    [[nodiscard]] bool reigning() const { return reigning_.load(std::memory_order_acquire); }
    /// Ends the reign in good order: the log gets its last line. Later requests get kNotController.
    void resign();

    [[nodiscard]] base::ControllerEpoch epoch() const;

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
    std::atomic<bool> reigning_ = true;
};

}  // namespace kaas::cluster
