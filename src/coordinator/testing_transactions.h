#pragma once

#include "base/clock.h"
#include "base/ids.h"
#include "base/metrics.h"
#include "base/timer_queue.h"
#include "coordinator/done.h"
#include "coordinator/slot_writer.h"
#include "coordinator/transaction_requests.h"
#include "coordinator/transaction_slot.h"
#include "storage/transaction_marker.h"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// A transaction slot with everything around it in the hands of a test.
namespace kaas::coordinator::testing {

/// A journal that makes durable what it is told to.
class ManualJournal final : public SlotWriter {
public:
    void append(std::string change) override { lines.push_back(std::move(change)); }
    void settle(Settled done) override { waiting_.push_back({lines.size(), std::move(done)}); }

    /// Makes durable what the first that waits asked for. False when nobody waits.
    bool settle_one(bool good = true) {
        if (waiting_.empty()) return false;
        auto [upto, done] = std::move(waiting_.front());
        waiting_.pop_front();
        if (good) durable = std::max(durable, upto);
        done(good);
        return true;
    }
    void settle_all() {
        while (settle_one()) {
        }
    }
    [[nodiscard]] bool anybody_waits() const { return !waiting_.empty(); }

    std::vector<std::string> lines;
    std::size_t durable = 0;  ///< lines

private:
    std::deque<std::pair<std::size_t, Settled>> waiting_;
};

/// Gives 1000, 1001, ...; at once, or when it is told to.
class ManualIds final : public ProducerIdSource {
public:
    void next_producer_id(Got got) override {
        if (at_once) return got(next());
        waiting.push_back(std::move(got));
    }
    [[nodiscard]] std::expected<base::ProducerId, ErrorCode> next() {
        if (error != ErrorCode::kNone) return std::unexpected(error);
        return base::ProducerId(next_++);
    }

    bool at_once = true;
    ErrorCode error = ErrorCode::kNone;
    std::deque<Got> waiting;

private:
    std::int64_t next_ = 1000;
};

struct SentMarker {
    storage::Marker marker;
    TransactionPartition partition;
    Done<ErrorCode> written;
};

class ManualMarkers final : public MarkerSink {
public:
    void send(const storage::Marker& marker, const TransactionPartition& partition,
              Done<ErrorCode> written) override {
        sent.push_back({marker, partition, std::move(written)});
    }
    /// Answers those that are under way now; returns how many that were.
    std::size_t answer_all(ErrorCode error = ErrorCode::kNone) {
        auto now = std::exchange(sent, {});
        for (auto& one : now) one.written(error);
        return now.size();
    }

    std::deque<SentMarker> sent;
};

inline TransactionPartition partition(std::string topic, std::int32_t number) {
    return {std::move(topic), base::PartitionId(number)};
}
inline ProducerIdAndEpoch producer(std::int64_t id, std::int16_t epoch) {
    return {base::ProducerId(id), base::ProducerEpoch(epoch)};
}

class TransactionFixture : public ::testing::Test {
protected:
    TransactionFixture() { lead(1); }

    /// A new leadership of the slot, from what is durable.
    void lead(std::int32_t epoch) {
        auto lines = std::move(journal_.lines);
        lines.resize(journal_.durable);
        slot_.reset();
        journal_ = ManualJournal();
        markers_.sent.clear();
        slot_ = std::make_unique<TransactionSlot>(
            TransactionServices{.writer = journal_,
                                .timers = timers_,
                                .clock = clock_,
                                .config = config_,
                                .producer_ids = ids_,
                                .markers = markers_,
                                .metrics = metrics_,
                                .epoch = base::LeaderEpoch(epoch)});
        EXPECT_TRUE(slot_->load_picture({}));
        for (const auto& line : lines) {
            const auto loaded = slot_->load_change(boost::json::parse(line).as_object());
            EXPECT_TRUE(loaded) << line << loaded.error().context;
        }
        journal_.lines = std::move(lines);
        journal_.durable = journal_.lines.size();
        slot_->start();
    }
    /// Puts a line where a person or an earlier leadership has written it.
    void restart_with(const std::string& line) {
        journal_.append(line);
        journal_.settle([](bool) {});
        journal_.settle_all();
        lead(2);
    }

    void pass(std::chrono::milliseconds time) {
        clock_.advance(time);
        while (auto due = timers_.take_due(clock_.now())) due();
    }

    template <class Answer>
    [[nodiscard]] static Done<Answer> into(std::optional<Answer>& answer) {
        return [&answer](Answer value) {
            EXPECT_FALSE(answer.has_value()) << "answered twice";
            answer = std::move(value);
        };
    }

    // Each makes all durable and answers no marker.
    InitProducerIdAnswer init(std::optional<ProducerIdAndEpoch> current = {},
                              const std::string& id = "pay") {
        std::optional<InitProducerIdAnswer> answer;
        slot_->init_producer_id({.transactional_id = id,
                                 .transaction_timeout = std::chrono::minutes(1),
                                 .current = current},
                                into(answer));
        journal_.settle_all();
        EXPECT_TRUE(answer.has_value());
        return answer.value_or(InitProducerIdAnswer{});
    }
    ErrorCode add(const ProducerIdAndEpoch& who, std::vector<TransactionPartition> partitions,
                  TransactionVersion version = kEpochBump, const std::string& id = "pay") {
        std::optional<ErrorCode> answer;
        slot_->add_partitions({id, who, std::move(partitions), version}, into(answer));
        journal_.settle_all();
        return answer.value_or(ErrorCode::kUnknownServerError);
    }
    EndTxnAnswer end(const ProducerIdAndEpoch& who, bool commit,
                     TransactionVersion version = kEpochBump, const std::string& id = "pay") {
        std::optional<EndTxnAnswer> answer;
        slot_->end_txn({id, who, commit, version}, into(answer));
        journal_.settle_all();
        return answer.value_or(EndTxnAnswer{.error = ErrorCode::kUnknownServerError});
    }
    TransactionDescription describe(const std::string& id = "pay") {
        std::optional<TransactionDescription> answer;
        slot_->describe(id, into(answer));
        journal_.settle_all();
        return answer.value_or(TransactionDescription{});
    }
    /// Answers markers until none is under way.
    void finish_markers() {
        while (markers_.answer_all() > 0) journal_.settle_all();
    }

    base::ManualClock clock_;
    base::TimerQueue timers_;
    base::metrics::Registry registry_;
    TransactionMetrics metrics_ = TransactionMetrics::of(registry_);
    TransactionConfig config_;
    ManualJournal journal_;
    ManualIds ids_;
    ManualMarkers markers_;
    std::unique_ptr<TransactionSlot> slot_;
};

}  // namespace kaas::coordinator::testing
