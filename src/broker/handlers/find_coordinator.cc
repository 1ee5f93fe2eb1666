#include "broker/handlers/find_coordinator.h"

#include "base/uuid.h"
#include "broker/coordination/slot_topics.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "catalog/slot.h"

#include <charconv>
#include <cstdint>
#include <expected>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace kaas::broker {
namespace {

using wire::ErrorCode;

// Apache FindCoordinatorRequest.CoordinatorType
constexpr std::int8_t kGroup = 0;
constexpr std::int8_t kTransaction = 1;
constexpr std::int8_t kShare = 2;
constexpr std::int16_t kBatchedFrom = 4;
constexpr std::int16_t kShareFrom = 6;

std::optional<catalog::SlotKind> kind_of(std::int8_t key_type) {
    switch (key_type) {
        case kGroup: return catalog::SlotKind::kGroup;
        case kTransaction: return catalog::SlotKind::kTransaction;
        default: return std::nullopt;
    }
}

/// The part of `text` behind its last colon, which is taken off with it.
std::string_view take_last(std::string_view& text) {
    const auto colon = text.rfind(':');
    if (colon == std::string_view::npos) return std::exchange(text, {});
    const auto last = text.substr(colon + 1);
    text = text.substr(0, colon);
    return last;
}

/// `<group>:<topic id>:<partition>` (Apache `SharePartitionKey`).
bool is_share_key(std::string_view key) {
    const auto partition = take_last(key);
    const auto topic = take_last(key);
    std::int32_t number = 0;
    const auto [end, wrong] =
        std::from_chars(partition.data(), partition.data() + partition.size(), number);
    return !key.empty() && base::Uuid::parse(topic) && wrong == std::errc() &&
           end == partition.data() + partition.size() && number >= 0;
}

struct Found {
    std::int32_t id;
    const catalog::Endpoint* endpoint;
};

std::expected<Found, ErrorCode> find(const Call& call, const catalog::Image& image,
                                     std::int8_t key_type, std::string_view key) {
    const auto kind = kind_of(key_type);
    if (!kind) {
        const bool known = key_type == kShare && call.version() >= kShareFrom && is_share_key(key);
        return std::unexpected(known ? ErrorCode::kCoordinatorNotAvailable
                                     : ErrorCode::kInvalidRequest);
    }
    const auto* topic = image.topic(catalog::slot_topic(*kind));
    if (topic == nullptr) return std::unexpected(ErrorCode::kCoordinatorNotAvailable);
    const auto slot = catalog::slot_of(key, topic->partitions.size());
    const auto& partition = *topic->partition(slot);
    if (call.services().node.away()->has(partition)) {
        return std::unexpected(ErrorCode::kCoordinatorNotAvailable);
    }
    const auto* broker = image.broker(image.leader(partition));
    const auto* endpoint = broker == nullptr ? nullptr : broker->endpoint(call.peer().listener);
    if (endpoint == nullptr) return std::unexpected(ErrorCode::kCoordinatorNotAvailable);
    return Found{broker->id.value(), endpoint};
}

/// Apache `Errors.message`, for versions that have it also where all is well.
std::string_view message_of(ErrorCode code) {
    switch (code) {
        case ErrorCode::kNone: return "NONE";
        case ErrorCode::kCoordinatorNotAvailable: return "The coordinator is not available.";
        default: return "This request cannot be served: its kind of key is not known.";
    }
}

template <class Out>
void fill(const std::expected<Found, ErrorCode>& found, Out& out) {
    out.error_code = found ? ErrorCode::kNone : found.error();
    out.node_id = found ? found->id : -1;
    out.host = found ? std::string_view(found->endpoint->host) : "";
    out.port = found ? found->endpoint->port : -1;
}

void answer(Call& call, const wire::FindCoordinatorRequest& request) {
    // One for all keys: endpoints lie in it until the answer is encoded.
    const auto& image = call.state().partitions.image();
    wire::FindCoordinatorResponse response;
    if (call.version() < kBatchedFrom) {
        fill(find(call, image, request.key_type, request.key), response);
        response.error_message = message_of(response.error_code);
    }
    for (const auto& key : request.coordinator_keys) {
        auto& coordinator = response.coordinators.emplace_back();
        coordinator.key = key;
        fill(find(call, image, request.key_type, key), coordinator);
    }
    call.answer(response);
}

}  // namespace

void find_coordinator(CallPtr call, wire::FindCoordinatorRequest request) {
    const auto kind = kind_of(request.key_type);
    const bool asks = call->version() < kBatchedFrom || !request.coordinator_keys.empty();
    const auto& image = call->state().partitions.image();
    if (!kind || !asks || image.topic(catalog::slot_topic(*kind)) != nullptr) {
        return answer(*call, request);
    }
    auto& home = call->home();
    auto& topics = call->services().slot_topics;
    topics.make(*kind, home,
                [call = std::move(call), request = std::move(request)] { answer(*call, request); });
}

}  // namespace kaas::broker
