#include "broker/handlers/list_offsets.h"

#include "broker/errors.h"
#include "broker/handlers/partition_access.h"
#include "storage/partition_log.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using wire::ErrorCode;
using Partition = wire::ListOffsetsResponse::ListOffsetsPartitionResponse;
using Found = storage::Result<std::optional<storage::OffsetAndTimestamp>>;

constexpr std::int64_t kLatest = -1;
constexpr std::int64_t kEarliest = -2;
constexpr std::int64_t kMaxTimestamp = -3;
constexpr std::int64_t kEarliestLocal = -4;
constexpr std::int64_t kLatestTiered = -5;
constexpr std::int64_t kEarliestPendingUpload = -6;

/// The version that brought a special time; nothing for numbers that mean none.
std::optional<std::int16_t> special_since(std::int64_t timestamp) {
    switch (timestamp) {
        case kLatest:
        case kEarliest: return std::int16_t{1};
        case kMaxTimestamp: return std::int16_t{7};
        case kEarliestLocal: return std::int16_t{8};
        case kLatestTiered: return std::int16_t{9};
        case kEarliestPendingUpload: return std::int16_t{11};
        default: return std::nullopt;
    }
}

bool is_served(std::int64_t timestamp, std::int16_t version) {
    if (timestamp >= 0) return true;
    auto since = special_since(timestamp);
    return since && version >= *since;
}

/// Times are looked up in files; the ends of the log are known.
bool must_search(std::int64_t timestamp) { return timestamp >= 0 || timestamp == kMaxTimestamp; }

Found find(storage::PartitionLog& log, std::int64_t timestamp, storage::Isolation isolation) {
    switch (timestamp) {
        case kLatest: return log.latest(isolation);
        case kEarliest:
        case kEarliestLocal: return log.earliest();
        case kMaxTimestamp: return log.of_max_timestamp(isolation);
        case kLatestTiered:
        case kEarliestPendingUpload: return std::nullopt;
        default: return log.first_at_or_after(timestamp, isolation);
    }
}

constexpr std::int16_t kLeaderEpochFrom = 4;

void fill(Partition& out, const Found& found, std::int16_t version) {
    if (!found) {
        out.error_code = to_wire(found.error().code);
    } else if (*found) {
        out.offset = (*found)->offset.value();
        out.timestamp = (*found)->timestamp_ms;
        if (version >= kLeaderEpochFrom) out.leader_epoch = (*found)->leader_epoch.value();
    }
}

/// A slot is a log that is always empty.
void list_slot(const catalog::Partition& slot,
               const wire::ListOffsetsRequest::ListOffsetsPartition& asked, Partition& out,
               std::int16_t version) {
    out.error_code = check_epoch(slot, asked.current_leader_epoch);
    const bool is_end = asked.timestamp == kLatest || asked.timestamp == kEarliest ||
                        asked.timestamp == kEarliestLocal;
    if (out.error_code != ErrorCode::kNone || !is_end) return;
    fill(out,
         storage::OffsetAndTimestamp{.offset = base::Offset(0), .leader_epoch = slot.leader_epoch},
         version);
}

/// One partition whose time must be looked up.
struct Search {
    Partition* out;
    storage::LogPtr log;
    std::int64_t timestamp;
};

/// One ListOffsets request under way: the searches run together on the I/O pool.
struct Listing {
    CallPtr call;
    wire::ListOffsetsRequest request;
    wire::ListOffsetsResponse response;
    storage::Isolation isolation = storage::Isolation::kReadUncommitted;
    std::vector<Search> searches;
};

void list_one(Listing& listing, std::string_view topic,
              const wire::ListOffsetsRequest::ListOffsetsPartition& asked, Partition& out) {
    const Call& call = *listing.call;
    if (!is_served(asked.timestamp, call.version())) {
        out.error_code = ErrorCode::kUnsupportedVersion;
        return;
    }
    if (listing.request.isolation_level != 0 && listing.request.isolation_level != 1) {
        out.error_code = ErrorCode::kUnknownServerError;  // Apache knows no such level either
        return;
    }
    auto log = led_log(call, TopicRef::named(topic), asked.partition_index);
    if (const auto* slot =
            log ? nullptr : led_slot(call, TopicRef::named(topic), asked.partition_index)) {
        return list_slot(*slot, asked, out, call.version());
    }
    if (!log) {
        out.error_code = log.error();
        return;
    }
    if (auto current = (*log)->check_epoch(asked.current_leader_epoch); !current) {
        out.error_code = to_wire(current.error().code);
        return;
    }
    if (must_search(asked.timestamp)) {
        listing.searches.push_back({&out, std::move(*log), asked.timestamp});
    } else {
        fill(out, find(**log, asked.timestamp, listing.isolation), call.version());
    }
}

void list_all(Listing& listing) {
    listing.response.topics.resize(listing.request.topics.size());
    for (std::size_t t = 0; t < listing.request.topics.size(); ++t) {
        const auto& asked = listing.request.topics[t];
        auto& topic = listing.response.topics[t];
        topic.name = asked.name;
        topic.partitions.resize(asked.partitions.size());
        std::multiset<std::int32_t> named;
        for (const auto& partition : asked.partitions) named.insert(partition.partition_index);
        for (std::size_t p = 0; p < asked.partitions.size(); ++p) {
            auto& out = topic.partitions[p];
            out.partition_index = asked.partitions[p].partition_index;
            if (named.count(out.partition_index) > 1) {
                out.error_code = ErrorCode::kInvalidRequest;
            } else {
                list_one(listing, asked.name, asked.partitions[p], out);
            }
        }
    }
}

}  // namespace

void list_offsets(CallPtr call, wire::ListOffsetsRequest request) {
    auto listing = std::make_shared<Listing>();
    listing->call = std::move(call);
    listing->request = std::move(request);
    if (listing->request.isolation_level == 1) {
        listing->isolation = storage::Isolation::kReadCommitted;
    }
    list_all(*listing);
    if (listing->searches.empty()) return listing->call->answer(listing->response);
    run_on_pool(
        listing->call,
        [listing] {
            for (auto& search : listing->searches) {
                fill(*search.out, find(*search.log, search.timestamp, listing->isolation),
                     listing->call->version());
            }
        },
        [listing] { listing->call->answer(listing->response); });
}

}  // namespace kaas::broker
