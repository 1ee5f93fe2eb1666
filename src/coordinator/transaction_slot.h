#pragma once

#include "base/back_off.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/metrics.h"
#include "base/timer_queue.h"
#include "catalog/error.h"
#include "catalog/model.h"
#include "coordinator/done.h"
#include "coordinator/slot_machine.h"
#include "coordinator/slot_writer.h"
#include "coordinator/transaction_metadata.h"
#include "coordinator/transaction_requests.h"
#include "storage/transaction_marker.h"

#include <boost/json/object.hpp>

#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kaas::coordinator {

/// The configs of the broker that coordinators follow, under Apache's names.
struct TransactionConfig {
    std::chrono::milliseconds max_timeout{900'000};  ///< transaction.max.timeout.ms
    /// transactional.id.expiration.ms
    std::chrono::milliseconds id_expiration{604'800'000};
    /// transaction.abort.timed.out.transaction.cleanup.interval.ms
    std::chrono::milliseconds abort_interval{10'000};
    /// transaction.remove.expired.transaction.cleanup.interval.ms
    std::chrono::milliseconds expiration_interval{3'600'000};
    bool two_phase_commit = false;  ///< transaction.two.phase.commit.enable
};

/// Where new producer ids come from, each given once, ever. Thread: the coordinators' loop.
class ProducerIdSource {
public:
    using Got = std::move_only_function<void(std::expected<base::ProducerId, ErrorCode>)>;

    virtual ~ProducerIdSource() = default;
    /// `got` runs on the loop; within the call when an id is at hand.
    virtual void next_producer_id(Got got) = 0;
};

/// The way that markers go to the partitions of a transaction. Thread: the coordinators' loop.
class MarkerSink {
public:
    virtual ~MarkerSink() = default;
    /// Has `marker` written where `partition` is led, and runs `written` on the loop, once, unless
    /// the process ends first; never within the call. The answer is:
    /// - kNone: it is there, durably;
    /// - kUnknownTopicOrPartition: the partition was deleted, there is nothing to write to;
    /// - anything else: nobody can say; it is sent again after a while. Repeating is harmless.
    virtual void send(const storage::Marker& marker, const TransactionPartition& partition,
                      Done<ErrorCode> written) = 0;
};

/// What is counted over all slots. Names: CONTRIBUTING.
struct TransactionMetrics {
    base::metrics::Counter& committed;
    base::metrics::Counter& aborted;
    base::metrics::Counter& timed_out;
    base::metrics::Counter& expired_ids;
    base::metrics::Counter& marker_retries;

    [[nodiscard]] static TransactionMetrics of(base::metrics::Registry& registry);
};

/// What a slot's transactions are worked with. All of it outlives the slot.
struct TransactionServices {
    SlotWriter& writer;
    base::TimerQueue& timers;
    const base::Clock& clock;
    const TransactionConfig& config;
    ProducerIdSource& producer_ids;
    MarkerSink& markers;
    TransactionMetrics& metrics;
    base::LeaderEpoch epoch;  ///< of the slot; markers carry it as the coordinator's
};

/// The transactional ids of one slot, as Apache's `TransactionCoordinator` behaves on the wire:
/// who may use an id, what its transaction writes to, and how it ends. Prepare, markers, complete:
/// each is durable before what follows from it leaves.
///
/// A change is applied at once and answered when it is settled, so requests never wait for one
/// another's fsync. What Apache refuses with CONCURRENT_TRANSACTIONS while the markers of the last
/// transaction are under way waits here for its end, at most `kPatience`: they take less than the
/// shortest pause of a client. Markers are sent without bound until each partition has its own.
///
/// Thread: the coordinators' loop (loading: see SlotMachine). Errors of every request, besides its
/// own: NOT_COORDINATOR, when the slot's leadership ends first.
/// Source: KIP-98, KIP-360, KIP-664, KIP-890, KIP-939; Apache `TransactionCoordinator`,
/// `TransactionMetadata`, `TransactionMarkerChannelManager`.
class TransactionSlot final : public SlotMachine {
public:
    static constexpr std::chrono::milliseconds kPatience{500};
    /// Between attempts to write a marker.
    static constexpr std::chrono::milliseconds kFirstRetry{20};
    static constexpr std::chrono::milliseconds kLongestRetry{1'000};

    /// What no slot would take: asked wherever the request arrives. Thread: any. Errors:
    /// INVALID_REQUEST, TRANSACTIONAL_ID_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION,
    /// INVALID_TRANSACTION_TIMEOUT.
    [[nodiscard]] static ErrorCode check(const InitProducerIdRequest& request,
                                         const TransactionConfig& config);

    explicit TransactionSlot(const TransactionServices& services);
    ~TransactionSlot() override;

    /// Of a request that `check` let through. Errors: CONCURRENT_TRANSACTIONS (also when it had to
    /// abort what was ongoing), PRODUCER_FENCED, UNKNOWN_SERVER_ERROR, those of the source of
    /// producer ids.
    void init_producer_id(InitProducerIdRequest request, Done<InitProducerIdAnswer> done);
    /// Errors: INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED,
    /// CONCURRENT_TRANSACTIONS.
    void add_partitions(AddPartitionsRequest request, Done<ErrorCode> done);
    /// Errors: as `add_partitions`; TRANSACTION_ABORTABLE for a partition that was not added.
    void verify_partitions(const VerifyPartitionsRequest& request,
                           Done<std::vector<ErrorCode>> done);
    /// Errors: as `add_partitions`; INVALID_TXN_STATE.
    void end_txn(EndTxnRequest request, Done<EndTxnAnswer> done);
    /// Errors: INVALID_REQUEST, TRANSACTIONAL_ID_NOT_FOUND.
    void describe(std::string transactional_id, Done<TransactionDescription> done);
    void list(const TransactionFilter& filter,
              Done<std::expected<std::vector<TransactionListing>, ErrorCode>> done);

    // SlotMachine.
    [[nodiscard]] catalog::Result<void> load_picture(const boost::json::object& picture) override;
    [[nodiscard]] catalog::Result<void> load_change(const boost::json::object& change) override;
    void start() override;
    [[nodiscard]] boost::json::object picture() const override;
    void close() override;

private:
    /// Why a request that waited for the end of a transaction goes on.
    enum class Wake { kEnded, kTooLong, kClosed };
    struct Held {
        base::TimerQueue::Entry patience;
        std::move_only_function<void(Wake)> go;
    };
    /// The way from prepare to complete.
    struct Ending {
        std::set<TransactionPartition> unmarked;
        std::vector<TransactionPartition> failed;  ///< to be tried again when `retry` is due
        base::BackOff pauses{kFirstRetry, kLongestRetry};
        base::TimerQueue::Entry retry;
        bool refusal_told = false;
        std::list<Held> held;
    };
    struct Transaction {
        TransactionMetadata metadata;
        std::shared_ptr<Ending> ending{};  ///< set exactly while `metadata.is_ending()`
    };
    using TransactionPtr = std::shared_ptr<Transaction>;
    /// One of the times that a request is looked at: it may have to wait, or lack a producer id.
    struct Attempt {
        std::optional<base::Clock::Steady> patience_ends{};
        std::optional<base::ProducerId> fresh_id{};
    };
    template <class Request, class Answer>
    using Handler = void (TransactionSlot::*)(Request, Done<Answer>, Attempt);

    void init(InitProducerIdRequest request, Done<InitProducerIdAnswer> done, Attempt attempt);
    void add(AddPartitionsRequest request, Done<ErrorCode> done, Attempt attempt);
    void end(EndTxnRequest request, Done<EndTxnAnswer> done, Attempt attempt);

    /// Gives the producer the epoch of its next life. Error: PRODUCER_FENCED, UNKNOWN_SERVER_ERROR.
    [[nodiscard]] ErrorCode begin_life(TransactionMetadata& metadata,
                                       const InitProducerIdRequest& request,
                                       std::optional<base::ProducerId> fresh_id);
    /// What is to be done for an EndTxn: nothing (with what to answer), or to prepare.
    struct Verdict {
        ErrorCode error = ErrorCode::kNone;
        bool prepare = false;
        bool nothing_added = false;
        bool wait = false;
    };
    [[nodiscard]] static Verdict judge_fixed_epoch(const TransactionMetadata& metadata,
                                                   const EndTxnRequest& request);
    [[nodiscard]] static Verdict judge_epoch_bump(const TransactionMetadata& metadata,
                                                  const EndTxnRequest& request);

    /// Answers when all that was appended so far is durable, and this broker is known to lead the
    /// slot still: also what changes nothing, for others build on it.
    template <class Answer>
    void answer(Done<Answer> done, Answer value);
    /// Looks at the request again when the transaction has ended.
    template <class Request, class Answer>
    void hold(Transaction& transaction, Handler<Request, Answer> handler, Request request,
              Done<Answer> done, Attempt attempt);
    /// Looks at the request again with a producer id at hand.
    template <class Request, class Answer>
    void fetch_id(Handler<Request, Answer> handler, Request request, Done<Answer> done,
                  Attempt attempt);

    [[nodiscard]] TransactionPtr find(std::string_view transactional_id) const;
    void keep(const TransactionMetadata& metadata);

    struct Preparation {
        bool commit;
        TransactionVersion version;
        std::optional<base::ProducerId> next_id{};
        bool nothing_added = false;
    };
    /// Decides; the markers leave once that is durable.
    void prepare(const TransactionPtr& transaction, const Preparation& how);
    void begin_ending(const TransactionPtr& transaction);
    void send_markers(const TransactionPtr& transaction,
                      const std::vector<TransactionPartition>& partitions);
    void marked(const TransactionPtr& transaction, const TransactionPartition& partition,
                ErrorCode error);
    void complete(Transaction& transaction);

    [[nodiscard]] bool has_timed_out(const TransactionMetadata& metadata) const;
    void arm_abort_timer();
    void abort_timed_out_ones();
    void abort_timed_out(const TransactionPtr& transaction,
                         std::optional<base::ProducerId> fresh_id);
    void arm_expiration_timer();
    void expire_ids();

    TransactionServices services_;
    /// By transactional id, which lives in the value.
    std::unordered_map<std::string_view, TransactionPtr> transactions_;
    catalog::UnknownKeys unknown_;
    base::TimerQueue::Entry abort_timer_;
    base::TimerQueue::Entry expiration_timer_;
    bool closed_ = false;
    /// For answers of others that may come when this is gone.
    std::shared_ptr<const char> life_ = std::make_shared<const char>();
};

}  // namespace kaas::coordinator
