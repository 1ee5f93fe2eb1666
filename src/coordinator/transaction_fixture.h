#pragma once

#include "base/clock.h"
#include "base/ids.h"
#include "base/metrics.h"
#include "base/timer_queue.h"
#include "coordinator/done.h"
#include "coordinator/testing_transactions.h"
#include "coordinator/transaction_requests.h"
#include "coordinator/transaction_slot.h"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::coordinator::testing {

/// A transaction slot with everything around it in the hands of a test.
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
        slot_ = make_slot(epoch);
        load(*slot_, lines);
        journal_.lines = std::move(lines);
        journal_.durable = journal_.lines.size();
        journal_.at_append = [this] {
            const auto copy = make_slot(0);
            load(*copy, journal_.lines);
            EXPECT_EQ(slot_->picture(), copy->picture())
                << "appended before it was applied: " << journal_.lines.back();
        };
        slot_->start();
    }
    /// Puts a line where a person or an earlier leadership has written it.
    void restart_with(const std::string& line) {
        journal_.lines.push_back(line);
        journal_.settle([](bool) {});
        journal_.settle_all();
        lead(2);
    }

    [[nodiscard]] std::unique_ptr<TransactionSlot> make_slot(std::int32_t epoch) {
        return std::make_unique<TransactionSlot>(
            TransactionServices{.writer = journal_,
                                .timers = timers_,
                                .clock = clock_,
                                .config = config_,
                                .producer_ids = ids_,
                                .markers = markers_,
                                .metrics = metrics_,
                                .epoch = base::LeaderEpoch(epoch)});
    }
    static void load(TransactionSlot& slot, const std::vector<std::string>& lines) {
        EXPECT_TRUE(slot.load_picture({}));
        for (const auto& line : lines) {
            const auto loaded = slot.load_change(boost::json::parse(line).as_object());
            EXPECT_TRUE(loaded) << line << loaded.error().context;
        }
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
