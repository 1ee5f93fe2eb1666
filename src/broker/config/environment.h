#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kaas::broker {

/// The config that an environment variable sets, by the rules of Apache's own container image:
/// `KAFKA_LOG_SEGMENT_BYTES` is `log.segment.bytes`; `_` stands for a dot, `__` for an underscore,
/// `___` for a dash. Empty for variables that do not begin with `KAFKA_`, and for those that steer
/// the image's JVM.
[[nodiscard]] std::optional<std::string> config_of_variable(std::string_view variable);

}  // namespace kaas::broker
