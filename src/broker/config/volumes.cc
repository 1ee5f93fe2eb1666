#include "broker/config/volumes.h"

#include "base/result.h"
#include "broker/config/broker_config.h"
#include "catalog/config/error.h"
#include "catalog/config/value.h"
#include "catalog/config/values.h"

#include <fmt/format.h>

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using catalog::ConfigFault;
using catalog::ConfigResult;

constexpr std::string_view kPrefix = "kaas.volume.";
constexpr std::string_view kFields[] = {".path", ".labels", ".default.eligible"};

struct VolumeField {
    std::string_view volume;
    std::string_view field;  ///< one of kFields
};

std::optional<VolumeField> split_name(std::string_view name) {
    if (!name.starts_with(kPrefix)) return std::nullopt;
    name.remove_prefix(kPrefix.size());
    for (auto field : kFields) {
        if (!name.ends_with(field)) continue;
        std::string_view volume = name.substr(0, name.size() - field.size());
        if (volume.empty() || volume.contains('.')) return std::nullopt;
        return VolumeField{.volume = volume, .field = field};
    }
    return std::nullopt;
}

ConfigResult<std::map<std::string, std::string>> parse_labels(std::string_view name,
                                                              std::string_view text) {
    std::map<std::string, std::string> labels;
    for (const auto& entry : catalog::split_list(text)) {
        std::size_t equals = entry.find('=');
        if (equals == std::string::npos || equals == 0) {
            return base::fail(ConfigFault::kInvalidValue,
                              fmt::format("{}: '{}' is not of the form label=value", name, entry));
        }
        labels.insert_or_assign(entry.substr(0, equals), entry.substr(equals + 1));
    }
    return labels;
}

/// As clients see it, and wherever the process may go.
std::string absolute(std::string_view path) {
    if (path.empty()) return {};
    std::string whole(path);
    std::array<char, PATH_MAX> here{};
    if (!path.starts_with('/') && ::getcwd(here.data(), here.size()) != nullptr) {
        whole = fmt::format("{}/{}", here.data(), path);
    }
    std::string text;
    for (const auto part : std::views::split(whole, '/')) {
        const std::string_view name(part.begin(), part.end());
        if (!name.empty() && name != ".") text += fmt::format("/{}", name);
    }
    return text.empty() ? "/" : text;
}

ConfigResult<void> set_field(LogDir& dir, std::string_view name, std::string_view field,
                             std::string_view text) {
    text = catalog::trim(text);
    if (field == ".path") {
        dir.path = absolute(text);
        return {};
    }
    if (field == ".labels") {
        KAAS_TRY_ASSIGN(labels, parse_labels(name, text));
        dir.labels = std::move(labels);
        return {};
    }
    if (text != "true" && text != "false") {
        return base::fail(ConfigFault::kInvalidValue,
                          fmt::format("{} cannot be '{}': it must be true or false", name, text));
    }
    dir.default_eligible = text == "true";
    return {};
}

std::string last_part(std::string_view path) {
    while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
    return std::string(path.substr(path.rfind('/') + 1));
}

/// /mnt/1/kafka,/mnt/2/kafka,/mnt/3/kafka: the last parts alone may be one name.
std::string derived_name(const std::string& path, const std::vector<LogDir>& before) {
    if (before.empty()) return "default";
    std::string name = last_part(path);
    const auto is_taken = [&](const LogDir& dir) { return dir.name == name; };
    if (std::ranges::none_of(before, is_taken)) return name;
    name = absolute(path).substr(1);
    std::ranges::replace(name, '/', '-');
    return name;
}

ConfigResult<void> check_distinct(const std::vector<LogDir>& dirs) {
    for (std::size_t i = 0; i < dirs.size(); ++i) {
        for (std::size_t j = i + 1; j < dirs.size(); ++j) {
            if (dirs[i].path == dirs[j].path) {
                return base::fail(ConfigFault::kConflict,
                                  fmt::format("directory {} is configured twice", dirs[i].path));
            }
            if (dirs[i].name == dirs[j].name) {
                return base::fail(
                    ConfigFault::kConflict,
                    fmt::format(
                        "directories {} and {} would both be called {}; name one of them with "
                        "kaas.volume.<name>.path instead of log.dirs",
                        dirs[i].path, dirs[j].path, dirs[i].name));
            }
        }
    }
    return {};
}

}  // namespace

bool is_volume_config(std::string_view name) { return split_name(name).has_value(); }

std::vector<std::string> volume_configs(std::string_view volume) {
    std::vector<std::string> names;
    for (auto field : kFields) names.push_back(fmt::format("{}{}{}", kPrefix, volume, field));
    return names;
}

ConfigResult<std::vector<LogDir>> parse_log_dirs(const std::vector<std::string>& log_dirs,
                                                 const catalog::ConfigMap& families) {
    std::vector<LogDir> dirs;
    dirs.reserve(log_dirs.size());
    for (const auto& path : log_dirs) {
        dirs.push_back({.name = derived_name(path, dirs), .path = absolute(path)});
    }
    std::map<std::string, LogDir, std::less<>> volumes;
    for (const auto& [name, text] : families) {
        auto parts = split_name(name);
        if (!parts) continue;
        LogDir& dir = volumes[std::string(parts->volume)];
        dir.name = parts->volume;
        dir.name_chosen = true;
        KAAS_TRY(set_field(dir, name, parts->field, text));
    }
    for (auto& [name, dir] : volumes) {
        if (dir.path.empty()) {
            return base::fail(
                ConfigFault::kConflict,
                fmt::format("volume {} has no directory; set kaas.volume.{}.path", name, name));
        }
        dirs.push_back(std::move(dir));
    }
    KAAS_TRY(check_distinct(dirs));
    return dirs;
}

ConfigResult<void> cordon(const std::vector<std::string>& cordoned, std::vector<LogDir>& dirs) {
    for (const auto& path : cordoned) {
        bool known = path == "*";
        for (auto& dir : dirs) {
            if (path != "*" && dir.path != absolute(path)) continue;
            dir.cordoned = true;
            known = true;
        }
        if (!known) {
            return base::fail(ConfigFault::kConflict,
                              fmt::format("cordoned.log.dirs: {} is none of log.dirs", path));
        }
    }
    return {};
}

}  // namespace kaas::broker
