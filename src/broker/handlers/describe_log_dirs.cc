#include "broker/handlers/describe_log_dirs.h"

#include "cluster/node.h"
#include "cluster/partition_table.h"
#include "wire/error_code.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using Response = wire::DescribeLogDirsResponse;
using Result = Response::DescribeLogDirsResult;
using Stored = cluster::PartitionTable::Stored;

/// Which partitions were asked for.
class Filter {
public:
    explicit Filter(const wire::DescribeLogDirsRequest& request) : all_(!request.topics) {
        if (all_) return;
        for (const auto& topic : *request.topics) {
            auto& partitions = asked_[topic.topic.str()];
            partitions.insert(topic.partitions.begin(), topic.partitions.end());
        }
    }
    [[nodiscard]] bool takes(const Stored& one) const {
        if (all_) return true;
        auto topic = asked_.find(one.topic);
        return topic != asked_.end() && topic->second.contains(one.partition.value());
    }

private:
    bool all_;
    std::map<std::string, std::set<std::int32_t>, std::less<>> asked_;
};

std::int64_t saturated(std::uint64_t bytes) {
    return std::in_range<std::int64_t>(bytes) ? static_cast<std::int64_t>(bytes)
                                              : std::numeric_limits<std::int64_t>::max();
}

Result describe(const cluster::Node::LogDirState& dir) {
    Result out;
    out.log_dir = dir.path;
    if (dir.volume == nullptr) {
        out.error_code = wire::ErrorCode::kKafkaStorageError;
        return out;
    }
    out.is_cordoned = dir.cordoned;
    if (auto space = dir.volume->space()) {
        out.total_bytes = saturated(space->total_bytes);
        out.usable_bytes = saturated(space->usable_bytes);
    }
    return out;
}

void add_logs(const std::vector<const Stored*>& logs, Result& out) {
    std::map<std::string_view, Response::DescribeLogDirsTopic> topics;
    for (const auto* log : logs) {
        auto& topic = topics[log->topic];
        topic.name = log->topic;
        auto& partition = topic.partitions.emplace_back();
        partition.partition_index = log->partition.value();
        partition.partition_size = saturated(log->bytes);
        partition.offset_lag = log->lag;
        partition.is_future_key = log->is_future;
    }
    for (auto& [name, topic] : topics) out.topics.push_back(std::move(topic));
}

}  // namespace

void describe_log_dirs(CallPtr call, wire::DescribeLogDirsRequest request) {
    auto& pool = call->services().io_pool;
    pool.post([call = std::move(call), filter = Filter(request)]() mutable {
        auto& node = call->services().node;
        const auto dirs = node.log_dirs();
        const auto stored = node.partitions().stored();
        Response response;
        for (const auto& dir : dirs) {
            auto& out = response.results.emplace_back(describe(dir));
            std::vector<const Stored*> here;
            for (const auto& one : stored) {
                if (one.volume == dir.name && filter.takes(one)) here.push_back(&one);
            }
            add_logs(here, out);
        }
        auto& home = call->home();
        home.post(
            [call = std::move(call), response = std::move(response)] { call->answer(response); });
    });
}

}  // namespace kaas::broker
