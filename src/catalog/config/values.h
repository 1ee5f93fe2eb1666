#pragma once

#include "base/assert.h"
#include "catalog/config/definition.h"
#include "catalog/config/error.h"
#include "catalog/config/value.h"
#include "catalog/config_map.h"

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace kaas::catalog {

/// The value of every config of one table: what was given, else the default, else null.
/// Thread: any for reading.
class ConfigValues {
public:
    /// Every config at its default.
    explicit ConfigValues(const ConfigTable& table);

    /// Errors: kUnknownName, with the nearest known name; kInvalidValue. The first one found
    /// counts.
    [[nodiscard]] static ConfigResult<ConfigValues> parse(const ConfigTable& table,
                                                          const ConfigMap& given);

    [[nodiscard]] const ConfigTable& table() const { return *table_; }
    [[nodiscard]] const ConfigValue& operator[](std::string_view name) const;
    /// The value of a config that is never null, by name and exact type.
    template <class T>
    [[nodiscard]] const T& get(std::string_view name) const {
        const T* value = std::get_if<T>(&(*this)[name]);
        KAAS_ASSERT(value != nullptr);
        return *value;
    }

    /// Replaces a value by one of the same config's type.
    void set(std::string_view name, ConfigValue value);

    /// Copies the value at `index` into a typed field; for the generated settings.
    template <class T>
    void read(std::size_t index, T& field) const {
        assign(values_[index], field);
    }
    template <class T>
    void read(std::size_t index, std::optional<T>& field) const {
        field.reset();
        if (!std::holds_alternative<std::monostate>(values_[index]))
            assign(values_[index], field.emplace());
    }

private:
    template <class T>
    static void assign(const ConfigValue& value, T& field) {
        const T* held = std::get_if<T>(&value);
        KAAS_ASSERT(held != nullptr);
        field = *held;
    }
    template <class Period>
    static void assign(const ConfigValue& value,
                       std::chrono::duration<std::int64_t, Period>& field) {
        field = std::chrono::duration<std::int64_t, Period>(integer(value));
    }
    static std::int64_t integer(const ConfigValue& value);

    const ConfigTable* table_;
    std::vector<ConfigValue> values_;  ///< in the order of the table
};

/// "unknown broker config 'x'; did you mean 'y'?"
[[nodiscard]] std::string unknown_name_text(const ConfigTable& table, std::string_view name);

}  // namespace kaas::catalog
