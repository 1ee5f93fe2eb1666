#pragma once

#include "base/ids.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "catalog/model.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

/// Who leads next: pure functions of an image, so that every controller decides alike.
///
/// A partition is led where its data is, on the volume of its newest epoch: on another one it would
/// open empty. Nobody loses what he leads here; `moves.h` says what shall move.
namespace kaas::cluster {

/// Whether `id` may be given the leadership of partitions on `volume`: it lives, stays, and has a
/// session there.
[[nodiscard]] bool can_take(const catalog::Image& image, base::BrokerId id,
                            std::string_view volume);

/// `replicas` of the same length with `broker` at `place` (preferred leader first). If it is new
/// there, another goes: one that is not registered any more, else one of the same rack, so that
/// racks stay as spread as they were, else the last.
enum class ReplicaPlace { kFirst, kLast };
[[nodiscard]] std::vector<base::BrokerId> with_replica(const catalog::Image& image,
                                                       std::vector<base::BrokerId> replicas,
                                                       base::BrokerId broker, ReplicaPlace place);

/// Gives partitions to leaders, and counts what each has, and was given here.
///
/// Of a partition's replicas the preferred one leads if it can, else the one that leads the fewest
/// partitions of that topic, then of all: the next in the list would be the same broker for
/// everything that a dead one has led. If no replica can, the choice is among all brokers that can,
/// and the chosen one takes a place in the list. Slots count apart from records.
/// Thread: one at a time. Borrows the image.
class LeaderChoice {
public:
    explicit LeaderChoice(const catalog::Image& image);

    /// The next epoch of a partition that nobody leads any more. Empty while nobody can take it.
    [[nodiscard]] std::optional<catalog::Assignment> next(const base::TopicPartition& id);
    /// The next epoch of one whose leader gives it up: as `next` when it was asked back, or the
    /// leader drains; else the same leader has it again, so that nothing moves for a failed disk
    /// operation. `id` is as it was before the release.
    [[nodiscard]] std::optional<catalog::Assignment> after_release(const base::TopicPartition& id);

private:
    using Counts = std::map<base::BrokerId, std::size_t>;
    struct Load {
        std::size_t of_topic = 0;
        std::size_t in_all = 0;
        friend auto operator<=>(const Load&, const Load&) = default;
    };

    [[nodiscard]] Counts& counts_of(const catalog::Topic& topic);
    [[nodiscard]] Load load(const catalog::Topic& topic, base::BrokerId id);
    [[nodiscard]] base::BrokerId choose(const catalog::Topic& topic,
                                        const std::vector<base::BrokerId>& replicas,
                                        std::string_view volume);
    [[nodiscard]] base::BrokerId choose_of_all(const catalog::Topic& topic,
                                               std::string_view volume);
    [[nodiscard]] catalog::Assignment assign(const base::TopicPartition& id,
                                             const catalog::Topic& topic,
                                             const catalog::Partition& partition,
                                             std::vector<base::BrokerId> replicas,
                                             base::BrokerId leader);

    const catalog::Image& image_;
    Counts records_;
    Counts slots_;
    std::unordered_map<base::TopicId, Counts> of_topic_;
};

/// The next epoch of every partition that nobody leads and somebody can take.
[[nodiscard]] std::vector<catalog::Assignment> place_homeless(const catalog::Image& image);

}  // namespace kaas::cluster
