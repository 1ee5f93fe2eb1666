#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kaas::base {

/// Base64 with padding (RFC 4648 section 4), for bytes in text files.
[[nodiscard]] std::string to_base64(std::string_view bytes);
/// Empty when `text` is nothing that `to_base64` writes.
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

}  // namespace kaas::base
