#include "catalog/config/values.h"

#include "base/assert.h"
#include "base/result.h"
#include "catalog/config/definition.h"
#include "catalog/config/error.h"
#include "catalog/config/value.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace kaas::catalog {

ConfigValues::ConfigValues(const ConfigTable& table) : table_(&table) {
    values_.reserve(table.all().size());
    for (const auto& definition : table.all()) {
        auto text = definition.default_text();
        if (!text) {
            values_.emplace_back();
            continue;
        }
        auto value = parse_value(definition, *text);
        KAAS_ASSERT(value.has_value());  // a default breaks its own rule
        values_.push_back(*std::move(value));
    }
}

ConfigResult<ConfigValues> ConfigValues::parse(const ConfigTable& table, const ConfigMap& given) {
    ConfigValues values(table);
    for (const auto& [name, text] : given) {
        const ConfigDefinition* definition = table.find(name);
        if (definition == nullptr) {
            return base::fail(ConfigFault::kUnknownName, unknown_name_text(table, name));
        }
        KAAS_TRY_ASSIGN(value, parse_value(*definition, text));
        values.values_[table.index_of(*definition)] = std::move(value);
    }
    return values;
}

const ConfigValue& ConfigValues::operator[](std::string_view name) const {
    const ConfigDefinition* definition = table_->find(name);
    KAAS_ASSERT(definition != nullptr);
    return values_[table_->index_of(*definition)];
}

void ConfigValues::set(std::string_view name, ConfigValue value) {
    const ConfigDefinition* definition = table_->find(name);
    KAAS_ASSERT(definition != nullptr);
    values_[table_->index_of(*definition)] = std::move(value);
}

std::int64_t ConfigValues::integer(const ConfigValue& value) {
    return std::visit(
        [](const auto& held) -> std::int64_t {
            using Held = std::decay_t<decltype(held)>;
            constexpr bool kInteger = std::is_same_v<Held, std::int16_t> ||
                                      std::is_same_v<Held, std::int32_t> ||
                                      std::is_same_v<Held, std::int64_t>;
            if constexpr (kInteger) {
                return held;
            } else {
                KAAS_ASSERT(kInteger);
                return 0;
            }
        },
        value);
}

std::string unknown_name_text(const ConfigTable& table, std::string_view name) {
    std::string text = fmt::format("unknown {} config '{}'", table.kind(), name);
    if (auto near = table.nearest(name); !near.empty())
        text += fmt::format("; did you mean '{}'?", near);
    return text;
}

}  // namespace kaas::catalog
