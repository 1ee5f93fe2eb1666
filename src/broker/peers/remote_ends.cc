#include "broker/peers/remote_ends.h"

#include "client/error.h"
#include "wire/error_code.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

constexpr std::int64_t kLatest = -1;  // Apache ListOffsetsRequest.LATEST_TIMESTAMP
constexpr std::int32_t kNoReplica = -1;

}  // namespace

RemoteEnds::RemoteEnds(base::Executor& link, const base::Clock& clock, Call call)
    : link_(link),
      clock_(clock),
      call_(std::move(call)),
      batches_([this](auto to, auto batch, auto answered) {
          call_(to, request_of(batch),
                [this, answered = std::move(answered)](
                    client::Result<const wire::ListOffsetsResponse*> response) mutable {
                    if (response) take(**response);
                    answered();
                });
      }) {}

std::optional<base::Offset> RemoteEnds::look(base::BrokerId leader, const std::string& topic,
                                             base::PartitionId partition) {
    link_.post([this, leader, place = Place{topic, partition}]() mutable {
        batches_.add(leader, std::move(place));
    });
    base::MutexLock lock(mutex_);
    const auto found = ends_.find({topic, partition});
    if (found == ends_.end() || clock_.now() - found->second.told > kFresh) return std::nullopt;
    return found->second.offset;
}

wire::ListOffsetsRequest RemoteEnds::request_of(const std::vector<Place>& batch) {
    std::map<std::string_view, std::set<std::int32_t>> topics;  // many groups may read one
    for (const auto& [topic, partition] : batch) topics[topic].insert(partition.value());
    wire::ListOffsetsRequest request;
    request.replica_id = kNoReplica;
    for (const auto& [name, partitions] : topics) {
        auto& topic = request.topics.emplace_back();
        topic.name = name;
        for (const auto partition : partitions) {
            auto& asked = topic.partitions.emplace_back();
            asked.partition_index = partition;
            asked.timestamp = kLatest;
        }
    }
    return request;
}

void RemoteEnds::take(const wire::ListOffsetsResponse& response) {
    const auto now = clock_.now();
    base::MutexLock lock(mutex_);
    std::erase_if(ends_, [now](const auto& one) { return now - one.second.told > kFresh; });
    for (const auto& topic : response.topics) {
        for (const auto& partition : topic.partitions) {
            if (partition.error_code != wire::ErrorCode::kNone) continue;
            ends_[{topic.name.str(), base::PartitionId(partition.partition_index)}] = {
                base::Offset(partition.offset), now};
        }
    }
}

}  // namespace kaas::broker
