#include "catalog/topic_name.h"

#include "base/ids.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace kaas::catalog {
namespace {

constexpr std::size_t kMaxFileName = 255;  // NAME_MAX of every file system that we know

bool legal(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

}  // namespace

std::string topic_name_fault(std::string_view name) {
    const std::string shown(name);
    if (name.empty()) return "Topic name is invalid: the empty string is not allowed";
    if (name == "." || name == "..") return "Topic name is invalid: '" + shown + "' is not allowed";
    if (name.size() > kMaxTopicName) {
        return "Topic name is invalid: the length of '" + shown +
               "' is longer than the max allowed length 249";
    }
    if (!std::ranges::all_of(name, legal)) {
        return "Topic name is invalid: '" + shown +
               "' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'";
    }
    return {};
}

bool has_collision_characters(std::string_view name) {
    return name.find_first_of("._") != std::string_view::npos;
}

std::string unified_topic_name(std::string_view name) {
    std::string unified(name);
    std::ranges::replace(unified, '.', '_');
    return unified;
}

bool is_internal_topic(std::string_view name) {
    constexpr std::array<std::string_view, 3> kInternal = {
        "__consumer_offsets", "__transaction_state", "__share_group_state"};
    return std::ranges::find(kInternal, name) != kInternal.end();
}

std::string topic_directory(std::string_view name, const base::TopicId& id) {
    const std::string suffix = "." + id.uuid.to_string();
    return std::string(name.substr(0, kMaxFileName - suffix.size())) + suffix;
}

}  // namespace kaas::catalog
