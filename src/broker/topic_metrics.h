#pragma once

#include "base/ids.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "wire/error_code.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace kaas::broker {

/// What is counted of each topic: `kaas_produce_*`, `kaas_fetch_*`. The series of a
/// topic end with it.
/// Thread: any; reactors count through a `Reader` of their own.
class TopicMetrics {
public:
    using CounterPtr = std::shared_ptr<base::metrics::Counter>;
    struct Series {
        CounterPtr produce_records;
        CounterPtr produce_bytes;
        CounterPtr fetch_bytes;
        std::map<wire::ErrorCode, CounterPtr> produce_errors;
        std::map<wire::ErrorCode, CounterPtr> fetch_errors;
    };

    /// A reactor's own way in: no lock and no text once it has met the topic, or the error.
    class Reader {
    public:
        explicit Reader(TopicMetrics& metrics) : metrics_(&metrics) {}

        void produced(const catalog::Topic& topic, std::uint64_t records, std::uint64_t bytes);
        void fetched(const catalog::Topic& topic, std::uint64_t bytes);
        /// A partition of `topic` got an error. Names that no topic has are counted together
        /// (null): a client could make up any number.
        void produce_failed(const catalog::Topic* topic, wire::ErrorCode error);
        void fetch_failed(const catalog::Topic* topic, wire::ErrorCode error);

    private:
        [[nodiscard]] Series& of(const catalog::Topic* topic);

        TopicMetrics* metrics_;
        std::uint64_t deletions_ = 0;  ///< as of the last look
        std::unordered_map<base::TopicId, Series> known_;
    };

    explicit TopicMetrics(base::metrics::Registry& registry);

    /// Ends the series of topics that are not in `next` any more. Before reactors see the image: a
    /// topic that they have found counts.
    void apply(const catalog::ImagePtr& next) KAAS_EXCLUDES(mutex_);

private:
    /// One that is never shown, when `topic` was deleted meanwhile.
    [[nodiscard]] CounterPtr counter(const catalog::Topic* topic, std::string_view name,
                                     std::string_view help, base::metrics::Labels labels = {})
        KAAS_EXCLUDES(mutex_);

    base::metrics::Registry& registry_;
    std::atomic<std::uint64_t> deletions_ = 0;  ///< images that took a topic away
    base::Mutex mutex_;
    catalog::ImagePtr image_ KAAS_GUARDED_BY(mutex_);
    /// Name and labels of what there is.
    std::unordered_map<base::TopicId, std::set<std::pair<std::string, base::metrics::Labels>>>
        series_ KAAS_GUARDED_BY(mutex_);
};

}  // namespace kaas::broker
