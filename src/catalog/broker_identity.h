#pragma once

#include <string_view>

namespace kaas::catalog {

/// The name under which a broker's endpoint for other brokers stands among its endpoints. Names of
/// `listeners` are in upper case, so none of a client's is ever this one.
inline constexpr std::string_view kInternalListener = "internal";

/// As whom brokers authenticate to each other, and who they are then.
inline constexpr std::string_view kBrokerUser = "__broker";
inline constexpr std::string_view kBrokerPrincipal = "User:__broker";

}  // namespace kaas::catalog
