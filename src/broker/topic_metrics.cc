#include "broker/topic_metrics.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace kaas::broker {

TopicMetrics::TopicMetrics(base::metrics::Registry& registry)
    : registry_(registry), image_(std::make_shared<const catalog::Image>()) {}

void TopicMetrics::apply(const catalog::ImagePtr& next) {
    base::MutexLock lock(mutex_);
    bool took_away = false;
    for (const auto& [before, now] : next->changed_topics(*image_)) {
        if (now) continue;
        took_away = true;
        auto ended = series_.extract(before->id);
        if (ended.empty()) continue;
        for (const auto& [name, labels] : ended.mapped()) registry_.remove(name, labels);
    }
    image_ = next;
    if (took_away) deletions_.fetch_add(1, std::memory_order_release);
}

TopicMetrics::CounterPtr TopicMetrics::counter(const catalog::Topic* topic, std::string_view name,
                                               std::string_view help,
                                               base::metrics::Labels labels) {
    base::MutexLock lock(mutex_);
    labels.emplace_back("topic", topic == nullptr ? "" : topic->name);
    if (topic != nullptr) {
        if (image_->topic(topic->id) == nullptr) return std::make_shared<base::metrics::Counter>();
        series_[topic->id].emplace(name, labels);
    }
    return registry_.shared_counter(name, help, std::move(labels));
}

TopicMetrics::Series& TopicMetrics::Reader::of(const catalog::Topic* topic) {
    const auto deletions = metrics_->deletions_.load(std::memory_order_acquire);
    if (std::exchange(deletions_, deletions) != deletions) known_.clear();
    auto [at, fresh] = known_.try_emplace(topic == nullptr ? base::TopicId{} : topic->id);
    auto& series = at->second;
    if (fresh && topic != nullptr) {
        series.produce_records =
            metrics_->counter(topic, "kaas_produce_records_total", "Records appended.");
        series.produce_bytes =
            metrics_->counter(topic, "kaas_produce_bytes_total", "Bytes of batches appended.");
        series.fetch_bytes =
            metrics_->counter(topic, "kaas_fetch_bytes_total", "Bytes of batches sent.");
    }
    return series;
}

void TopicMetrics::Reader::produced(const catalog::Topic& topic, std::uint64_t records,
                                    std::uint64_t bytes) {
    auto& series = of(&topic);
    series.produce_records->add(records);
    series.produce_bytes->add(bytes);
}

void TopicMetrics::Reader::fetched(const catalog::Topic& topic, std::uint64_t bytes) {
    of(&topic).fetch_bytes->add(bytes);
}

void TopicMetrics::Reader::produce_failed(const catalog::Topic* topic, wire::ErrorCode error) {
    auto& counter = of(topic).produce_errors[error];
    if (counter == nullptr) {
        counter =
            metrics_->counter(topic, "kaas_produce_errors_total", "Batches refused or failed.",
                              {{"error_code", std::string(wire::to_string(error))}});
    }
    counter->add();
}

void TopicMetrics::Reader::fetch_failed(const catalog::Topic* topic, wire::ErrorCode error) {
    auto& counter = of(topic).fetch_errors[error];
    if (counter == nullptr) {
        counter = metrics_->counter(topic, "kaas_fetch_errors_total",
                                    "Partitions that a fetch got an error for.",
                                    {{"error_code", std::string(wire::to_string(error))}});
    }
    counter->add();
}

}  // namespace kaas::broker
