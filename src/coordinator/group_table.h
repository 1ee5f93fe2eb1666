#pragma once

#include "coordinator/group.h"
#include "coordinator/group_metrics.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

namespace kaas::coordinator {

/// The groups of one slot, by id. Passive; owner's thread.
class GroupTable {
public:
    explicit GroupTable(GroupMetrics& metrics) : metrics_(metrics) {}

    [[nodiscard]] Group* find(std::string_view id) const {
        const auto place = groups_.find(id);
        return place == groups_.end() ? nullptr : place->second.get();
    }
    [[nodiscard]] Group& find_or_create(std::string_view id) {
        if (auto* group = find(id); group != nullptr) return *group;
        std::string key(id);
        auto group = std::make_unique<Group>(key, metrics_);
        return *groups_.emplace(std::move(key), std::move(group)).first->second;
    }
    /// The group's timers are cancelled and nobody waits in it.
    void erase(std::string_view id) { groups_.erase(groups_.find(id)); }

    [[nodiscard]] auto begin() const { return groups_.begin(); }
    [[nodiscard]] auto end() const { return groups_.end(); }

private:
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const {
            return std::hash<std::string_view>{}(text);
        }
    };

    GroupMetrics& metrics_;
    std::unordered_map<std::string, std::unique_ptr<Group>, Hash, std::equal_to<>> groups_;
};

}  // namespace kaas::coordinator
