#include "coordinator/transaction_slot.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/metrics.h"
#include "coordinator/done.h"
#include "coordinator/transaction_metadata.h"
#include "coordinator/transaction_requests.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <expected>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::coordinator {
namespace {

using State = TransactionState;

void refuse(ErrorCode& answer, ErrorCode error) { answer = error; }
void refuse(InitProducerIdAnswer& answer, ErrorCode error) { answer = {.error = error}; }
void refuse(EndTxnAnswer& answer, ErrorCode error) { answer = {.error = error}; }
void refuse(std::vector<ErrorCode>& answer, ErrorCode error) { std::ranges::fill(answer, error); }
void refuse(TransactionDescription& answer, ErrorCode error) {
    answer = {.error = error, .transactional_id = std::move(answer.transactional_id)};
}
void refuse(std::expected<std::vector<TransactionListing>, ErrorCode>& answer, ErrorCode error) {
    answer = std::unexpected(error);
}

template <class Answer>
[[nodiscard]] Answer refusal(ErrorCode error) {
    Answer answer{};
    refuse(answer, error);
    return answer;
}

/// Whether (id, epoch) are of the producer that has this transactional id, or were.
[[nodiscard]] bool may_go_on(const TransactionMetadata& metadata, const ProducerIdAndEpoch& who) {
    return who.id == metadata.producer.id ||
           (who.id == metadata.previous_producer_id && who.epoch >= kLastProducerEpoch);
}

}  // namespace

TransactionMetrics TransactionMetrics::of(base::metrics::Registry& registry) {
    const std::string ended = "kaas_transactions_ended_total";
    const std::string help = "Transactions that were decided, by how.";
    return {
        .committed = registry.counter(ended, help, {{"result", "commit"}}),
        .aborted = registry.counter(ended, help, {{"result", "abort"}}),
        .timed_out = registry.counter("kaas_transactions_timed_out_total",
                                      "Transactions that were aborted because they took too long."),
        .expired_ids = registry.counter("kaas_transactional_ids_expired_total",
                                        "Transactional ids that nobody used for long enough."),
        .marker_retries = registry.counter(
            "kaas_transaction_marker_retries_total",
            "Markers that were sent again because the partition did not take them.")};
}

TransactionSlot::TransactionSlot(const TransactionServices& services) : services_(services) {}

TransactionSlot::~TransactionSlot() {
    if (!closed_) close();
}

TransactionSlot::TransactionPtr TransactionSlot::find(std::string_view transactional_id) const {
    const auto found = transactions_.find(transactional_id);
    return found == transactions_.end() ? nullptr : found->second;
}

void TransactionSlot::keep(const TransactionMetadata& metadata) {
    services_.writer.append(to_line(metadata));
}

template <class Answer>
void TransactionSlot::answer(Done<Answer> done, Answer value) {
    services_.writer.settle(
        [done = std::move(done), value = std::move(value)](bool durable) mutable {
            if (!durable) refuse(value, ErrorCode::kNotCoordinator);
            done(std::move(value));
        });
}

template <class Request, class Answer>
void TransactionSlot::hold(Transaction& transaction, Handler<Request, Answer> handler,
                           Request request, Done<Answer> done, Attempt attempt) {
    const auto now = services_.clock.now();
    if (!attempt.patience_ends) attempt.patience_ends = now + kPatience;
    if (*attempt.patience_ends <= now)
        return answer(std::move(done), refusal<Answer>(ErrorCode::kConcurrentTransactions));
    auto& held = transaction.ending->held.emplace_back();
    held.go = [this, handler, request = std::move(request), done = std::move(done),
               attempt](Wake why) mutable {
        switch (why) {
            case Wake::kEnded:
                return (this->*handler)(std::move(request), std::move(done), attempt);
            case Wake::kTooLong:
                return answer(std::move(done), refusal<Answer>(ErrorCode::kConcurrentTransactions));
            case Wake::kClosed: return done(refusal<Answer>(ErrorCode::kNotCoordinator));
        }
    };
    const auto self = std::prev(transaction.ending->held.end());
    services_.timers.arm(held.patience, *attempt.patience_ends,
                         [ending = transaction.ending.get(), self] {
                             auto go = std::move(self->go);
                             ending->held.erase(self);
                             go(Wake::kTooLong);
                         });
}

