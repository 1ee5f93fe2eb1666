#pragma once

#include "catalog/config/error.h"
#include "catalog/config/values.h"

namespace kaas::broker {

/// Rules between broker configs, and values that this version cannot serve (Apache
/// `KafkaConfig.validateValues`). Errors: kConflict.
[[nodiscard]] catalog::ConfigResult<void> check_broker_values(const catalog::ConfigValues& values);

}  // namespace kaas::broker
