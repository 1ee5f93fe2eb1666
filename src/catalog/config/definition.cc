#include "catalog/config/definition.h"

#include "base/assert.h"
#include "catalog/config/nearest_name.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>

namespace kaas::catalog {

std::optional<std::string> ConfigDefinition::default_text() const {
    // Affinity and container limits set to whole processors count; at least one is there.
    if (default_is_cores) return std::to_string(std::max(1U, std::thread::hardware_concurrency()));
    if (!default_value) return std::nullopt;
    return std::string(*default_value);
}

ConfigTable::ConfigTable(std::string_view kind, std::span<const ConfigDefinition> definitions)
    : kind_(kind), definitions_(definitions) {
    KAAS_ASSERT(std::ranges::is_sorted(definitions, std::less<>{}, &ConfigDefinition::name));
}

const ConfigDefinition* ConfigTable::find(std::string_view name) const {
    auto found =
        std::ranges::lower_bound(definitions_, name, std::less<>{}, &ConfigDefinition::name);
    return found != definitions_.end() && found->name == name ? &*found : nullptr;
}

std::size_t ConfigTable::index_of(const ConfigDefinition& definition) const {
    return static_cast<std::size_t>(&definition - definitions_.data());
}

std::string_view ConfigTable::nearest(std::string_view name) const {
    NearestName nearest(name);
    for (const auto& definition : definitions_) nearest.offer(definition.name);
    return nearest.best();
}

}  // namespace kaas::catalog
