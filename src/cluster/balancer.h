#pragma once

#include "base/ids.h"
#include "catalog/image.h"

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Where partitions go: pure functions of an image, so that every controller decides alike.
namespace kaas::cluster {

struct Placement {
    std::vector<base::BrokerId> replicas;  ///< preferred leader first
    catalog::Holder leader;                ///< one of them
    std::string volume;                    ///< where it leads
};

/// Whether a volume of `broker` gets no new partitions (KIP-1066): by the dynamic
/// `cordoned.log.dirs` of the broker or of all, else by what the broker said of itself.
[[nodiscard]] bool is_cordoned(const catalog::Image& image, const catalog::Broker& broker,
                               std::string_view volume);
/// True when the broker lives, and each of its volumes is cordoned.
[[nodiscard]] bool all_cordoned(const catalog::Image& image, const catalog::Broker& broker);

/// How many partitions each volume of each broker leads, and will lead by what was placed since.
/// Slots are not counted: they lie where they must, and weigh little.
class VolumeUse {
public:
    /// With `only`, everything goes to the volume of that name, whatever else is there.
    explicit VolumeUse(const catalog::Image& image, std::optional<std::string> only = {});
    /// The least used of the broker's volumes that may get a partition of a topic that asks for
    /// none; of equals the first by name. It has one more from now on. Empty when there is none.
    [[nodiscard]] std::optional<std::string> take(const catalog::Broker& broker);
    /// Whether `take` would find one.
    [[nodiscard]] bool has_room(const catalog::Broker& broker) const;

private:
    [[nodiscard]] bool may_take(const catalog::Broker& broker, std::string_view volume) const;

    const catalog::Image& image_;
    const std::optional<std::string> only_;
    std::map<base::BrokerId, std::map<std::string, std::size_t, std::less<>>> partitions_;
};

/// Brokers that may get partitions, by id: living ones that have a volume for them, without those
/// that drain if others are left.
[[nodiscard]] std::vector<base::BrokerId> candidates(const catalog::Image& image,
                                                     const VolumeUse& use);

/// Places `count` new partitions with `factor` replicas each, cut to the brokers there are (DESIGN
/// 8). Goes round, so that leaders get even shares of what is created, and each rack has a replica
/// before one has two (Apache `StripedReplicaPlacer`); each on its least used volume. Empty when no
/// broker may get any.
[[nodiscard]] std::vector<Placement> place(const catalog::Image& image, std::size_t count,
                                           std::size_t factor, VolumeUse use);

/// The first of `replicas` that lives, and has a volume for it, leads. Empty when there is none.
[[nodiscard]] std::optional<Placement> lead(const catalog::Image& image,
                                            std::vector<base::BrokerId> replicas, VolumeUse& use);

/// A partition that has never been written, under its first leader epoch.
[[nodiscard]] catalog::Partition new_partition(const Placement& placement);

}  // namespace kaas::cluster
