#pragma once

#include "base/metrics.h"

namespace kaas::storage {

/// Where a part of storage counts: in the registry that its options name, or in one of its own when
/// they name none.
class MetricsHome {
public:
    explicit MetricsHome(base::metrics::Registry* given)
        : registry_(given != nullptr ? *given : own_) {}
    MetricsHome(const MetricsHome&) = delete;
    MetricsHome& operator=(const MetricsHome&) = delete;

    [[nodiscard]] base::metrics::Registry& operator*() const { return registry_; }
    [[nodiscard]] base::metrics::Registry* operator->() const { return &registry_; }

private:
    base::metrics::Registry own_;
    base::metrics::Registry& registry_;
};

}  // namespace kaas::storage
