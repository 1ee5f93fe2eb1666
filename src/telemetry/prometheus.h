#pragma once

#include "base/metrics.h"

#include <string>

namespace kaas::telemetry {

/// All series of `registry` in Prometheus' text format 0.0.4. Histograms are in seconds.
/// Thread: any.
[[nodiscard]] std::string prometheus_text(const base::metrics::Registry& registry);

inline constexpr auto kPrometheusContentType = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace kaas::telemetry
