#include "broker/handlers/describe_producers.h"

#include "broker/handlers/partition_access.h"
#include "catalog/topic_name.h"
#include "storage/partition_log.h"
#include "storage/producer_state.h"

#include <cstdint>
#include <string_view>

namespace kaas::broker {
namespace {

using Answer = wire::DescribeProducersResponse::PartitionResponse;
using Producer = wire::DescribeProducersResponse::ProducerState;

Producer to_wire(const storage::ProducerImage& producer) {
    const auto& entry = producer.entry;
    Producer out;
    out.producer_id = producer.id.value();
    out.producer_epoch = entry.epoch.value();
    out.last_sequence = entry.last_sequence();
    out.last_timestamp = entry.last_timestamp_ms;
    out.coordinator_epoch = entry.coordinator_epoch;
    out.current_txn_start_offset = entry.transaction_start.value_or(base::Offset{-1}).value();
    return out;
}

/// Only what is wrong with a topic is put in words.
void blame_topic(std::string_view topic, Answer& out) {
    const auto fault = catalog::topic_name_fault(topic);
    if (!fault.empty()) out.error_code = wire::ErrorCode::kInvalidTopicException;
    out.error_message = fault.empty() ? "There is no topic of this name." : fault;
}

Answer producers_of(const Call& call, std::string_view topic, std::int32_t partition) {
    Answer out;
    out.partition_index = partition;
    auto log = led_log(call, TopicRef::named(topic), partition);
    if (led_slot(call, TopicRef::named(topic), partition) != nullptr) return out;
    if (!log) {
        out.error_code = log.error();
        if (find_topic(call, TopicRef::named(topic)) == nullptr) blame_topic(topic, out);
        return out;
    }
    for (const auto& producer : (*log)->producers())
        out.active_producers.push_back(to_wire(producer));
    return out;
}

}  // namespace

wire::DescribeProducersResponse describe_producers(const Call& call,
                                                   const wire::DescribeProducersRequest& request) {
    wire::DescribeProducersResponse response;
    for (const auto& asked : request.topics) {
        auto& topic = response.topics.emplace_back();
        topic.name = asked.name;
        for (const auto partition : asked.partition_indexes)
            topic.partitions.push_back(producers_of(call, asked.name, partition));
    }
    return response;
}

}  // namespace kaas::broker
