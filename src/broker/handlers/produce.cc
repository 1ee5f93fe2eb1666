#include "broker/handlers/produce.h"

#include "broker/errors.h"
#include "broker/handlers/partition_access.h"
#include "storage/partition_log.h"
#include "storage/repack.h"
#include "wire/record_batch.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using wire::ErrorCode;
using Partition = wire::ProduceResponse::PartitionProduceResponse;

constexpr std::int16_t kByIdFrom = 13;
constexpr std::int16_t kHintsFrom = 10;

std::optional<storage::Acks> parse_acks(std::int16_t acks) {
    switch (acks) {
        case -1: return storage::Acks::kAll;
        case 0: return storage::Acks::kNone;
        case 1: return storage::Acks::kLeader;
        default: return std::nullopt;
    }
}

bool is_transactional(const wire::ProduceRequest::PartitionProduceData& data) {
    if (data.records.is_null()) return false;
    auto header = wire::BatchHeader::parse(data.records.view());
    return header && header->transactional();
}

bool has_transactional_batch(const wire::ProduceRequest& request) {
    return std::ranges::any_of(request.topic_data, [](const auto& topic) {
        return std::ranges::any_of(topic.partition_data, is_transactional);
    });
}

/// One Produce request under way. Lives until its last batch is durable or has failed.
/// Thread: the call's reactor.
class Producing : public std::enable_shared_from_this<Producing> {
public:
    Producing(CallPtr call, wire::ProduceRequest request)
        : call_(std::move(call)), request_(std::move(request)) {}

    void start() {
        lay_out_answer();
        acks_ = parse_acks(request_.acks);
        transactional_ = has_transactional_batch(request_);
        look_up();
        if (repacks_.empty()) return append_all();
        // The connection's next request waits: its batches must not overtake these.
        call_->services().io_pool.post([self = shared_from_this()] {
            for (auto& repack : self->repacks_)
                repack.result = repack.log->repack(repack.records, repack.faults);
            self->call_->home().post([self] { self->append_all(); });
        });
    }

private:
    /// A batch whose topic keeps another codec: packed anew off the reactor.
    struct Repack {
        std::size_t topic;
        std::size_t partition;
        storage::LogPtr log;
        base::MutableBytes records;
        std::vector<storage::RecordFault> faults{};
        storage::Result<storage::Repacked> result{};
    };

    /// Finds each partition's log, once, and what must be packed anew.
    void look_up() {
        if (!acks_ || transactional_) return;
        logs_.resize(request_.topic_data.size());
        for (std::size_t t = 0; t < request_.topic_data.size(); ++t) {
            const auto& partitions = request_.topic_data[t].partition_data;
            logs_[t].reserve(partitions.size());
            for (std::size_t p = 0; p < partitions.size(); ++p) {
                const auto& records = partitions[p].records;
                const auto& log =
                    logs_[t].emplace_back(led_log(*call_, topic_ref(t), partitions[p].index));
                if (!log || records.is_null()) continue;
                if (!storage::must_repack(records.view(), *(*log)->config())) continue;
                repacks_.push_back(
                    {.topic = t, .partition = p, .log = *log, .records = records.writable()});
            }
        }
    }

    void append_all() {
        open_ = 1;  // this loop: no early answer while it runs
        for (std::size_t t = 0; t < request_.topic_data.size(); ++t) {
            for (std::size_t p = 0; p < request_.topic_data[t].partition_data.size(); ++p) {
                append(t, p);
            }
        }
        if (acks_ == storage::Acks::kNone) return finish_without_answer();
        call_->pass();
        close_one();
    }

    void lay_out_answer() {
        response_.responses.resize(request_.topic_data.size());
        for (std::size_t t = 0; t < request_.topic_data.size(); ++t) {
            const auto& asked = request_.topic_data[t];
            auto& topic = response_.responses[t];
            topic.name = asked.name;
            topic.topic_id = asked.topic_id;
            topic.partition_responses.resize(asked.partition_data.size());
            for (std::size_t p = 0; p < asked.partition_data.size(); ++p) {
                topic.partition_responses[p].index = asked.partition_data[p].index;
                topic.partition_responses[p].base_offset = -1;
            }
        }
    }

    [[nodiscard]] TopicRef topic_ref(std::size_t t) const {
        const auto& topic = request_.topic_data[t];
        return {topic.name, topic.topic_id, call_->version() >= kByIdFrom};
    }
    [[nodiscard]] Partition& answer_of(std::size_t t, std::size_t p) {
        return response_.responses[t].partition_responses[p];
    }

