#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kaas::catalog {

/// Finds, among the names it is offered, the one that a misspelt name most likely means: the fewest
/// edits (insert, remove, replace, swap of neighbours), at most one for every four characters.
/// Without one so near, a name of the same parts but for the last: whoever writes kaas.health.port
/// may mean kaas.health.listener. Case, `_` and `-` count as what they are often mixed up with.
class NearestName {
public:
    explicit NearestName(std::string_view wanted);

    void offer(std::string_view name);
    /// Empty when nothing was near enough. A view of what was offered.
    [[nodiscard]] std::string_view best() const { return best_.empty() ? sibling_ : best_; }

private:
    std::string wanted_;
    std::size_t least_edits_;
    std::string_view best_;
    std::size_t least_sibling_edits_;
    std::string_view sibling_;
};

}  // namespace kaas::catalog
