#pragma once

#include "base/ids.h"
#include "cluster/error.h"
#include "storage/volume.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kaas::cluster {

inline constexpr std::string_view kAddressDirectory = "__cluster/controllers";

/// Where a controller is to be found.
struct ControllerAddress {
    base::ControllerEpoch epoch{0};
    base::BrokerId broker{-1};
    std::string host;
    std::uint16_t port = 0;
    std::string cluster_id;
};

/// Tells the cluster where this controller is: a file of its epoch's, created exclusively. A hint
/// and nothing more (whoever follows it asks the controller for its epoch), so a controller that
/// cannot write it is found later than it could be. It is synced all the same: it is written once
/// in a reign, and a server that came up without it would hide a controller that lives on. Files of
/// lower epochs go. The directory is `prepare_cluster`'s.
void tell_address(storage::Volume& volume, const ControllerAddress& address);

/// The newest there is; its controller may have been succeeded. Errors: kStorage.
[[nodiscard]] Result<std::optional<ControllerAddress>> newest_address(storage::Volume& volume);

}  // namespace kaas::cluster
