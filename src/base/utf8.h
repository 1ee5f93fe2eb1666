#pragma once

#include <string>
#include <string_view>

namespace kaas::base {

/// Whether `text` is UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above
/// U+10FFFF. JSON and the strings of the Kafka protocol take nothing else.
[[nodiscard]] bool is_utf8(std::string_view text);

/// `text` as UTF-8: what is none becomes U+FFFD, as Java reads a string of the protocol.
[[nodiscard]] std::string to_utf8(std::string_view text);

}  // namespace kaas::base
