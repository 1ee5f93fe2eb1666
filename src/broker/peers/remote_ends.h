#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "broker/peers/broker_batches.h"
#include "client/channel.h"
#include "coordinator/transaction_requests.h"
#include "wire/messages/list_offsets.h"

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kaas::broker {

/// Where partitions that other brokers lead end, for whoever looks every few seconds: each look is
/// answered with what an earlier one had asked for, and asks anew. Thread: any.
class RemoteEnds {
public:
    /// What was said longer ago is not said again.
    static constexpr std::chrono::seconds kFresh{15};

    /// Runs on `link`.
    using Call = std::function<void(base::BrokerId to, const wire::ListOffsetsRequest& request,
                                    client::Channel::Done<wire::ListOffsetsRequest> done)>;

    RemoteEnds(base::Executor& link, const base::Clock& clock, Call call);

    /// The high watermark as the leader has told it; empty when it has not lately.
    [[nodiscard]] std::optional<base::Offset> look(base::BrokerId leader, const std::string& topic,
                                                   base::PartitionId partition)
        KAAS_EXCLUDES(mutex_);

private:
    using Place = coordinator::TransactionPartition;

    [[nodiscard]] static wire::ListOffsetsRequest request_of(const std::vector<Place>& batch);
    void take(const wire::ListOffsetsResponse& response) KAAS_EXCLUDES(mutex_);

    struct End {
        base::Offset offset;
        base::Clock::Steady told;
    };

    base::Executor& link_;
    const base::Clock& clock_;
    const Call call_;
    BrokerBatches<Place> batches_;  ///< of the link
    base::Mutex mutex_;
    std::map<Place, End> ends_ KAAS_GUARDED_BY(mutex_);
};

}  // namespace kaas::broker
