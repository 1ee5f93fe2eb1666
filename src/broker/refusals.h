#pragma once

#include "base/metrics.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace kaas::broker {

/// Why a request never reached its handler; the label of `kaas_requests_refused_total`.
enum class Refusal : std::uint8_t {
    kHeader,           ///< the request's header cannot be read
    kApiKey,           ///< no API that this broker serves
    kVersion,          ///< not a version of its API that this broker serves
    kBody,             ///< the request cannot be read in its version
    kUnauthenticated,  ///< of nobody that we know, on the internal listener
};

/// Counts refusals by their reason. Thread: any.
class Refusals {
public:
    explicit Refusals(base::metrics::Registry& registry);

    void count(Refusal why) { counters_[static_cast<std::size_t>(why)]->add(); }

private:
    std::array<base::metrics::Counter*, 5> counters_{};
};

}  // namespace kaas::broker
