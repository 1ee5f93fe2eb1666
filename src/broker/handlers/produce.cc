#include "broker/handlers/produce.h"

#include "base/ids.h"
#include "base/utf8.h"
#include "broker/errors.h"
#include "broker/handlers/partition_access.h"
#include "broker/verification.h"
#include "coordinator/transaction_requests.h"
#include "storage/partition_log.h"
#include "storage/repack.h"
#include "wire/record_batch.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kaas::broker {
namespace {

using wire::ErrorCode;
using Partition = wire::ProduceResponse::PartitionProduceResponse;

constexpr std::int16_t kByIdFrom = 13;
constexpr std::int16_t kHintsFrom = 10;
constexpr std::int16_t kAbortableFrom = 11;
constexpr std::int16_t kAddsPartitionsFrom = 12;
/// `storage::Append::transaction_version` of producers whose epoch stays.
constexpr std::int8_t kVerifies = 1;

std::optional<storage::Acks> parse_acks(std::int16_t acks) {
    switch (acks) {
        case -1: return storage::Acks::kAll;
        case 0: return storage::Acks::kNone;
        case 1: return storage::Acks::kLeader;
        default: return std::nullopt;
    }
}

/// Why a batch of a transaction is not appended, as its producer hears it (Apache
/// `ReplicaManager.handleProduceAppend`). What it can only repeat has a code that clients of any
/// age repeat.
struct Unverified {
    ErrorCode error;
    std::string why{};
};
Unverified explain(ErrorCode error, bool bumps) {
    switch (error) {
        case ErrorCode::kInvalidTxnState:
            return {error, "The partition is not part of the transaction."};
        case ErrorCode::kConcurrentTransactions:
            if (bumps) return {error};
            [[fallthrough]];
        case ErrorCode::kNetworkException:
        case ErrorCode::kCoordinatorLoadInProgress:
        case ErrorCode::kCoordinatorNotAvailable:
        case ErrorCode::kNotCoordinator:
            return {ErrorCode::kNotEnoughReplicas,
                    "The transaction coordinator could not be asked: " +
                        std::string(wire::to_string(error))};
        default: return {error};
    }
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
        find_producer();
        // Before the rest, as in Apache; and the whole request, not the one batch.
        if (refusal_ != ErrorCode::kNone) return append_all();
        look_up();
        if (!producer_) return repack();
        verify();
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

    /// Of a batch that begins a transaction here: by what it was let through, or why not.
    struct Judgement {
        storage::VerificationGuard guard{};
        std::optional<Unverified> refused{};
    };

    [[nodiscard]] std::optional<wire::BatchHeader> transactional_header(std::size_t t,
                                                                        std::size_t p) const {
        const auto& records = request_.topic_data[t].partition_data[p].records;
        if (records.is_null()) return std::nullopt;
        const auto header = wire::BatchHeader::parse(records.view());
        if (!header || !header->transactional()) return std::nullopt;
        return *header;
    }
    template <class Visit>
    void for_each_partition(Visit visit) {
        for (std::size_t t = 0; t < request_.topic_data.size(); ++t) {
            for (std::size_t p = 0; p < request_.topic_data[t].partition_data.size(); ++p)
                visit(t, p);
        }
    }

    /// Whose transaction the request's batches belong to, if to any.
    void find_producer() {
        for_each_partition([this](std::size_t t, std::size_t p) {
            const auto header = transactional_header(t, p);
            if (!header) return;
            if (!request_.transactional_id) {
                refusal_ = ErrorCode::kTransactionalIdAuthorizationFailed;
                return;
            }
            if (!header->has_producer_id()) return;
            const coordinator::ProducerIdAndEpoch found{
                base::ProducerId(header->producer_id), base::ProducerEpoch(header->producer_epoch)};
            if (producer_.value_or(found) != found) refusal_ = ErrorCode::kInvalidProducerIdMapping;
            producer_ = found;
        });
    }

    /// Lets those batches through that begin a transaction, which their coordinator must know of
    /// (KIP-890). The connection's next request waits: its batches must not overtake these.
    void verify() {
        const bool bumps = call_->version() >= kAddsPartitionsFrom;
        const auto& settings = call_->services().config.settings;
        transaction_version_ = bumps ? coordinator::kEpochBump : kVerifies;
        if (!bumps && !settings.transaction_partition_verification_enable) {
            transaction_version_ = 0;
            return repack();
        }
        std::vector<coordinator::TransactionPartition> partitions;
        std::vector<Judgement*> asked;
        for_each_partition([&](std::size_t t, std::size_t p) {
            const auto header = transactional_header(t, p);
            if (!acks_ || !header || !header->has_producer_id() || !logs_[t][p]) return;
            const auto verification = (*logs_[t][p])
                                          ->begin_verification(producer_->id, producer_->epoch,
                                                               header->base_sequence, bumps);
            auto& judgement = judgements_[{t, p}];
            if (!verification) {
                judgement.refused = explain(to_wire(verification.error().code), bumps);
            } else if (const auto* guard =
                           std::get_if<storage::VerificationGuard>(&*verification)) {
                judgement.guard = *guard;
                asked.push_back(&judgement);
                partitions.push_back({find_topic(*call_, topic_ref(t))->name,
                                      base::PartitionId(answer_of(t, p).index)});
            }
        });
        if (asked.empty()) return repack();
        verify_transaction(*call_,
                           {.transactional_id = base::to_utf8(*request_.transactional_id),
                            .producer = *producer_,
                            .partitions = std::move(partitions),
                            .adds = bumps,
                            .knows_abortable = call_->version() >= kAbortableFrom},
                           [self = shared_from_this(), asked = std::move(asked),
                            bumps](const std::vector<ErrorCode>& errors) {
                               for (std::size_t i = 0; i < errors.size(); ++i) {
                                   if (errors[i] == ErrorCode::kNone) continue;
                                   asked[i]->refused = explain(errors[i], bumps);
                               }
                               self->repack();
                           });
    }

    void repack() {
        if (repacks_.empty()) return append_all();
        // The connection's next request waits, as for a verification.
        call_->services().io_pool.post([self = shared_from_this()] {
            for (auto& repack : self->repacks_)
                repack.result = repack.log->repack(repack.records, repack.faults);
            self->call_->home().post([self] { self->append_all(); });
        });
    }

    /// Finds each partition's log, once, and what must be packed anew.
    void look_up() {
        if (!acks_) return;
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
        for_each_partition([this](std::size_t t, std::size_t p) { append(t, p); });
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
        if (refusal_ != ErrorCode::kNone) return fail(t, p, refusal_, {});
        if (!acks_) return fail(t, p, ErrorCode::kInvalidRequiredAcks, {});
        const auto& asked = request_.topic_data[t].partition_data[p];
        const auto& log = logs_[t][p];
        if (!log) return fail(t, p, log.error(), {});
        if (asked.records.is_null()) {
            return fail(t, p, ErrorCode::kInvalidRecord, "No records were sent.");
        }
        storage::Append append;
        append.transaction_version = transaction_version_;
        if (const auto judged = judgements_.find({t, p}); judged != judgements_.end()) {
            const auto& [guard, refused] = judged->second;
            if (refused) return fail(t, p, refused->error, refused->why);
            append.verification = guard;
        }
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

    void settle(std::size_t t, std::size_t p, storage::Result<storage::Appended> result) {
        if (result) {
            auto& out = answer_of(t, p);
            out.base_offset = result->base_offset.value();
            out.log_start_offset = result->log_start.value();
            out.log_append_time_ms = result->log_append_time_ms;
        } else {
            auto error = to_wire(result.error().code);
            // To a timeout, clients repeat the batch here and nowhere else.
            if (error == ErrorCode::kRequestTimedOut &&
                is_away(*call_, topic_ref(t), answer_of(t, p).index))
                error = ErrorCode::kNotLeaderOrFollower;
            fail(t, p, error, std::move(result.error().context));
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
    /// Of the whole request.
    ErrorCode refusal_ = ErrorCode::kNone;
    std::optional<coordinator::ProducerIdAndEpoch> producer_;
    std::int8_t transaction_version_ = kVerifies;
    std::map<std::pair<std::size_t, std::size_t>, Judgement> judgements_;
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
