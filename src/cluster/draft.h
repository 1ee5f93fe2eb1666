#pragma once

#include "base/assert.h"
#include "catalog/change.h"

#include <utility>
#include <vector>

namespace kaas::cluster {

/// Changes on their way to the control log, and the image that they lead to: each request of a step
/// sees what the ones before it did.
class Draft {
public:
    explicit Draft(const catalog::Image& base) : editor_(base) {}

    /// The controller makes only changes that fit.
    void add(catalog::Change change) {
        const auto applied = editor_.apply(change);
        KAAS_ASSERT(applied.has_value());
        changes_.push_back(std::move(change));
    }

    [[nodiscard]] const catalog::Image& image() const { return editor_.image(); }
    [[nodiscard]] const std::vector<catalog::Change>& changes() const { return changes_; }
    [[nodiscard]] catalog::ImagePtr finish() && { return std::move(editor_).finish(); }

private:
    catalog::ImageEditor editor_;
    std::vector<catalog::Change> changes_;
};

}  // namespace kaas::cluster
