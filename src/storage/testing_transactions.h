#pragma once

#include "storage/partition_log.h"
#include "storage/partition_log_fixture.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace kaas::storage::testing {

/// A log of transactional producers, whose batches have one record and become durable at once.
class TransactionsTest : public PartitionLogTest {
protected:
    void begin(PartitionLog& log, std::int64_t producer) {
        append_durably(log, {.producer_id = producer,
                             .producer_epoch = 0,
                             .sequence = next_[producer]++,
                             .transactional = true});
    }
    void end(PartitionLog& log, std::int64_t producer, bool commit) {
        append_marker_durably(log, {.producer = base::ProducerId{producer},
                                    .epoch = base::ProducerEpoch{0},
                                    .coordinator_epoch = 1,
                                    .commit = commit});
    }
    [[nodiscard]] static Result<ReadResult> read_committed(PartitionLog& log, std::int64_t from,
                                                           std::uint64_t max_bytes = 1 << 20) {
        return log.read({.from = base::Offset{from},
                         .max_bytes = max_bytes,
                         .isolation = Isolation::kReadCommitted},
                        Patience::kMayBlock);
    }
    /// First and last offsets of what a read calls aborted.
    [[nodiscard]] static std::vector<std::pair<std::int64_t, std::int64_t>> aborted(
        PartitionLog& log, std::int64_t from, std::uint64_t max_bytes = 1 << 20) {
        const auto read = read_committed(log, from, max_bytes);
        EXPECT_TRUE(read) << read.error().context;
        std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
        for (const auto& one : read->aborted)
            pairs.emplace_back(one.first_offset.value(), one.last_offset.value());
        return pairs;
    }
    void kill_and_reopen(std::shared_ptr<PartitionLog>& log, const LogConfig& config = {}) {
        volume_.crash({});
        restart();
        log = open(log->epoch().value() + 1, config);
    }
    std::map<std::int64_t, std::int32_t> next_;
};

}  // namespace kaas::storage::testing
