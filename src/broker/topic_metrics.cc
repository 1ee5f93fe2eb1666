#include "broker/topic_metrics.h"

#include <memory>
#include <string>

namespace kaas::broker {

std::shared_ptr<TopicMetrics::Series> TopicMetrics::series(const base::TopicId& id,
                                                           const std::string& name) {
    base::MutexLock lock(mutex_);
    auto& known = by_topic_[id];
    if (known == nullptr) {
        base::metrics::Labels labels{{"topic", name}};
        known = std::make_shared<Series>(Series{
            registry_.counter("kaas_produce_records_total", "Records appended.", labels),
            registry_.counter("kaas_produce_bytes_total", "Bytes of batches appended.", labels),
            registry_.counter("kaas_fetch_bytes_total", "Bytes of batches sent.", labels)});
    }
    return known;
}

void TopicMetrics::produce_failed(const catalog::Topic* topic, wire::ErrorCode error) {
    registry_
        .counter("kaas_produce_errors_total", "Batches refused or failed.",
                 {{"topic", topic == nullptr ? "" : topic->name},
                  {"error_code", std::string(wire::to_string(error))}})
        .add();
}

void TopicMetrics::fetch_failed(const catalog::Topic* topic, wire::ErrorCode error) {
    registry_
        .counter("kaas_fetch_errors_total", "Partitions that a fetch got an error for.",
                 {{"topic", topic == nullptr ? "" : topic->name},
                  {"error_code", std::string(wire::to_string(error))}})
        .add();
}

}  // namespace kaas::broker
