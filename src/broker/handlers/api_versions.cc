#include "broker/handlers/api_versions.h"

#include "broker/handlers/registry.h"
#include "wire/api.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace kaas::broker {
namespace {

using wire::ErrorCode;

constexpr std::int16_t kLevelZeroFrom = 4;

void advertise(wire::ApiVersionsResponse& response, wire::ApiKey key,
               const wire::VersionRange& range) {
    response.api_keys.push_back({.api_key = static_cast<std::int16_t>(key),
                                 .min_version = range.min,
                                 .max_version = range.max});
}

/// What all brokers of a cluster have agreed on, as long as it cannot be changed (KIP-584). An
/// epoch of -1 would make Java's clients look away.
void advertise_features(wire::ApiVersionsResponse& response, std::int16_t version) {
    response.finalized_features_epoch = 0;
    response.finalized_features.push_back(
        {.name = "transaction.version", .max_version_level = 2, .min_version_level = 2});
    // Older clients take no lowest level of 0 (KIP-1022).
    if (version >= kLevelZeroFrom) {
        response.supported_features.push_back(
            {.name = "transaction.version", .min_version = 0, .max_version = 2});
    }
}

bool is_letter_or_digit(char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/// Version 5 can say whom the client means to talk to: both or neither must be given, and both must
/// be right.
ErrorCode check_addressee(const Call& call, const wire::ApiVersionsRequest& request) {
    bool names_node = request.node_id != -1;
    if (!request.cluster_id && !names_node) return ErrorCode::kNone;
    if (!request.cluster_id || !names_node) return ErrorCode::kInvalidRequest;
    bool here = *request.cluster_id == call.services().node.cluster_id() &&
                request.node_id == call.services().node.id().value();
    return here ? ErrorCode::kNone : ErrorCode::kRebootstrapRequired;
}

ErrorCode check(const Call& call, const wire::ApiVersionsRequest& request) {
    if (call.version() < 3) return ErrorCode::kNone;
    if (!is_software_name(request.client_software_name) ||
        !is_software_name(request.client_software_version)) {
        return ErrorCode::kInvalidRequest;
    }
    return check_addressee(call, request);
}

}  // namespace

bool is_software_name(std::string_view text) {
    return !text.empty() && is_letter_or_digit(text.front()) && is_letter_or_digit(text.back()) &&
           std::ranges::all_of(
               text, [](char c) { return is_letter_or_digit(c) || c == '-' || c == '.'; });
}

wire::ApiVersionsResponse api_versions(const Call& call, const wire::ApiVersionsRequest& request) {
    wire::ApiVersionsResponse response;
    response.error_code = check(call, request);
    if (response.error_code != ErrorCode::kNone) return response;
    if (call.version() >= 3) {
        call.peer().software_name = request.client_software_name.str();
        call.peer().software_version = request.client_software_version.str();
    }
    const auto audience = audience_of(call.peer());
    for (const auto& handler : handlers(audience)) {
        // Brokers are told what is served; to clients some of it is advertised otherwise.
        advertise(response, handler.key,
                  audience == Audience::kBrokers ? versions(handler, audience)
                                                 : wire::api(handler.key).advertised);
    }
    advertise_features(response, call.version());
    return response;
}

void refuse_api_versions(Call& call) {
    wire::ApiVersionsResponse response;
    response.error_code = ErrorCode::kUnsupportedVersion;
    constexpr auto kKey = wire::ApiKey::kApiVersions;
    advertise(response, kKey, wire::api(kKey).advertised);
    call.answer_in_version(response, 0);
}

}  // namespace kaas::broker
