#pragma once

#include "base/clock.h"
#include "storage/memory_volume.h"
#include "storage/partition_log.h"
#include "storage/testing_log.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>

namespace kaas::storage::testing {

/// One broker, its volume in memory, and the log of one partition: what the tests of the partition
/// log start from.
class PartitionLogTest : public ::testing::Test {
protected:
    [[nodiscard]] std::shared_ptr<PartitionLog> open(std::int32_t epoch,
                                                     const LogConfig& config = {}) {
        auto opened = broker_->open(epoch, config);
        EXPECT_TRUE(opened) << opened.error().context;
        return opened ? *opened : nullptr;
    }
    Result<base::Offset> append(PartitionLog& log, const BatchOptions& batch, Answer& answer,
                                Acks acks = Acks::kAll) {
        auto request = to_append(make_batch(batch), acks, broker_->executor, answer.receiver());
        if (batch.transactional) {
            KAAS_TRY_ASSIGN(guard, verify(log, batch));
            request.verification = guard;
        }
        KAAS_TRY_ASSIGN(accepted, log.append(std::move(request)));
        EXPECT_EQ(accepted.records, batch.records);
        return accepted.base_offset;
    }
    void append_durably(PartitionLog& log, const BatchOptions& batch) {
        Answer answer;
        const auto offset = append(log, batch, answer);
        ASSERT_TRUE(offset) << offset.error().context;
        broker_->commit_all();
        ASSERT_TRUE(answer.good());
        EXPECT_EQ((*answer.value)->base_offset, *offset);
    }
    Result<void> append_marker(PartitionLog& log, const Marker& marker, Answer& answer) {
        return log.append_marker(marker, broker_->executor, answer.receiver());
    }
    void append_marker_durably(PartitionLog& log, const Marker& marker) {
        Answer answer;
        const auto taken = append_marker(log, marker, answer);
        ASSERT_TRUE(taken) << taken.error().context;
        broker_->commit_all();
        ASSERT_TRUE(answer.good());
    }
    void restart() { broker_ = std::make_unique<Broker>(volume_, clock_); }

    MemoryVolume volume_;
    base::ManualClock clock_;
    std::unique_ptr<Broker> broker_ = std::make_unique<Broker>(volume_, clock_);
};

}  // namespace kaas::storage::testing
