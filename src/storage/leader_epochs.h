#pragma once

#include "base/ids.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace kaas::storage {

/// Which leader epoch began at which offset (KIP-101, KIP-320; rules of Apache
/// `LeaderEpochFileCache`). A value; the partition's manifest keeps it.
class LeaderEpochs {
public:
    struct Start {
        base::LeaderEpoch epoch;
        base::Offset offset;
        friend bool operator==(const Start&, const Start&) = default;
    };
    struct End {
        base::LeaderEpoch epoch{-1};
        base::Offset offset{-1};
        friend bool operator==(const End&, const End&) = default;
    };

    /// `epoch` begins at `offset`; an epoch that wrote nothing before it is forgotten.
    void assign(base::LeaderEpoch epoch, base::Offset offset);
    /// The log begins at `start` now: epochs that ended before it are forgotten.
    void begin_at(base::Offset start);
    /// The largest epoch up to `asked`, and where it ended: at `log_end` for the newest. Epoch -1,
    /// offset -1 when nothing is known of it.
    [[nodiscard]] End end_of(base::LeaderEpoch asked, base::Offset log_end) const;
    /// The epoch that wrote `offset`.
    [[nodiscard]] std::optional<base::LeaderEpoch> at(base::Offset offset) const;
    [[nodiscard]] std::optional<base::LeaderEpoch> latest() const;

    [[nodiscard]] const std::vector<Start>& starts() const { return starts_; }

private:
    std::vector<Start> starts_;  ///< both fields ascend
};

}  // namespace kaas::storage