template <class Request, class Answer>
void TransactionSlot::fetch_id(Handler<Request, Answer> handler, Request request, Done<Answer> done,
                               Attempt attempt) {
    services_.producer_ids.next_producer_id(
        [this, life = std::weak_ptr(life_), handler, request = std::move(request),
         done = std::move(done), attempt](std::expected<base::ProducerId, ErrorCode> id) mutable {
            if (life.expired() || closed_) return done(refusal<Answer>(ErrorCode::kNotCoordinator));
            if (!id) return done(refusal<Answer>(id.error()));
            attempt.fresh_id = *id;
            (this->*handler)(std::move(request), std::move(done), attempt);
        });
}

// InitProducerId

void TransactionSlot::init_producer_id(InitProducerIdRequest request,
                                       Done<InitProducerIdAnswer> done) {
    init(std::move(request), std::move(done), {});
}

ErrorCode TransactionSlot::check(const InitProducerIdRequest& request,
                                 const TransactionConfig& config) {
    if (request.transactional_id.empty()) return ErrorCode::kInvalidRequest;
    if (request.enable_two_phase_commit && !config.two_phase_commit)
        return ErrorCode::kTransactionalIdAuthorizationFailed;
    if (request.keep_prepared) return ErrorCode::kUnsupportedVersion;
    const auto timeout = request.transaction_timeout;
    if (!request.enable_two_phase_commit &&
        (timeout > config.max_timeout || timeout <= std::chrono::milliseconds(0)))
        return ErrorCode::kInvalidTransactionTimeout;
    return ErrorCode::kNone;
}

void TransactionSlot::init(InitProducerIdRequest request, Done<InitProducerIdAnswer> done,
                           Attempt attempt) {
    auto known = find(request.transactional_id);
    if (known == nullptr) {
        if (!attempt.fresh_id) {
            return fetch_id(&TransactionSlot::init, std::move(request), std::move(done), attempt);
        }
        known = std::make_shared<Transaction>();
        known->metadata.transactional_id = request.transactional_id;
        known->metadata.producer.id = *attempt.fresh_id;
        transactions_.emplace(known->metadata.transactional_id, known);
        arm_expiration_timer();
    }
    auto& metadata = known->metadata;
    if (metadata.is_ending()) {
        return hold(*known, &TransactionSlot::init, std::move(request), std::move(done), attempt);
    }
    const bool is_new = metadata.producer.epoch == base::kNoProducerEpoch;
    if (request.current && !is_new && !may_go_on(metadata, *request.current))
        return answer(std::move(done), {.error = ErrorCode::kProducerFenced});
    // Of a producer that knows an older epoch nothing more can be learned with another id.
    const bool changes_id =
        metadata.exhausted() && (metadata.state == State::kOngoing || !request.current ||
                                 request.current->epoch == metadata.producer.epoch);
    if (changes_id && !attempt.fresh_id)
        return fetch_id(&TransactionSlot::init, std::move(request), std::move(done), attempt);
    if (metadata.state == State::kOngoing) {
        // Whoever began it is fenced. The new producer comes again when all is aborted.
        prepare(known, {.commit = false, .version = kEpochBump, .next_id = attempt.fresh_id});
        return answer(std::move(done), {.error = ErrorCode::kConcurrentTransactions});
    }
    const auto error = begin_life(metadata, request, changes_id ? attempt.fresh_id : std::nullopt);
    if (error != ErrorCode::kNone) return answer(std::move(done), {.error = error});
    keep(metadata);
    answer(std::move(done), {.producer = metadata.producer});
}

ErrorCode TransactionSlot::begin_life(TransactionMetadata& metadata,
                                      const InitProducerIdRequest& request,
                                      std::optional<base::ProducerId> fresh_id) {
    const auto before = metadata.producer;
    if (fresh_id) {
        metadata.producer = {*fresh_id, base::ProducerEpoch(0)};
        metadata.last_epoch = request.current ? before.epoch : base::kNoProducerEpoch;
    } else if (metadata.exhausted()) {
        // Apache's IllegalStateException.
        return ErrorCode::kUnknownServerError;
    } else if (!request.current) {
        ++metadata.producer.epoch;
        metadata.last_epoch = base::kNoProducerEpoch;
    } else if (before.epoch == base::kNoProducerEpoch || request.current->epoch == before.epoch) {
        ++metadata.producer.epoch;
        metadata.last_epoch = before.epoch;
    } else if (request.current->epoch != metadata.last_epoch) {
        return ErrorCode::kProducerFenced;
    }
    // Otherwise it repeats what was answered already.
    metadata.previous_producer_id = before.id;
    metadata.timeout_ms = request.enable_two_phase_commit
                              ? std::numeric_limits<std::int32_t>::max()
                              : static_cast<std::int32_t>(request.transaction_timeout.count());
    metadata.state = State::kEmpty;
    metadata.start_ms = -1;
    metadata.update_ms = services_.clock.wall_ms();
    return ErrorCode::kNone;
}

