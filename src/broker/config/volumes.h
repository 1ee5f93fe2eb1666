#pragma once

#include "broker/config/broker_config.h"
#include "catalog/config/error.h"
#include "catalog/config/values.h"

#include <string>
#include <string_view>
#include <vector>

namespace kaas::broker {

/// Whether `name` is kaas.volume.<volume>.path, .labels or .default.eligible.
[[nodiscard]] bool is_volume_config(std::string_view name);

/// The names that the configs of `volume` have.
[[nodiscard]] std::vector<std::string> volume_configs(std::string_view volume);

/// The directories of `log.dirs`, then those of kaas.volume.*. The first of log.dirs is called
/// "default", further ones by the last part of their path. Errors: kConflict when two have one name
/// or path, or a volume has no path; kInvalidValue.
[[nodiscard]] catalog::ConfigResult<std::vector<LogDir>> parse_log_dirs(
    const std::vector<std::string>& log_dirs, const catalog::ConfigMap& families);

/// Notes which of `dirs` `cordoned.log.dirs` names; `*` means all. Errors: kConflict for one that
/// is not among them, as in Apache.
[[nodiscard]] catalog::ConfigResult<void> cordon(const std::vector<std::string>& cordoned,
                                                 std::vector<LogDir>& dirs);

}  // namespace kaas::broker
