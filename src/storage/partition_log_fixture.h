#pragma once

#include "base/clock.h"
#include "storage/memory_volume.h"
#include "storage/partition_log.h"
#include "storage/testing_log.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

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
        KAAS_TRY_ASSIGN(accepted, log.append(to_append(make_batch(batch), acks, broker_->executor,
                                                       answer.receiver())));
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
    void restart() { broker_ = std::make_unique<Broker>(volume_, clock_); }

    MemoryVolume volume_;
    base::ManualClock clock_;
    std::unique_ptr<Broker> broker_ = std::make_unique<Broker>(volume_, clock_);
};

}  // namespace kaas::storage::testing