// AddPartitionsToTxn

void TransactionSlot::add_partitions(AddPartitionsRequest request, Done<ErrorCode> done) {
    if (request.transactional_id.empty()) return done(ErrorCode::kInvalidRequest);
    add(std::move(request), std::move(done), {});
}

void TransactionSlot::add(AddPartitionsRequest request, Done<ErrorCode> done, Attempt attempt) {
    const auto known = find(request.transactional_id);
    if (known == nullptr) return answer(std::move(done), ErrorCode::kInvalidProducerIdMapping);
    auto& metadata = known->metadata;
    if (metadata.is_ending()) {
        return hold(*known, &TransactionSlot::add, std::move(request), std::move(done), attempt);
    }
    if (metadata.producer.id != request.producer.id)
        return answer(std::move(done), ErrorCode::kInvalidProducerIdMapping);
    if (metadata.producer.epoch != request.producer.epoch)
        return answer(std::move(done), ErrorCode::kProducerFenced);
    const auto now_ms = services_.clock.wall_ms();
    bool grows = metadata.state != State::kOngoing;
    if (grows) metadata.start_ms = now_ms;
    for (auto& partition : request.partitions)
        grows |= metadata.partitions.insert(std::move(partition)).second;
    if (!grows) return answer(std::move(done), ErrorCode::kNone);
    metadata.state = State::kOngoing;
    metadata.previous_producer_id = metadata.producer.id;
    metadata.update_ms = now_ms;
    metadata.version = request.version;
    keep(metadata);
    arm_abort_timer();
    answer(std::move(done), ErrorCode::kNone);
}

void TransactionSlot::verify_partitions(const VerifyPartitionsRequest& request,
                                        Done<std::vector<ErrorCode>> done) {
    std::vector<ErrorCode> errors(request.partitions.size());
    const auto refuse_all = [&](ErrorCode error) {
        refuse(errors, error);
        answer(std::move(done), std::move(errors));
    };
    if (request.transactional_id.empty()) return refuse_all(ErrorCode::kInvalidRequest);
    const auto known = find(request.transactional_id);
    if (known == nullptr) return refuse_all(ErrorCode::kInvalidProducerIdMapping);
    const auto& metadata = known->metadata;
    if (metadata.producer.id != request.producer.id)
        return refuse_all(ErrorCode::kInvalidProducerIdMapping);
    if (metadata.producer.epoch != request.producer.epoch)
        return refuse_all(ErrorCode::kProducerFenced);
    if (metadata.is_ending()) return refuse_all(ErrorCode::kConcurrentTransactions);
    std::ranges::transform(request.partitions, errors.begin(), [&](const auto& partition) {
        return metadata.partitions.contains(partition) ? ErrorCode::kNone
                                                       : ErrorCode::kTransactionAbortable;
    });
    answer(std::move(done), std::move(errors));
}

// EndTxn

void TransactionSlot::end_txn(EndTxnRequest request, Done<EndTxnAnswer> done) {
    if (request.transactional_id.empty()) return done({.error = ErrorCode::kInvalidRequest});
    end(std::move(request), std::move(done), {});
}

TransactionSlot::Verdict TransactionSlot::judge_fixed_epoch(const TransactionMetadata& metadata,
                                                            const EndTxnRequest& request) {
    if (metadata.producer.id != request.producer.id)
        return {.error = ErrorCode::kInvalidProducerIdMapping};
    if (metadata.producer.epoch != request.producer.epoch)
        return {.error = ErrorCode::kProducerFenced};
    if (metadata.is_ending()) return {.wait = true};
    if (metadata.state == State::kOngoing) return {.prepare = true};
    const bool repeats =
        metadata.state == (request.commit ? State::kCompleteCommit : State::kCompleteAbort);
    return {.error = repeats ? ErrorCode::kNone : ErrorCode::kInvalidTxnState};
}

