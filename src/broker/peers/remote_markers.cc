#include "broker/peers/remote_markers.h"

#include "client/error.h"

#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using wire::ErrorCode;
using Marker = storage::Marker;

auto key_of(const Marker& marker) {
    return std::tuple(marker.producer, marker.epoch, marker.coordinator_epoch, marker.commit,
                      marker.transaction_version);
}

/// What an answer says, by producer, topic and partition.
using Errors = std::map<std::tuple<std::int64_t, std::string_view, std::int32_t>, ErrorCode>;

Errors errors_of(const wire::WriteTxnMarkersResponse& response) {
    Errors errors;
    for (const auto& marker : response.markers) {
        for (const auto& topic : marker.topics) {
            for (const auto& partition : topic.partitions) {
                errors[{marker.producer_id, topic.name.view(), partition.partition_index}] =
                    partition.error_code;
            }
        }
    }
    return errors;
}

}  // namespace

RemoteMarkers::RemoteMarkers(Call call)
    : call_(std::move(call)), batches_([this](auto to, auto batch, auto answered) {
          const auto request = request_of(batch);
          call_(to, request,
                [batch = std::move(batch), answered = std::move(answered)](
                    client::Result<const wire::WriteTxnMarkersResponse*> response) mutable {
                    const auto errors = response ? errors_of(**response) : Errors();
                    for (auto& item : batch) {
                        if (!response) {
                            item.written(ErrorCode::kNetworkException);
                            continue;
                        }
                        const auto said =
                            errors.find({item.marker.producer.value(), item.partition.topic,
                                         item.partition.partition.value()});
                        const auto error =
                            said == errors.end() ? ErrorCode::kUnknownServerError : said->second;
                        item.written(error == ErrorCode::kUnknownTopicOrPartition
                                         ? ErrorCode::kNotLeaderOrFollower
                                         : error);
                    }
                    answered();
                });
      }) {}

void RemoteMarkers::send(base::BrokerId to, const Marker& marker,
                         coordinator::TransactionPartition partition,
                         coordinator::Done<ErrorCode> written) {
    batches_.add(to, {marker, std::move(partition), std::move(written)});
}

wire::WriteTxnMarkersRequest RemoteMarkers::request_of(const std::vector<Item>& batch) {
    using Topics = std::map<std::string_view, std::vector<std::int32_t>>;
    std::map<decltype(key_of(Marker())), std::pair<const Marker*, Topics>> markers;
    for (const auto& item : batch) {
        auto& [marker, topics] = markers[key_of(item.marker)];
        marker = &item.marker;
        topics[item.partition.topic].push_back(item.partition.partition.value());
    }
    wire::WriteTxnMarkersRequest request;
    for (const auto& [key, one] : markers) {
        const auto& [marker, topics] = one;
        auto& out = request.markers.emplace_back();
        out.producer_id = marker->producer.value();
        out.producer_epoch = marker->epoch.value();
        out.transaction_result = marker->commit;
        out.coordinator_epoch = marker->coordinator_epoch;
        out.transaction_version = marker->transaction_version;
        for (const auto& [name, partitions] : topics) {
            auto& topic = out.topics.emplace_back();
            topic.name = name;
            topic.partition_indexes = partitions;
        }
    }
    return request;
}

}  // namespace kaas::broker
