#include "broker/refusals.h"

#include "base/metrics.h"

#include <array>
#include <cstddef>

namespace kaas::broker {

Refusals::Refusals(base::metrics::Registry& registry) {
    constexpr std::array<const char*, 5> kReasons = {"header", "api_key", "version", "body",
                                                     "unauthenticated"};
    for (std::size_t i = 0; i < kReasons.size(); ++i) {
        counters_[i] = &registry.counter("kaas_requests_refused_total",
                                         "Requests that did not reach a handler, by reason.",
                                         {{"reason", kReasons[i]}});
    }
}

}  // namespace kaas::broker
