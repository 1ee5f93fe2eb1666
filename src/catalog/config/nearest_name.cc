#include "catalog/config/nearest_name.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::catalog {
namespace {

std::string normal(std::string_view name) {
    std::string out(name);
    for (char& c : out) {
        if (c == '_' || c == '-') c = '.';
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return out;
}

/// Optimal string alignment distance, by rows; only the last three are kept.
std::size_t edits(std::string_view from, std::string_view to) {
    std::vector<std::size_t> before_last(to.size() + 1);
    std::vector<std::size_t> last(to.size() + 1);
    std::vector<std::size_t> row(to.size() + 1);
    for (std::size_t j = 0; j <= to.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= from.size(); ++i) {
        std::swap(before_last, last);
        std::swap(last, row);
        row[0] = i;
        for (std::size_t j = 1; j <= to.size(); ++j) {
            std::size_t replace = last[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, replace});
            bool swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
            if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
        }
    }
    return row[to.size()];
}

/// The parts before the last one, with the dot behind them; empty when there are fewer than two.
std::string_view family_of(std::string_view name) {
    const std::size_t last = name.rfind('.');
    if (last == std::string_view::npos || name.find('.') == last) return {};
    return name.substr(0, last + 1);
}

}  // namespace

NearestName::NearestName(std::string_view wanted)
    : wanted_(normal(wanted)),
      least_edits_(wanted.size() / 4 + 2),
      least_sibling_edits_(std::string_view::npos) {}

void NearestName::offer(std::string_view name) {
    const auto family = family_of(wanted_);
    const bool sibling = !family.empty() && family_of(name) == family;
    const std::size_t longer = std::max(name.size(), wanted_.size());
    const std::size_t shorter = std::min(name.size(), wanted_.size());
    if (!sibling && longer - shorter >= least_edits_) return;  // cannot be nearer
    const std::size_t count = edits(wanted_, normal(name));
    if (count < least_edits_) {
        least_edits_ = count;
        best_ = name;
    }
    if (sibling && count < least_sibling_edits_) {
        least_sibling_edits_ = count;
        sibling_ = name;
    }
}

}  // namespace kaas::catalog