    void append(std::size_t t, std::size_t p) {
        if (!acks_) return fail(t, p, ErrorCode::kInvalidRequiredAcks, {});
        if (transactional_) return fail(t, p, refuse_transaction(), {});
        const auto& asked = request_.topic_data[t].partition_data[p];
        const auto& log = logs_[t][p];
        if (!log) return fail(t, p, log.error(), {});
        if (asked.records.is_null()) {
            return fail(t, p, ErrorCode::kInvalidRecord, "No records were sent.");
        }
        storage::Append append;
        append.frame = call_->frame();
        append.records = asked.records.writable();
        if (auto* repack = repack_of(t, p); repack != nullptr) {
            if (!repack->result) {
                name_records(repack->faults, answer_of(t, p));
                return fail(t, p, to_wire(repack->result.error().code),
                            std::move(repack->result.error().context));
            }
            append.frame = std::move(repack->result->frame);
            append.records = append.frame.bytes;
            append.checked_ms = repack->result->checked_ms;
        }
        append.acks = *acks_;
        if (*acks_ != storage::Acks::kNone) {
            append.home = &call_->home();
            append.done = [self = shared_from_this(), t, p](auto result) {
                self->settle(t, p, std::move(result));
            };
        }
        std::vector<storage::RecordFault> faults;
        auto appended = (*log)->append(std::move(append), &faults);
        if (!appended) {
            name_records(faults, answer_of(t, p));
            return fail(t, p, to_wire(appended.error().code), std::move(appended.error().context));
        }
        if (*acks_ != storage::Acks::kNone) ++open_;
        if (const catalog::Topic* topic = find_topic(*call_, topic_ref(t))) {
            call_->state().topic_metrics.produced(
                *topic, static_cast<std::uint64_t>(appended->records), asked.records.size());
        }
    }

    [[nodiscard]] Repack* repack_of(std::size_t t, std::size_t p) {
        const auto found = std::ranges::find_if(repacks_, [&](const Repack& repack) {
            return repack.topic == t && repack.partition == p;
        });
        return found == repacks_.end() ? nullptr : &*found;
    }

    /// Which records a batch was refused for, and why (KIP-467).
    static void name_records(const std::vector<storage::RecordFault>& faults, Partition& out) {
        for (const auto& fault : faults) {
            auto& row = out.record_errors.emplace_back();
            row.batch_index = fault.index;
            row.batch_index_error_message = fault.why;
        }
    }

    /// There are no transactions to write in yet. Apache refuses the whole request too.
    [[nodiscard]] ErrorCode refuse_transaction() const {
        return request_.transactional_id ? ErrorCode::kInvalidTxnState
                                         : ErrorCode::kTransactionalIdAuthorizationFailed;
    }

    void settle(std::size_t t, std::size_t p, storage::Result<storage::Appended> result) {
        if (result) {
            auto& out = answer_of(t, p);
            out.base_offset = result->base_offset.value();
            out.log_start_offset = result->log_start.value();
            out.log_append_time_ms = result->log_append_time_ms;
        } else {
            fail(t, p, to_wire(result.error().code), std::move(result.error().context));
        }
        close_one();
    }

    void fail(std::size_t t, std::size_t p, ErrorCode error, std::string why) {
        failed_ = true;
        const catalog::Topic* topic = find_topic(*call_, topic_ref(t));
        call_->state().topic_metrics.produce_failed(topic, error);
        auto& out = answer_of(t, p);
        out.error_code = error;
        if (!why.empty()) out.error_message = why;
        if (has_hint(error) && call_->version() >= kHintsFrom) {
            LeaderHint hint = leader_hint(*call_, topic_ref(t), out.index);
            out.current_leader.leader_id = hint.leader_id;
            out.current_leader.leader_epoch = hint.leader_epoch;
            add_endpoint(*call_, hint.leader_id, response_.node_endpoints);
        }
    }

    void close_one() {
        if (--open_ == 0) call_->answer(response_);
    }

    /// Nobody reads an answer: a failure shows as a closed connection, so that the client asks for
    /// metadata again (Apache KafkaApis.handleProduceRequest).
    void finish_without_answer() {
        if (failed_) {
            call_->close("a batch with acks=0 failed");
        } else {
            call_->answer_nothing();
        }
    }

    CallPtr call_;
    wire::ProduceRequest request_;
    wire::ProduceResponse response_;
    std::optional<storage::Acks> acks_;
    bool transactional_ = false;
    /// By topic and partition of the request.
    std::vector<std::vector<std::expected<storage::LogPtr, ErrorCode>>> logs_;
    std::vector<Repack> repacks_;
    std::size_t open_ = 0;
    bool failed_ = false;
};

}  // namespace

void produce(CallPtr call, wire::ProduceRequest request) {
    std::make_shared<Producing>(std::move(call), std::move(request))->start();
}

}  // namespace kaas::broker
