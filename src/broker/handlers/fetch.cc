#include "broker/handlers/fetch.h"

#include "broker/errors.h"
#include "broker/fetch_sessions.h"
#include "broker/handlers/partition_access.h"
#include "net/reactor.h"
#include "storage/partition_log.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using wire::ErrorCode;

constexpr std::int16_t kByIdFrom = 13;
constexpr std::int16_t kHintsFrom = 12;
constexpr std::int16_t kEndpointsFrom = 16;

/// What one partition gives to the answer.
struct Part {
    storage::LogPtr log;  ///< none with an error, and of a slot
    ErrorCode error = ErrorCode::kNone;
    storage::ReadResult read;
    storage::LeaderEpochs::End divergence;
    bool diverges = false;
};

/// As Apache says it of a damaged batch: its clients tell the application where, and go on with
/// what else it reads. KAFKA_STORAGE_ERROR they would repeat in silence.
[[nodiscard]] ErrorCode error_of(const storage::Error& error) {
    return error.code == storage::ErrorCode::kCorrupt ? ErrorCode::kCorruptMessage
                                                      : to_wire(error.code);
}

bool is_unknown(ErrorCode error) {
    return error == ErrorCode::kUnknownTopicOrPartition || error == ErrorCode::kUnknownTopicId;
}

/// Apache takes every negative number for "not told" here.
std::int32_t current_leader_epoch(const FetchTarget& target) {
    return std::max(target.current_leader_epoch, -1);
}

/// What the client read last is not what this log has at that place: tells where they part
/// (KIP-320).
/// False when the client must be told to go back and this thread may not ask the session first.
[[nodiscard]] bool compare_history(const FetchTarget& target, Part& part,
                                   storage::Patience patience) {
    if (target.last_fetched_epoch < 0) return true;
    auto end = part.log->end_of_epoch(base::LeaderEpoch(target.last_fetched_epoch),
                                      current_leader_epoch(target));
    if (!end) {
        part.error = to_wire(end.error().code);
    } else if (end->offset.value() < 0) {
        part.error = ErrorCode::kOffsetOutOfRange;
    } else if (end->epoch.value() < target.last_fetched_epoch ||
               end->offset.value() < target.fetch_offset) {
        part.diverges = true;
        part.divergence = *end;
        const auto seen = part.log->view();
        part.read = {.high_watermark = seen.high_watermark,
                     .last_stable_offset = seen.last_stable_offset,
                     .log_start = seen.log_start};
    }
    bool tells = part.diverges || part.error == ErrorCode::kOffsetOutOfRange;
    if (!tells) return true;
    if (patience != storage::Patience::kMayBlock) return false;
    if (auto alive = part.log->confirm_session(); !alive) {
        part.diverges = false;
        part.error = to_wire(alive.error().code);
    }
    return true;
}

/// One Fetch request under way.
/// Thread: the call's reactor, except `read_parts`, which may also run on the I/O pool while
/// nothing else of the object is touched.
class Fetching : public std::enable_shared_from_this<Fetching> {
public:
    Fetching(CallPtr call, wire::FetchRequest request)
        : call_(std::move(call)), request_(std::move(request)), timer_(call_->reactor()) {}

    void start() {
        context_ = call_->services().fetch_sessions.begin(request_, by_id());
        if (context_.error != ErrorCode::kNone) return answer_error(context_.error);
        auto most = std::min(request_.max_bytes, call_->services().config.settings.fetch_max_bytes);
        max_bytes_ = static_cast<std::uint64_t>(std::max(most, 0));
        min_bytes_ =
            std::min(static_cast<std::uint64_t>(std::max(request_.min_bytes, 0)), max_bytes_);
        deadline_ =
            call_->reactor().now() + std::chrono::milliseconds(std::max(request_.max_wait_ms, 0));
        attempt();
    }

private:
    [[nodiscard]] bool by_id() const { return call_->version() >= kByIdFrom; }
    [[nodiscard]] TopicRef topic_ref(const FetchTarget& target) const {
        return {*target.name, target.id, by_id()};
    }
    [[nodiscard]] bool committed_only() const { return request_.isolation_level == 1; }
    [[nodiscard]] storage::Isolation isolation() const {
        return committed_only() ? storage::Isolation::kReadCommitted
                                : storage::Isolation::kReadUncommitted;
    }

