#pragma once

#include "wire/error_code.h"
#include "wire/types.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace kaas::wire::testing {

/// Writes messages as Apache's generated `*JsonConverter` classes do (records by their size alone),
/// so that two readings of the same bytes can be compared field by field.
class Json {
public:
    void begin() { text_ += '{'; }
    void end() { text_ += '}'; }

    template <class T>
    void member(std::string_view name, const T& value, std::int16_t version) {
        key(name);
        put(value, version);
    }
    void member(std::string_view name, const Records& records, std::int16_t version);

    [[nodiscard]] const std::string& text() const { return text_; }

private:
    void key(std::string_view name);

    template <class T>
        requires std::is_integral_v<T>
    void put(T value, std::int16_t) {
        text_ += std::to_string(value);
    }
    void put(bool value, std::int16_t) { text_ += value ? "true" : "false"; }
    void put(double value, std::int16_t);
    void put(ErrorCode value, std::int16_t) { text_ += std::to_string(static_cast<int>(value)); }
    void put(const Uuid& value, std::int16_t);
    void put(const String& value, std::int16_t);
    void put(const Bytes& value, std::int16_t);
    template <class T>
    void put(const std::optional<T>& value, std::int16_t version) {
        if (value) return put(*value, version);
        text_ += "null";
    }
    template <class T>
    void put(const std::vector<T>& values, std::int16_t version) {
        text_ += '[';
        for (const auto& value : values) {
            if (&value != values.data()) text_ += ',';
            put(value, version);
        }
        text_ += ']';
    }
    template <class T>
        requires requires(Json& json, const T& value) { write_json(json, value, std::int16_t{}); }
    void put(const T& value, std::int16_t version) {
        write_json(*this, value, version);
    }

    std::string text_;
};

}  // namespace kaas::wire::testing
