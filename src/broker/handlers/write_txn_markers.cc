#include "broker/handlers/write_txn_markers.h"

#include "base/ids.h"
#include "broker/coordination/marker_sender.h"
#include "storage/transaction_marker.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace kaas::broker {
namespace {

using wire::ErrorCode;

/// One request under way. Thread: the call's reactor.
class Marking : public std::enable_shared_from_this<Marking> {
public:
    Marking(CallPtr call, wire::WriteTxnMarkersRequest request)
        : call_(std::move(call)), request_(std::move(request)) {}

    void start() {
        open_ = 1;  // this loop: no early answer while it runs
        for (const auto& asked : request_.markers) {
            const storage::Marker marker{.producer = base::ProducerId(asked.producer_id),
                                         .epoch = base::ProducerEpoch(asked.producer_epoch),
                                         .coordinator_epoch = asked.coordinator_epoch,
                                         .commit = asked.transaction_result,
                                         .transaction_version = asked.transaction_version};
            for (const auto& topic : asked.topics) {
                for (const auto partition : topic.partition_indexes)
                    write(marker, topic.name, partition);
            }
        }
        close_one();
    }

private:
    void write(const storage::Marker& marker, std::string_view topic, std::int32_t partition) {
        // A producer's markers are answered together, the last one of a partition counting.
        auto& error = errors_[marker.producer][std::string(topic)][partition];
        if (marker.producer.value() < 0 || marker.epoch.value() < 0) {
            error = ErrorCode::kUnknownServerError;  // as Apache, which can build no such batch
            return;
        }
        ++open_;
        write_marker({call_->state().partitions, call_->services().coordination, call_->home()},
                     marker, {std::string(topic), base::PartitionId(partition)},
                     [self = shared_from_this(), &error](ErrorCode outcome) {
                         error = outcome;
                         self->close_one();
                     });
    }

    void close_one() {
        if (--open_ > 0) return;
        wire::WriteTxnMarkersResponse response;
        for (const auto& [producer, topics] : errors_) {
            auto& marker = response.markers.emplace_back();
            marker.producer_id = producer.value();
            for (const auto& [name, partitions] : topics) {
                auto& topic = marker.topics.emplace_back();
                topic.name = name;
                for (const auto& [index, error] : partitions) {
                    topic.partitions.push_back({.partition_index = index, .error_code = error});
                }
            }
        }
        call_->answer(response);
    }

    CallPtr call_;
    wire::WriteTxnMarkersRequest request_;
    std::map<base::ProducerId, std::map<std::string, std::map<std::int32_t, ErrorCode>>> errors_;
    std::size_t open_ = 0;
};

}  // namespace

void write_txn_markers(CallPtr call, wire::WriteTxnMarkersRequest request) {
    std::make_shared<Marking>(std::move(call), std::move(request))->start();
}

}  // namespace kaas::broker
