#pragma once

#include "base/ids.h"
#include "catalog/image.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

/// Where partitions go: pure functions of an image, so that every controller decides alike.
namespace kaas::cluster {

struct Placement {
    std::vector<base::BrokerId> replicas;  ///< preferred leader first
    catalog::Holder leader;                ///< one of them
    std::string volume;                    ///< where it leads
};

/// Brokers that may get partitions, by id: living ones, without those that drain if others are
/// left.
[[nodiscard]] std::vector<base::BrokerId> candidates(const catalog::Image& image);

/// Places `count` new partitions with `factor` replicas each, cut to the brokers there are (DESIGN
/// 8). Goes round, so that leaders, and the volumes of each, get even shares of what is created.
/// Empty when no broker may get any.
[[nodiscard]] std::vector<Placement> place(const catalog::Image& image, std::size_t count,
                                           std::size_t factor);

/// The first of `replicas` that lives leads, on the volume whose turn it is. Empty when none lives.
[[nodiscard]] std::optional<Placement> lead(const catalog::Image& image,
                                            std::vector<base::BrokerId> replicas, std::size_t turn);

/// A new epoch for a partition whose leader has given up its last one: the same broker on the same
/// volume while it lives and stays, so that nothing moves for a failed disk operation; else the
/// next replica that has the volume. Empty when none has: the partition waits for it.
[[nodiscard]] std::optional<Placement> lead_again(const catalog::Image& image,
                                                  const catalog::Partition& partition);

/// A partition that has never been written, under its first leader epoch.
[[nodiscard]] catalog::Partition new_partition(const Placement& placement);

}  // namespace kaas::cluster
