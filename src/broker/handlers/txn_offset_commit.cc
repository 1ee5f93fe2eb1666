#include "broker/handlers/txn_offset_commit.h"

#include "base/ids.h"
#include "base/utf8.h"
#include "broker/handlers/group_calls.h"
#include "broker/handlers/transaction_calls.h"
#include "broker/verification.h"
#include "coordinator/group_requests.h"
#include "coordinator/group_slot.h"
#include "storage/producer_state.h"

#include <cstdint>
#include <expected>
#include <memory>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using wire::ErrorCode;
using Outcomes = TopicOutcomes<wire::TxnOffsetCommitResponse::TxnOffsetCommitResponseTopic>;

constexpr std::int16_t kLoadsFrom = 2;
constexpr std::int16_t kAbortableFrom = 4;
constexpr std::int16_t kAddsFrom = 5;
constexpr std::int16_t kByIdFrom = 6;

/// Why a group does not take a commit, for clients that know what groups say (Apache
/// `CoordinatorOperationExceptionHelper`).
ErrorCode unverified(ErrorCode error) {
    switch (error) {
        case ErrorCode::kNetworkException: return ErrorCode::kCoordinatorLoadInProgress;
        case ErrorCode::kUnknownTopicOrPartition: return ErrorCode::kCoordinatorNotAvailable;
        default: return error;
    }
}

/// One request under way. Thread: the call's reactor.
class Committing : public std::enable_shared_from_this<Committing> {
public:
    Committing(CallPtr call, wire::TxnOffsetCommitRequest request)
        : call_(std::move(call)),
          request_(std::move(request)),
          outcomes_(response_.topics, call_->version() >= kByIdFrom) {}

    void start() {
        find_topics();
        if (commit_.topics.empty()) return call_->answer(response_);
        if (request_.group_id.empty()) return refuse(ErrorCode::kInvalidGroupId);
        commit_.version = call_->version();
        commit_.group_id = base::to_utf8(request_.group_id);
        commit_.member = identity_of(request_.member_id, request_.group_instance_id);
        commit_.generation = request_.generation_id_or_member_epoch;
        commit_.producer_id = base::ProducerId(request_.producer_id);
        commit_.producer_epoch = base::ProducerEpoch(request_.producer_epoch);
        verify();
    }

private:
    using Answer = coordinator::OffsetCommitAnswer;
    using Outcome = std::expected<Answer, ErrorCode>;
    using Begun = std::expected<coordinator::CommitVerification, ErrorCode>;

    [[nodiscard]] bool adds() const { return call_->version() >= kAddsFrom; }

    void find_topics() {
        for (const auto& topic : request_.topics) {
            coordinator::CommitTopic out;
            sort_out(*call_, topic, call_->version() >= kByIdFrom, outcomes_,
                     [&](const catalog::Topic& found, const auto& partition) {
                         out.id = found.id;
                         out.name = found.name;
                         out.partitions.push_back(
                             {.partition = base::PartitionId(partition.partition_index),
                              .offset = base::Offset(partition.committed_offset),
                              .leader_epoch = partition.committed_leader_epoch,
                              .metadata = owned(partition.committed_metadata)});
                     });
            if (!out.partitions.empty()) commit_.topics.push_back(std::move(out));
        }
    }

    /// Whether the coordinator of the transaction knows that this group is part of it.
    void verify() {
        const auto& settings = call_->services().config.settings;
        if (!adds() && !settings.transaction_partition_verification_enable) return commit();
        ask_group<Begun>(
            *call_, commit_.group_id,
            [id = commit_.producer_id, epoch = commit_.producer_epoch](auto& group, auto done) {
                done(group.begin_verification(id, epoch));
            },
            [self = shared_from_this()](const Begun& begun) {
                if (!begun) return self->refuse(begun.error());
                self->commit_.verification = *begun;
                if (!begun->guard) return self->commit();
                self->ask_coordinator();
            });
    }
    void ask_coordinator() {
        verify_transaction(*call_,
                           {.transactional_id = base::to_utf8(request_.transactional_id),
                            .producer = {commit_.producer_id, commit_.producer_epoch},
                            .partitions = {group_slot_of(*call_, commit_.group_id)},
                            .adds = adds(),
                            .knows_abortable = call_->version() >= kAbortableFrom},
                           [self = shared_from_this()](const std::vector<ErrorCode>& errors) {
                               const auto error = errors.front();
                               if (error != ErrorCode::kNone)
                                   return self->refuse(unverified(error));
                               self->commit();
                           });
    }

    void commit() {
        ask_group<Outcome>(
            *call_, commit_.group_id,
            [commit = commit_](auto& group, auto done) mutable {
                group.commit_in_transaction(
                    std::move(commit),
                    [done = std::move(done)](Answer answer) mutable { done(std::move(answer)); });
            },
            [self = shared_from_this()](const Outcome& outcome) {
                if (!outcome) return self->refuse(outcome.error());
                self->outcomes_.add(outcome->topics);
                self->call_->answer(self->response_);
            });
    }

    void refuse(ErrorCode error) {
        const bool loads =
            error == ErrorCode::kCoordinatorLoadInProgress && call_->version() < kLoadsFrom;
        const auto told = loads ? ErrorCode::kCoordinatorNotAvailable : error;
        outcomes_.add(coordinator::all_with(commit_.topics, told).topics);
        call_->answer(response_);
    }

    CallPtr call_;
    wire::TxnOffsetCommitRequest request_;
    wire::TxnOffsetCommitResponse response_;
    Outcomes outcomes_;
    coordinator::TxnOffsetCommitRequest commit_;
};

}  // namespace

void txn_offset_commit(CallPtr call, wire::TxnOffsetCommitRequest request) {
    std::make_shared<Committing>(std::move(call), std::move(request))->start();
}

}  // namespace kaas::broker
