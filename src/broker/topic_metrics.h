#pragma once

#include "base/ids.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "catalog/model.h"
#include "wire/error_code.h"

#include <memory>
#include <string>
#include <unordered_map>

namespace kaas::broker {

/// What is counted of each topic (KUBERNETES 5): `kaas_produce_*`, `kaas_fetch_*`.
/// Thread: any; reactors look up through a `Reader` of their own.
class TopicMetrics {
public:
    struct Series {
        base::metrics::Counter& produce_records;
        base::metrics::Counter& produce_bytes;
        base::metrics::Counter& fetch_bytes;
    };

    /// A reactor's own way in: no lock once it has met the topic.
    class Reader {
    public:
        explicit Reader(TopicMetrics& metrics) : metrics_(&metrics) {}
        [[nodiscard]] Series& of(const base::TopicId& id, const std::string& name) {
            auto [at, fresh] = known_.try_emplace(id);
            if (fresh) at->second = metrics_->series(id, name);
            return *at->second;
        }

    private:
        TopicMetrics* metrics_;
        std::unordered_map<base::TopicId, std::shared_ptr<Series>> known_;
    };

    explicit TopicMetrics(base::metrics::Registry& registry) : registry_(registry) {}

    [[nodiscard]] std::shared_ptr<Series> series(const base::TopicId& id, const std::string& name)
        KAAS_EXCLUDES(mutex_);
    /// A partition of `topic` got an error. Names that no topic has are counted together (null): a
    /// client could make up any number.
    void produce_failed(const catalog::Topic* topic, wire::ErrorCode error);
    void fetch_failed(const catalog::Topic* topic, wire::ErrorCode error);

private:
    base::metrics::Registry& registry_;
    base::Mutex mutex_;
    std::unordered_map<base::TopicId, std::shared_ptr<Series>> by_topic_ KAAS_GUARDED_BY(mutex_);
};

}  // namespace kaas::broker
