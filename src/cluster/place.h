#pragma once

#include "base/ids.h"

#include <functional>
#include <map>
#include <string>

namespace kaas::storage {
class LogDir;
class Volume;
}  // namespace kaas::storage

namespace kaas::cluster {

/// A volume as this life of the broker uses it.
struct Place {
    storage::Volume* volume = nullptr;
    storage::LogDir* logs = nullptr;
    base::Incarnation incarnation;
};
/// By volume name.
using Places = std::map<std::string, Place, std::less<>>;

}  // namespace kaas::cluster
