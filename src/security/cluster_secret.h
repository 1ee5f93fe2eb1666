#pragma once

#include "security/error.h"
#include "storage/volume.h"

#include <string>

namespace kaas::security {

/// The password by which the brokers of a cluster know each other: on the cluster's volume, in a
/// file that only their user may read. Made by whoever comes first, and the same for all, for ever.
///
/// `__cluster/secret-<n>` is a line of JSON, created exclusively and never written again. Whoever
/// finds one empty or torn makes the next; but its writer may only have been slow. So a secret
/// counts once the next number is a *directory*: making that, and making the next secret, exclude
/// each other, and whoever comes second goes by what the other has decided.
///
/// Blocks: not on a reactor. Errors: kStorage; kDamaged, when what counted has been lost.
[[nodiscard]] Result<std::string> cluster_secret(storage::Volume& volume);

}  // namespace kaas::security
