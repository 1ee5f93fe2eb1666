#pragma once

#include "base/ids.h"
#include "storage/error.h"
#include "storage/session_check.h"
#include "storage/volume.h"

#include <string>

/// Removal of what a deleted topic leaves on a volume, by way of `__deleted` (`prepare_volume`
/// makes it).
namespace kaas::cluster {

inline constexpr std::string_view kDeletedDirectory = "__deleted";

/// Takes the topic's directory out of the way in one step, so that nobody finds half of it under
/// its name. Good as well when it was never there, or moved before. Requires: no log of the topic
/// is open. The session is checked first (DESIGN rule 7).
[[nodiscard]] storage::Result<void> set_aside(storage::Volume& volume,
                                              storage::SessionCheck& session,
                                              const std::string& name, const base::TopicId& id);

/// Removes what was set aside. May be called again after any error, and goes on where it stopped.
[[nodiscard]] storage::Result<void> reclaim(storage::Volume& volume, storage::SessionCheck& session,
                                            const std::string& name, const base::TopicId& id);

}  // namespace kaas::cluster