    /// Reads what is there; answers, or parks until there is more.
    void attempt() {
        parts_.clear();
        parts_.resize(context_.targets.size());
        for (std::size_t i = 0; i < parts_.size(); ++i) resolve(context_.targets[i], parts_[i]);
        if (read_parts(storage::Patience::kNever)) return decide();
        // Something is not in memory: the disk is waited for elsewhere.
        run_on_pool(
            call_,
            [self = shared_from_this()] { (void)self->read_parts(storage::Patience::kMayBlock); },
            [self = shared_from_this()] { self->decide(); });
    }

    void resolve(const FetchTarget& target, Part& part) {
        if (request_.replica_id >= 0 || request_.replica_state.replica_id >= 0) {
            part.error =
                ErrorCode::kNotLeaderOrFollower;  // nobody replicates: there are no followers
            return;
        }
        auto log = led_log(*call_, topic_ref(target), target.partition);
        if (log) {
            part.log = std::move(*log);
        } else if (const auto* slot = led_slot(*call_, topic_ref(target), target.partition)) {
            part.error = check_epoch(*slot, current_leader_epoch(target));
            if (part.error == ErrorCode::kNone && target.fetch_offset != 0)
                part.error = ErrorCode::kOffsetOutOfRange;
        } else {
            part.error = log.error();
        }
    }

