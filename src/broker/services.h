#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "base/metrics.h"
#include "broker/config/broker_config.h"
#include "broker/coordination/coordination.h"
#include "broker/coordination/slot_topics.h"
#include "broker/fetch_sessions.h"
#include "broker/parked_fetches.h"
#include "broker/producer_ids.h"
#include "broker/refusals.h"
#include "broker/sasl_exchanges.h"
#include "broker/topic_metrics.h"
#include "cluster/node.h"
#include "security/scram.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace kaas::broker {

class ControllerCalls;
class TransactionPeers;

/// What one reactor keeps for the handlers that run on it. No lock: only that thread comes here.
struct ReactorState {
    cluster::PartitionReader partitions;
    ParkedFetches parked;
    TopicMetrics::Reader topic_metrics;
    SaslExchanges sasl = {};
};

/// What handlers work with. Everything outlives every call.
/// Thread: any, but `state_of` gives each reactor its own.
struct Services {
    const BrokerConfig& config;
    cluster::Node& node;
    base::Executor& io_pool;
    base::metrics::Registry& metrics;
    const base::Clock& clock;
    FetchSessions& fetch_sessions;
    ControllerCalls& controller_calls;
    ProducerIds& producer_ids;
    Coordination& coordination;
    SlotTopics& slot_topics;
    TransactionPeers* transaction_peers;  ///< null where there are no other brokers
    Refusals refusals;
    /// What a broker must show on the internal listener; null where there is none.
    const security::ScramCredential* broker_credential = nullptr;

    /// Filled at start, by reactor; never changes while requests come.
    std::unordered_map<const base::Executor*, std::unique_ptr<ReactorState>> states{};
    static constexpr std::size_t kApiKeys = 128;  // above every key that Kafka has
    /// By API key; null for keys that are not served.
    std::array<base::metrics::Histogram*, kApiKeys> latencies{};

    [[nodiscard]] ReactorState& state_of(const base::Executor& reactor) const {
        return *states.at(&reactor);
    }
    /// Only for keys that are served.
    [[nodiscard]] base::metrics::Histogram& latency_of(std::int16_t api_key) const {
        return *latencies.at(static_cast<std::size_t>(api_key));
    }
};

}  // namespace kaas::broker
