#pragma once

#include "broker/config/broker_config.h"
#include "catalog/config/error.h"
#include "catalog/config/values.h"

#include <string>
#include <vector>

namespace kaas::broker {

/// What was set in all places together.
struct MergedConfig {
    catalog::ConfigMap known;     ///< of broker_configs()
    catalog::ConfigMap families;  ///< listener.name.*, kaas.volume.*, super.users, ...
    std::vector<std::string> notes;
    std::vector<std::string> warnings;
};

/// Reads the three places; each value is checked where it stands, so that a message can name the
/// place.
[[nodiscard]] catalog::ConfigResult<MergedConfig> merge(const ConfigInputs& inputs);

}  // namespace kaas::broker
