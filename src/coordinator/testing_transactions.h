#pragma once

#include "base/ids.h"
#include "coordinator/done.h"
#include "coordinator/testing_journal.h"
#include "coordinator/transaction_requests.h"
#include "coordinator/transaction_slot.h"
#include "storage/transaction_marker.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <expected>
#include <string>
#include <utility>

/// What is around a transaction slot, in the hands of a test.
namespace kaas::coordinator::testing {

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

}  // namespace kaas::coordinator::testing
