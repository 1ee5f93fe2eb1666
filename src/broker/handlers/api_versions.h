#pragma once

#include "broker/call.h"
#include "wire/messages/api_versions.h"

namespace kaas::broker {

/// ApiVersions (18): what is served, in which versions (KIP-35). Names of client software are
/// checked (KIP-511); version 5 may name the cluster and node that the client means to reach.
[[nodiscard]] wire::ApiVersionsResponse api_versions(const Call& call,
                                                     const wire::ApiVersionsRequest& request);

/// Answers a version that is not served: error 35 in version 0, with this API's own range alone.
void refuse_api_versions(Call& call);

/// Client software names and versions: letters, digits, '-' and '.', neither mark at an end (Apache
/// ApiVersionsRequest).
[[nodiscard]] bool is_software_name(std::string_view text);

}  // namespace kaas::broker
