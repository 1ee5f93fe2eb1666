#include "broker/handlers/offset_fetch.h"

#include "base/ids.h"
#include "broker/handlers/group_calls.h"
#include "catalog/image.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using wire::ErrorCode;
using Answer = coordinator::OffsetFetchAnswer;
using AskedGroup = wire::OffsetFetchRequest::OffsetFetchRequestGroup;
using AskedTopic = wire::OffsetFetchRequest::OffsetFetchRequestTopics;
using AnsweredGroup = wire::OffsetFetchResponse::OffsetFetchResponseGroup;
using AnsweredTopic = wire::OffsetFetchResponse::OffsetFetchResponseTopics;

constexpr std::int16_t kGroupErrorFrom = 2;
constexpr std::int16_t kBatchedFrom = 8;
constexpr std::int16_t kByIdFrom = 10;

/// Older versions ask for one group.
std::vector<AskedGroup> groups_of(const Call& call, wire::OffsetFetchRequest& request) {
    if (call.version() >= kBatchedFrom) return std::move(request.groups);
    AskedGroup group;
    group.group_id = request.group_id;
    group.topics.reset();
    if (request.topics) {
        group.topics.emplace();
        for (auto& topic : *request.topics) {
            auto& out = group.topics->emplace_back();
            out.name = topic.name;
            out.partition_indexes = std::move(topic.partition_indexes);
        }
    }
    std::vector<AskedGroup> groups;
    groups.push_back(std::move(group));
    return groups;
}

AnsweredTopic refuse(const AskedTopic& topic, ErrorCode error) {
    AnsweredTopic out;
    out.name = topic.name;
    out.topic_id = topic.topic_id;
    for (const auto partition : topic.partition_indexes) {
        auto& one = out.partitions.emplace_back();
        one.partition_index = partition;
        one.committed_offset = -1;
        one.error_code = error;
    }
    return out;
}

/// One request under way. Thread: the call's reactor.
class Fetching : public std::enable_shared_from_this<Fetching> {
public:
    Fetching(CallPtr call, wire::OffsetFetchRequest request)
        : call_(std::move(call)),
          require_stable_(request.require_stable),
          asked_(groups_of(*call_, request)),
          answered_(asked_.size()),
          open_(asked_.size()) {}

    void start() {
        if (asked_.empty()) return finish();
        for (std::size_t i = 0; i < asked_.size(); ++i) ask(i);
    }

private:
    [[nodiscard]] bool by_id() const { return call_->version() >= kByIdFrom; }

    void ask(std::size_t index) {
        const auto& group = asked_[index];
        coordinator::OffsetFetchRequest request{.group_id = base::to_utf8(group.group_id),
                                                .require_stable = require_stable_};
        std::vector<AnsweredTopic> unknown;
        if (group.topics) {
            request.topics.emplace();
            for (const auto& topic : *group.topics) {
                add(topic, *request.topics, unknown);
            }
        }
        const auto group_id = request.group_id;
        ask_group<Answer>(
            *call_, group_id,
            [request = std::move(request)](auto& slot, auto done) mutable {
                slot.fetch(std::move(request), std::move(done));
            },
            [self = shared_from_this(), index, unknown = std::move(unknown)](
                const Answer& answer) mutable { self->take(index, answer, std::move(unknown)); });
    }

    /// Topics are asked for by name; one that is only known by its id may be gone.
    void add(const AskedTopic& topic, std::vector<coordinator::OffsetFetchRequest::Topic>& request,
             std::vector<AnsweredTopic>& unknown) const {
        const catalog::Topic* known =
            by_id() ? find_topic(*call_, {topic.name, topic.topic_id, true}) : nullptr;
        if (by_id() && known == nullptr) {
            return unknown.push_back(refuse(topic, ErrorCode::kUnknownTopicId));
        }
        auto& out = request.emplace_back();
        out.id = base::TopicId{topic.topic_id};
        out.name = known != nullptr ? known->name : base::to_utf8(topic.name);
        for (const auto partition : topic.partition_indexes) out.partitions.emplace_back(partition);
    }

    void take(std::size_t index, const Answer& answer, std::vector<AnsweredTopic> unknown) {
        auto& out = answered_[index];
        const auto& group = asked_[index];
        out.group_id = group.group_id;
        if (answer.error != ErrorCode::kNone) {
            if (call_->version() >= kGroupErrorFrom) {
                out.error_code = answer.error;
            } else if (group.topics) {
                for (const auto& topic : *group.topics) {
                    out.topics.push_back(refuse(topic, answer.error));
                }
            }
        } else {
            for (const auto& topic : answer.topics) add(topic, !group.topics, out);
            for (auto& topic : unknown) out.topics.push_back(std::move(topic));
        }
        if (--open_ == 0) finish();
    }

    void add(const Answer::Topic& topic, bool all, AnsweredGroup& group) const {
        AnsweredTopic out;
        out.name = topic.name;
        out.topic_id = topic.id.uuid;
        if (by_id() && all) {
            // Offsets of a topic that is gone have no id to be told by.
            const auto* known = find_topic(*call_, TopicRef::named(topic.name));
            if (known == nullptr) return;
            out.topic_id = known->id.uuid;
        }
        for (const auto& partition : topic.partitions) {
            auto& one = out.partitions.emplace_back();
            one.partition_index = partition.partition.value();
            one.committed_offset = partition.offset.value();
            one.committed_leader_epoch = partition.leader_epoch;
            one.metadata = partition.metadata;
            one.error_code = partition.error;
        }
        group.topics.push_back(std::move(out));
    }

    void finish() {
        wire::OffsetFetchResponse response;
        if (call_->version() >= kBatchedFrom) {
            response.groups = std::move(answered_);
            return call_->answer(response);
        }
        auto& group = answered_.front();
        response.error_code = group.error_code;
        for (auto& topic : group.topics) {
            auto& out = response.topics.emplace_back();
            out.name = topic.name;
            for (auto& partition : topic.partitions) {
                auto& one = out.partitions.emplace_back();
                one.partition_index = partition.partition_index;
                one.committed_offset = partition.committed_offset;
                one.committed_leader_epoch = partition.committed_leader_epoch;
                one.metadata = std::move(partition.metadata);
                one.error_code = partition.error_code;
            }
        }
        call_->answer(response);
    }

    const CallPtr call_;
    const bool require_stable_;
    const std::vector<AskedGroup> asked_;
    std::vector<AnsweredGroup> answered_;
    std::size_t open_;
};

}  // namespace

void offset_fetch(CallPtr call, wire::OffsetFetchRequest request) {
    std::make_shared<Fetching>(std::move(call), std::move(request))->start();
}

}  // namespace kaas::broker
