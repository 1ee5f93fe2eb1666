#pragma once

#include <functional>
#include <map>
#include <string>

namespace kaas::catalog {

/// Configured values by key, as somebody wrote them.
using ConfigMap = std::map<std::string, std::string, std::less<>>;

}  // namespace kaas::catalog
