#include "broker/handlers/delete_records.h"

#include "broker/errors.h"
#include "broker/handlers/partition_access.h"
#include "catalog/topic_name.h"
#include "storage/partition_log.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

namespace kaas::broker {
namespace {

using wire::ErrorCode;
using Partition = wire::DeleteRecordsResponse::DeleteRecordsPartitionResult;

constexpr std::int64_t kNoLowWatermark = -1;

/// One DeleteRecords request under way. Thread: the call's reactor.
class Deleting : public std::enable_shared_from_this<Deleting> {
public:
    Deleting(CallPtr call, wire::DeleteRecordsRequest request)
        : call_(std::move(call)), request_(std::move(request)) {}

    void start() {
        // A topic or partition that is named twice is answered once, and its last offset counts,
        // as in Apache.
        std::map<std::string_view, std::map<std::int32_t, std::int64_t>> asked;
        for (const auto& topic : request_.topics) {
            for (const auto& partition : topic.partitions)
                asked[topic.name][partition.partition_index] = partition.offset;
        }
        lay_out_answer(asked);
        open_ = 1;  // this loop: no early answer while it runs
        for (auto& topic : response_.topics) {
            for (auto& out : topic.partitions)
                delete_from(topic.name, asked[topic.name][out.partition_index], out);
        }
        close_one();
    }

private:
    template <class Asked>
    void lay_out_answer(const Asked& asked) {
        for (const auto& [name, partitions] : asked) {
            auto& topic = response_.topics.emplace_back();
            topic.name = name;
            for (const auto& [index, offset] : partitions) {
                auto& out = topic.partitions.emplace_back();
                out.partition_index = index;
                out.low_watermark = kNoLowWatermark;
            }
        }
    }

    void delete_from(std::string_view topic, std::int64_t before, Partition& out) {
        auto log = led_log(*call_, TopicRef::named(topic), out.partition_index);
        if (!log) {
            out.error_code = log.error();
            return;
        }
        const auto config = (*log)->config();
        if (catalog::is_internal_topic(topic)) {
            out.error_code = ErrorCode::kInvalidTopicException;
        } else if (config->compacted && !config->deletes) {
            out.error_code = ErrorCode::kPolicyViolation;
        } else {
            ++open_;
            (*log)->delete_records(
                base::Offset{before}, call_->home(),
                [self = shared_from_this(), &out](storage::Result<base::Offset> start) {
                    self->settle(out, start);
                });
        }
    }

    void settle(Partition& out, const storage::Result<base::Offset>& start) {
        if (start) {
            out.low_watermark = start->value();
        } else {
            out.error_code = to_wire(start.error().code);
        }
        close_one();
    }

    void close_one() {
        if (--open_ == 0) call_->answer(response_);
    }

    CallPtr call_;
    const wire::DeleteRecordsRequest request_;
    wire::DeleteRecordsResponse response_;
    std::size_t open_ = 0;
};

}  // namespace

void delete_records(CallPtr call, wire::DeleteRecordsRequest request) {
    std::make_shared<Deleting>(std::move(call), std::move(request))->start();
}

}  // namespace kaas::broker
