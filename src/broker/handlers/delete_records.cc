#include "broker/handlers/delete_records.h"

#include "broker/errors.h"
#include "broker/handlers/partition_access.h"
#include "catalog/topic_name.h"
#include "net/reactor.h"
#include "storage/partition_log.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

namespace kaas::broker {
namespace {

using wire::ErrorCode;
using Partition = wire::DeleteRecordsResponse::DeleteRecordsPartitionResult;

constexpr std::int64_t kNoLowWatermark = -1;
/// Apache deletes before it looks at the time: a timeout of 0 must not refuse what takes an fsync.
constexpr std::chrono::milliseconds kLeastPatience{1'000};

/// One DeleteRecords request under way. Thread: the call's reactor.
class Deleting : public std::enable_shared_from_this<Deleting> {
public:
    Deleting(CallPtr call, wire::DeleteRecordsRequest request)
        : call_(std::move(call)), request_(std::move(request)), timer_(call_->reactor()) {}

    void start() {
        // A topic or partition that is named twice is answered once, and its last offset counts,
        // as in Apache.
        std::map<std::string_view, std::map<std::int32_t, std::int64_t>> asked;
        for (const auto& topic : request_.topics) {
            for (const auto& partition : topic.partitions)
                asked[topic.name][partition.partition_index] = partition.offset;
        }
        lay_out_answer(asked);
        for (auto& topic : response_.topics) {
            for (auto& out : topic.partitions)
                delete_from(topic.name, asked[topic.name][out.partition_index], out);
        }
        const std::chrono::milliseconds timeout(request_.timeout_ms);
        timer_.arm(std::max(timeout, kLeastPatience), [self = weak_from_this()] {
            if (auto alive = self.lock()) alive->time_out();
        });
        answer_if_settled();  // what comes from logs comes in later turns of the reactor
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
            open_.insert(&out);
            (*log)->delete_records(
                base::Offset{before}, call_->home(),
                [self = shared_from_this(), &out](storage::Result<base::Offset> start) {
                    self->settle(out, start);
                });
        }
    }

    void settle(Partition& out, const storage::Result<base::Offset>& start) {
        if (open_.erase(&out) == 0) return;  // it has been answered for
        if (start) {
            out.low_watermark = start->value();
        } else {
            out.error_code = to_wire(start.error().code);
        }
        answer_if_settled();
    }

    /// A volume that hangs has no claim on the client's patience.
    void time_out() {
        if (open_.empty()) return;
        for (auto* out : std::exchange(open_, {})) out->error_code = ErrorCode::kRequestTimedOut;
        answer_if_settled();
    }

    void answer_if_settled() {
        if (open_.empty()) call_->answer(response_);
    }

    CallPtr call_;
    const wire::DeleteRecordsRequest request_;
    wire::DeleteRecordsResponse response_;
    std::set<Partition*> open_;  ///< whose log has not answered
    net::ReactorTimer timer_;
};

}  // namespace

void delete_records(CallPtr call, wire::DeleteRecordsRequest request) {
    std::make_shared<Deleting>(std::move(call), std::move(request))->start();
}

}  // namespace kaas::broker
