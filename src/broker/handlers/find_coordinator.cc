#include "broker/handlers/find_coordinator.h"

#include <cstdint>

namespace kaas::broker {
namespace {

using wire::ErrorCode;

constexpr std::int8_t kGroup = 0;
constexpr std::int8_t kTransaction = 1;
constexpr std::int8_t kShare = 2;
constexpr std::int16_t kBatchedFrom = 4;
constexpr std::int16_t kShareFrom = 6;

ErrorCode outcome(const Call& call, std::int8_t key_type) {
    bool known = key_type == kGroup || key_type == kTransaction ||
                 (key_type == kShare && call.version() >= kShareFrom);
    return known ? ErrorCode::kCoordinatorNotAvailable : ErrorCode::kInvalidRequest;
}

}  // namespace

wire::FindCoordinatorResponse find_coordinator(const Call& call,
                                               const wire::FindCoordinatorRequest& request) {
    wire::FindCoordinatorResponse response;
    ErrorCode error = outcome(call, request.key_type);
    if (call.version() < kBatchedFrom) {
        response.error_code = error;
        response.node_id = -1;
        response.port = -1;
        return response;
    }
    for (const auto& key : request.coordinator_keys) {
        auto& coordinator = response.coordinators.emplace_back();
        coordinator.key = key;
        coordinator.node_id = -1;
        coordinator.port = -1;
        coordinator.error_code = error;
    }
    return response;
}

}  // namespace kaas::broker
