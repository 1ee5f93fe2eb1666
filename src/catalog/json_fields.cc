#include "catalog/json_fields.h"

#include "base/uuid.h"
#include "catalog/error.h"
#include "catalog/model.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace kaas::catalog {

namespace json = boost::json;

const json::value* JsonFields::get(std::string_view key, bool optional) {
    known_.push_back(key);
    const auto* value = object_ == nullptr ? nullptr : object_->if_contains(key);
    if (value == nullptr && !optional) set_fault("has no '" + std::string(key) + "'");
    return value;
}

std::string JsonFields::as_text(const json::value& value, std::string_view key) {
    const auto* string = value.if_string();
    if (string == nullptr) {
        set_fault("has no text '" + std::string(key) + "'");
        return {};
    }
    return {string->data(), string->size()};
}

std::string JsonFields::text(std::string_view key) {
    const auto* value = get(key, false);
    return value == nullptr ? std::string() : as_text(*value, key);
}

std::optional<std::string> JsonFields::optional_text(std::string_view key) {
    const auto* value = get(key, true);
    if (value == nullptr) return std::nullopt;
    return as_text(*value, key);
}

bool JsonFields::flag(std::string_view key) {
    const auto* value = get(key, true);
    if (value == nullptr) return false;
    if (!value->is_bool()) {
        set_fault("has no true or false '" + std::string(key) + "'");
        return false;
    }
    return value->get_bool();
}

base::Uuid JsonFields::as_uuid(const json::value& value, std::string_view key) {
    auto parsed = base::Uuid::parse(as_text(value, key));
    if (!parsed) set_fault("has no good id '" + std::string(key) + "'");
    return parsed.value_or(base::Uuid{});
}

base::Uuid JsonFields::uuid(std::string_view key) {
    const auto* value = get(key, false);
    return value == nullptr ? base::Uuid{} : as_uuid(*value, key);
}

const json::value& JsonFields::value(std::string_view key) {
    static const json::value null;
    const auto* value = get(key, false);
    return value == nullptr ? null : *value;
}

const json::array& JsonFields::array(std::string_view key) {
    static const json::array none;
    const auto* value = get(key, true);
    if (value == nullptr) return none;
    const auto* list = value->if_array();
    if (list == nullptr) set_fault("has no list '" + std::string(key) + "'");
    return list == nullptr ? none : *list;
}

const json::object& JsonFields::object(std::string_view key) {
    static const json::object none;
    const auto* value = get(key, true);
    if (value == nullptr) return none;
    const auto* inner = value->if_object();
    if (inner == nullptr) set_fault("has no object '" + std::string(key) + "'");
    return inner == nullptr ? none : *inner;
}

Result<void> JsonFields::check_format(std::int32_t known, std::optional<std::int32_t> otherwise) {
    const auto format = integer<std::int32_t>("format", otherwise);
    if (format <= known) return fault();
    return fail(ErrorCode::kNewerFormat,
                "format " + std::to_string(format) + " was written by a later version of kaas");
}

void JsonFields::set_fault(std::string fault) {
    if (fault_.empty()) fault_ = std::move(fault);
}

Result<void> JsonFields::fault() const {
    if (fault_.empty()) return {};
    return fail(ErrorCode::kMalformed, std::string(what_) + " " + fault_);
}

UnknownKeys JsonFields::unknown() const {
    if (object_ == nullptr) return nullptr;
    std::shared_ptr<json::object> rest;
    for (const auto& [key, value] : *object_) {
        if (std::ranges::find(known_, std::string_view(key)) != known_.end()) continue;
        if (!rest) rest = std::make_shared<json::object>();
        rest->emplace(key, value);
    }
    return rest;
}

void put_unknown(json::object& into, const UnknownKeys& unknown) {
    if (!unknown) return;
    for (const auto& [key, value] : *unknown) into.emplace(key, value);
}

}  // namespace kaas::catalog