    /// False when a partition would have had to wait for the disk.
    [[nodiscard]] bool read_parts(storage::Patience patience) {
        std::uint64_t room = max_bytes_;
        bytes_ = 0;
        available_ = 0;
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            Part& part = parts_[i];
            if (part.log == nullptr) continue;
            part.error = ErrorCode::kNone;  // a first try may have been broken off
            part.diverges = false;
            const FetchTarget& target = context_.targets[i];
            storage::Read read;
            read.from = base::Offset(target.fetch_offset);
            read.max_bytes =
                std::min(room, static_cast<std::uint64_t>(std::max(target.max_bytes, 0)));
            read.at_least_one_batch = bytes_ == 0;
            read.isolation = isolation();
            read.current_leader_epoch = current_leader_epoch(target);
            // First of all, as Apache does: what the client has may lie beyond the end of this log.
            if (!compare_history(target, part, patience)) return false;
            if (part.diverges || part.error != ErrorCode::kNone) continue;
            auto got = part.log->read(read, patience);
            if (!got && got.error().code == storage::ErrorCode::kWouldBlock) return false;
            part.error = got ? ErrorCode::kNone : error_of(got.error());
            if (!got) continue;
            part.read = std::move(*got);
            available_ += part.read.available_bytes;
            bytes_ += part.read.records.length;
            room -= std::min(room, part.read.records.length);
        }
        return true;
    }

    void decide() {
        bool news = std::ranges::any_of(parts_, [](const Part& part) {
            return part.error != ErrorCode::kNone || part.diverges;
        });
        // Counted as Apache does: not only in whole batches, which may never add up to it.
        bool enough = available_ >= min_bytes_ || parts_.empty();
        bool may_wait = call_->state().parked.open() && call_->reactor().now() < deadline_;
        if (enough || news || !may_wait) return answer();
        park();
    }

    void park() {
        // With one partition its log can wait for all that is missing; of several, any may bring
        // the rest.
        std::uint64_t missing = parts_.size() == 1 ? min_bytes_ - available_ : 1;
        for (auto& part : parts_) {
            if (part.log == nullptr) continue;  // a slot: nothing ever comes
            storage::Watch watch;
            watch.isolation = isolation();
            watch.beyond =
                committed_only() ? part.read.last_stable_offset : part.read.high_watermark;
            watch.min_bytes = missing;
            watch.home = &call_->home();
            watch.wake = [self = weak_from_this()] {
                if (auto alive = self.lock()) alive->wake();
            };
            watches_.emplace_back(part.log, part.log->watch(std::move(watch)));
        }
        auto left =
            std::chrono::ceil<std::chrono::milliseconds>(deadline_ - call_->reactor().now());
        timer_.arm(left, [this] { wake(); });
        parked_ = shared_from_this();
        call_->state().parked.add(call_->peer().connection_id,
                                  {.drop = [this] { leave(); }, .answer = [this] { wake(); }});
    }

    void wake() {
        if (parked_ == nullptr) return;  // a second log woke it in the same turn
        auto self = leave();
        attempt();
    }

    /// Undoes `park`. Gives what kept the object alive meanwhile.
    std::shared_ptr<Fetching> leave() {
        timer_.cancel();
        for (auto& [log, id] : watches_) log->unwatch(id);
        watches_.clear();
        call_->state().parked.remove(call_->peer().connection_id);
        return std::move(parked_);
    }

    void answer_error(ErrorCode error) {
        wire::FetchResponse response;
        response.error_code = error;
        call_->answer(response);
    }

    void answer() {
        std::vector<FetchOutcome> outcomes;
        outcomes.reserve(parts_.size());
        for (const auto& part : parts_) outcomes.push_back(outcome_of(part));
        auto plan = call_->services().fetch_sessions.finish(context_, outcomes, by_id());
        if (plan.error != ErrorCode::kNone) return answer_error(plan.error);
        wire::FetchResponse response;
        response.session_id = plan.session_id;
        std::vector<storage::FileSlice> slices;
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            if (plan.include[i]) add_part(i, response, slices);
        }
        call_->answer(response, std::move(slices));
    }

    [[nodiscard]] static FetchOutcome outcome_of(const Part& part) {
        bool good = part.error == ErrorCode::kNone;
        return {.error = part.error,
                .high_watermark = good ? part.read.high_watermark.value() : -1,
                .log_start = good ? part.read.log_start.value() : -1,
                .has_records = part.read.records.length > 0,
                .diverges = part.diverges};
    }

    void add_part(std::size_t i, wire::FetchResponse& response,
                  std::vector<storage::FileSlice>& slices) {
        const FetchTarget& target = context_.targets[i];
        Part& part = parts_[i];
        auto* topic = response.responses.empty() ? nullptr : &response.responses.back();
        if (topic == nullptr || topic->topic_id != target.id || topic->topic != *target.name) {
            topic = &response.responses.emplace_back();
            topic->topic = *target.name;
            topic->topic_id = target.id;
        }
        auto& out = topic->partitions.emplace_back();
        out.partition_index = target.partition;
        out.error_code = part.error;
        out.records = wire::Records::bytes({});
        if (part.error != ErrorCode::kNone) return add_failure(target, out, response);
        out.high_watermark = part.read.high_watermark.value();
        out.last_stable_offset = part.read.last_stable_offset.value();
        out.log_start_offset = part.read.log_start.value();
        out.aborted_transactions.reset();
        if (committed_only()) {
            out.aborted_transactions.emplace();
            for (const auto& aborted : part.read.aborted) {
                auto& row = out.aborted_transactions->emplace_back();
                row.producer_id = aborted.producer_id.value();
                row.first_offset = aborted.first_offset.value();
            }
        }
        if (part.diverges) {
            out.diverging_epoch.epoch = part.divergence.epoch.value();
            out.diverging_epoch.end_offset = part.divergence.offset.value();
        }
        if (part.read.records.length > 0) {
            count(target, part.read.records.length);
            out.records = wire::Records::external(
                static_cast<std::uint32_t>(part.read.records.length), slices.size());
            slices.push_back(std::move(part.read.records));
        }
    }

    void add_failure(const FetchTarget& target, wire::FetchResponse::PartitionData& out,
                     wire::FetchResponse& response) {
        out.high_watermark = -1;
        if (!is_unknown(out.error_code))
            out.aborted_transactions.reset();  // Apache: empty, else null
        const catalog::Topic* topic = find_topic(*call_, topic_ref(target));
        call_->state().topic_metrics.fetch_failed(topic, out.error_code);
        if (!has_hint(out.error_code) || call_->version() < kHintsFrom) return;
        LeaderHint hint = leader_hint(*call_, topic_ref(target), target.partition);
        out.current_leader.leader_id = hint.leader_id;
        out.current_leader.leader_epoch = hint.leader_epoch;
        if (call_->version() >= kEndpointsFrom) {
            add_endpoint(*call_, hint.leader_id, response.node_endpoints);
        }
    }

    void count(const FetchTarget& target, std::uint64_t bytes) {
        if (const catalog::Topic* topic = find_topic(*call_, topic_ref(target))) {
            call_->state().topic_metrics.fetched(*topic, bytes);
        }
    }

    CallPtr call_;
    wire::FetchRequest request_;
    FetchContext context_;
    std::vector<Part> parts_;
    std::uint64_t max_bytes_ = 0;
    std::uint64_t min_bytes_ = 0;
    std::uint64_t bytes_ = 0;      ///< of the records that were found
    std::uint64_t available_ = 0;  ///< as `ReadResult::available_bytes`, of all partitions
    base::Clock::Steady deadline_;
    net::ReactorTimer timer_;
    std::vector<std::pair<storage::LogPtr, storage::WatchId>> watches_;
    std::shared_ptr<Fetching>
        parked_;  ///< itself, while nothing but a watch or the timer would hold it
};

}  // namespace

void fetch(CallPtr call, wire::FetchRequest request) {
    std::make_shared<Fetching>(std::move(call), std::move(request))->start();
}

}  // namespace kaas::broker
