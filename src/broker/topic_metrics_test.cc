// Goal: a deleted topic leaves no series behind, whoever still counts on it, and one of the same
// name starts anew. Method: images made by hand, the registry read as a scrape does.

#include "broker/topic_metrics.h"

#include "base/metrics.h"
#include "base/uuid.h"
#include "catalog/change.h"
#include "catalog/image.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace kaas::broker {
namespace {

using wire::ErrorCode;

class TopicMetricsTest : public testing::Test {
protected:
    void apply(const catalog::Change& change) {
        catalog::ImageEditor editor(*image_);
        const auto applied = editor.apply(change);
        ASSERT_TRUE(applied) << applied.error().context;
        image_ = std::move(editor).finish();
        metrics_.apply(image_);
    }
    catalog::Topic create(const std::string& name) {
        catalog::Topic topic;
        topic.name = name;
        topic.id = {base::Uuid::random()};
        auto& partition = topic.partitions.emplace_back();
        partition.replicas = {base::BrokerId(1)};
        partition.leader = {base::BrokerId(1), {base::Uuid::random()}};
        partition.runs = {{base::LeaderEpoch(0), "main"}};
        apply(catalog::TopicCreated{topic});
        return topic;
    }
    /// Sum over all series of that family that carry the topic; empty when there is none.
    std::optional<std::uint64_t> shown(const std::string& family, const std::string& topic) {
        std::optional<std::uint64_t> sum;
        registry_.visit([&](const std::string& name, const base::metrics::Registry::Family& all) {
            if (name != family) return;
            for (const auto& [labels, series] : all.series) {
                for (const auto& label : labels) {
                    if (label != std::pair<std::string, std::string>("topic", topic)) continue;
                    sum = sum.value_or(0) + series.counter->value();
                }
            }
        });
        return sum;
    }

    catalog::ImagePtr image_ = catalog::ImageEditor("c").finish();
    base::metrics::Registry registry_;
    TopicMetrics metrics_{registry_};
    TopicMetrics::Reader reader_{metrics_};
    TopicMetrics::Reader other_{metrics_};
};

TEST_F(TopicMetricsTest, ReactorsCountTogether) {
    const auto topic = create("orders");
    reader_.produced(topic, 3, 300);
    other_.produced(topic, 1, 100);
    other_.fetched(topic, 50);
    reader_.produce_failed(&topic, ErrorCode::kCorruptMessage);
    other_.produce_failed(&topic, ErrorCode::kCorruptMessage);
    EXPECT_EQ(shown("kaas_produce_records_total", "orders"), 4U);
    EXPECT_EQ(shown("kaas_produce_bytes_total", "orders"), 400U);
    EXPECT_EQ(shown("kaas_fetch_bytes_total", "orders"), 50U);
    EXPECT_EQ(shown("kaas_produce_errors_total", "orders"), 2U);
}

TEST_F(TopicMetricsTest, DeletedTopicLeavesNothingAndLateCountsBringNothingBack) {
    const auto topic = create("orders");
    const auto stays = create("stays");
    const auto count = [&](TopicMetrics::Reader& reader) {
        reader.produced(topic, 1, 1);
        reader.fetched(topic, 1);
        reader.produce_failed(&topic, ErrorCode::kCorruptMessage);
        reader.fetch_failed(&topic, ErrorCode::kOffsetOutOfRange);
    };
    count(reader_);
    reader_.produced(stays, 1, 1);
    apply(catalog::TopicDeleted{topic.id});
    count(reader_);  // requests that began before
    count(other_);
    for (const auto* family :
         {"kaas_produce_records_total", "kaas_produce_bytes_total", "kaas_fetch_bytes_total",
          "kaas_produce_errors_total", "kaas_fetch_errors_total"}) {
        EXPECT_FALSE(shown(family, "orders")) << family;
    }
    reader_.produced(stays, 1, 1);
    EXPECT_EQ(shown("kaas_produce_records_total", "stays"), 2U);
}

TEST_F(TopicMetricsTest, TopicOfTheSameNameStartsAnew) {
    const auto old = create("orders");
    reader_.produced(old, 7, 7);
    apply(catalog::TopicDeleted{old.id});
    const auto fresh = create("orders");
    reader_.produced(old, 1, 1);
    reader_.produced(fresh, 2, 2);
    EXPECT_EQ(shown("kaas_produce_records_total", "orders"), 2U);
}

TEST_F(TopicMetricsTest, NamesThatNoTopicHasAreCountedTogether) {
    reader_.fetch_failed(nullptr, ErrorCode::kUnknownTopicOrPartition);
    reader_.fetch_failed(nullptr, ErrorCode::kUnknownTopicOrPartition);
    EXPECT_EQ(shown("kaas_fetch_errors_total", ""), 2U);
}

}  // namespace
}  // namespace kaas::broker
