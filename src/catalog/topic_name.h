#pragma once

#include "base/ids.h"

#include <string>
#include <string_view>

/// Names of topics, by Apache's rules (`org.apache.kafka.common.internals.Topic`), and of their
/// directories.
namespace kaas::catalog {

inline constexpr std::size_t kMaxTopicName = 249;

/// Why `name` cannot be a topic's, in Apache's words; empty when it can.
[[nodiscard]] std::string topic_name_fault(std::string_view name);

/// True when '.' or '_' stands in it: such names may clash in metric names.
[[nodiscard]] bool has_collision_characters(std::string_view name);
/// With '_' for every '.'.
[[nodiscard]] std::string unified_topic_name(std::string_view name);

/// Topics of the coordinators: nobody but the broker makes them, consumers may skip them.
[[nodiscard]] bool is_internal_topic(std::string_view name);

/// `<topic>.<topic id>`, with the name cut so that file systems take it (255 bytes).
[[nodiscard]] std::string topic_directory(std::string_view name, const base::TopicId& id);

}  // namespace kaas::catalog
