#pragma once

#include "base/result.h"

#include <string>

namespace kaas::catalog {

/// Why a configuration was refused. The context is a sentence for the person who wrote it.
enum class ConfigFault {
    kUnknownName,   ///< no config is called this
    kInvalidValue,  ///< one value is not of its type, range or set
    kConflict,      ///< values that are good alone do not fit each other
};

using ConfigError = base::Error<ConfigFault>;

template <class T>
using ConfigResult = base::Result<T, ConfigFault>;

}  // namespace kaas::catalog