TransactionSlot::Verdict TransactionSlot::judge_epoch_bump(const TransactionMetadata& metadata,
                                                           const EndTxnRequest& request) {
    if (metadata.is_ending()) return {.wait = true};
    const auto& [id, epoch] = metadata.producer;
    const bool ended =
        metadata.state == State::kCompleteCommit || metadata.state == State::kCompleteAbort;
    // The answer to the first attempt, with the next epoch or id, was lost.
    const bool repeats_over_id = request.producer.id == metadata.previous_producer_id &&
                                 request.producer.epoch == kLastProducerEpoch &&
                                 epoch == base::ProducerEpoch(0);
    // Apache takes this for a repetition also when a transaction of the other protocol has ended,
    // and gives a zombie the epoch of its successor.
    const bool bumped = metadata.version >= kEpochBump && epoch == request.producer.epoch + 1;
    const bool repeats = ended && (repeats_over_id || bumped);
    if (id != request.producer.id && !repeats_over_id)
        return {.error = ErrorCode::kInvalidProducerIdMapping};
    if (epoch != request.producer.epoch && !repeats) return {.error = ErrorCode::kProducerFenced};
    if (metadata.state == State::kOngoing) return {.prepare = true};
    if (repeats) {
        const bool same = (metadata.state == State::kCompleteCommit) == request.commit;
        return {.error = same ? ErrorCode::kNone : ErrorCode::kInvalidTxnState};
    }
    // A producer that does not know whether it has sent anything aborts to get the next epoch.
    if (!request.commit) return {.prepare = true, .nothing_added = true};
    return {.error = ErrorCode::kInvalidTxnState};
}

void TransactionSlot::end(EndTxnRequest request, Done<EndTxnAnswer> done, Attempt attempt) {
    const auto transaction = find(request.transactional_id);
    if (transaction == nullptr)
        return answer(std::move(done), {.error = ErrorCode::kInvalidProducerIdMapping});
    auto& metadata = transaction->metadata;
    const bool bumps = request.version >= kEpochBump;
    const auto verdict =
        bumps ? judge_epoch_bump(metadata, request) : judge_fixed_epoch(metadata, request);
    if (verdict.wait) {
        return hold(*transaction, &TransactionSlot::end, std::move(request), std::move(done),
                    attempt);
    }
    if (!verdict.prepare) {
        EndTxnAnswer result{.error = verdict.error};
        if (bumps && verdict.error == ErrorCode::kNone) result.producer = metadata.producer;
        return answer(std::move(done), result);
    }
    const bool changes_id = bumps && metadata.exhausted();
    if (changes_id && !attempt.fresh_id)
        return fetch_id(&TransactionSlot::end, std::move(request), std::move(done), attempt);
    EndTxnAnswer result{};
    prepare(transaction, {.commit = request.commit,
                          .version = request.version,
                          .next_id = changes_id ? attempt.fresh_id : std::nullopt,
                          .nothing_added = verdict.nothing_added});
    if (bumps) {
        result.producer = changes_id ? ProducerIdAndEpoch{*attempt.fresh_id, base::ProducerEpoch(0)}
                                     : metadata.producer;
    }
    answer(std::move(done), result);
}

// DescribeTransactions, ListTransactions

void TransactionSlot::describe(std::string transactional_id, Done<TransactionDescription> done) {
    TransactionDescription description{.transactional_id = std::move(transactional_id)};
    if (description.transactional_id.empty()) {
        description.error = ErrorCode::kInvalidRequest;
        return done(std::move(description));
    }
    const auto known = find(description.transactional_id);
    if (known == nullptr) {
        description.error = ErrorCode::kTransactionalIdNotFound;
        return answer(std::move(done), std::move(description));
    }
    const auto& metadata = known->metadata;
    description.state = to_string(metadata.state);
    description.timeout_ms = metadata.timeout_ms;
    description.start_ms = metadata.start_ms;
    description.producer = metadata.producer;
    // Of a transaction that ends, what still waits for its marker.
    const auto& partitions = known->ending ? known->ending->unmarked : metadata.partitions;
    description.partitions.assign(partitions.begin(), partitions.end());
    answer(std::move(done), std::move(description));
}

void TransactionSlot::list(const TransactionFilter& filter,
                           Done<std::expected<std::vector<TransactionListing>, ErrorCode>> done) {
    const auto now_ms = services_.clock.wall_ms();
    const auto asks_for = [&](const TransactionMetadata& metadata) {
        if (!filter.producers.empty() && !filter.producers.contains(metadata.producer.id))
            return false;
        if (filter.states && !filter.states->contains(metadata.state)) return false;
        if (filter.longer_than_ms >= 0 && metadata.start_ms >= now_ms - filter.longer_than_ms)
            return false;
        return !filter.id_matches || filter.id_matches(metadata.transactional_id);
    };
    std::vector<TransactionListing> listings;
    for (const auto& [id, transaction] : transactions_) {
        const auto& metadata = transaction->metadata;
        if (!asks_for(metadata)) continue;
        listings.push_back({metadata.transactional_id, metadata.producer.id, metadata.state});
    }
    std::ranges::sort(listings, {}, &TransactionListing::transactional_id);
    answer(std::move(done),
           std::expected<std::vector<TransactionListing>, ErrorCode>(std::move(listings)));
}

}  // namespace kaas::coordinator
