#pragma once

#include "base/uuid.h"
#include "catalog/error.h"
#include "catalog/model.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::catalog {

/// Reads the keys of one JSON object, remembers the first thing that is wrong with them, and keeps
/// what nobody asked for. Readers go on with harmless values after a fault and look at `fault()`
/// once, at the end. Borrows the object and `what`, which names it in messages.
class JsonFields {
public:
    JsonFields(const boost::json::value& value, std::string_view what)
        : object_(value.if_object()), what_(what) {
        if (object_ == nullptr) set_fault("is not an object");
    }
    JsonFields(const boost::json::object& object, std::string_view what)
        : object_(&object), what_(what) {}

    [[nodiscard]] bool has(std::string_view key) const {
        return object_ != nullptr && object_->contains(key);
    }

    template <std::integral T>
    [[nodiscard]] T integer(std::string_view key, std::optional<T> otherwise = {}) {
        const auto* value = get(key, otherwise.has_value());
        if (value == nullptr) return otherwise.value_or(T{});
        return as_integer<T>(*value, key);
    }
    template <std::integral T>
    [[nodiscard]] T as_integer(const boost::json::value& value, std::string_view key) {
        boost::system::error_code wrong;
        auto number = value.to_number<std::int64_t>(wrong);
        if (!value.is_number() || wrong || !std::in_range<T>(number)) {
            set_fault("has no good integer '" + std::string(key) + "'");
            return T{};
        }
        return static_cast<T>(number);
    }
    [[nodiscard]] std::string text(std::string_view key);
    [[nodiscard]] std::optional<std::string> optional_text(std::string_view key);
    [[nodiscard]] std::string as_text(const boost::json::value& value, std::string_view key);
    [[nodiscard]] bool flag(std::string_view key);  ///< false when absent
    [[nodiscard]] base::Uuid uuid(std::string_view key);
    [[nodiscard]] base::Uuid as_uuid(const boost::json::value& value, std::string_view key);
    /// JSON null when absent: whoever reads it finds the fault.
    [[nodiscard]] const boost::json::value& value(std::string_view key);
    /// Empty when absent.
    [[nodiscard]] const boost::json::array& array(std::string_view key);
    [[nodiscard]] const boost::json::object& object(std::string_view key);
    /// Marks a key as known without reading it.
    void skip(std::string_view key) { known_.push_back(key); }

    /// Looks at `format`, which grows when older versions could no longer understand what is
    /// written; `otherwise` counts when it is absent. Errors: kNewerFormat above `known`,
    /// kMalformed.
    [[nodiscard]] Result<void> check_format(std::int32_t known,
                                            std::optional<std::int32_t> otherwise = {});

    void set_fault(std::string fault);
    [[nodiscard]] Result<void> fault() const;
    /// The keys that were not asked for; null when there are none.
    [[nodiscard]] UnknownKeys unknown() const;

private:
    [[nodiscard]] const boost::json::value* get(std::string_view key, bool optional);

    const boost::json::object* object_;
    std::string_view what_;
    std::vector<std::string_view> known_;
    std::string fault_;
};

/// Adds kept keys to an object that is about to be written.
void put_unknown(boost::json::object& into, const UnknownKeys& unknown);

}  // namespace kaas::catalog
