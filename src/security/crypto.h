#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kaas::security {

/// Of SHA-512 and what is built on it.
inline constexpr std::size_t kDigestBytes = 64;

[[nodiscard]] std::string sha512(std::string_view text);
[[nodiscard]] std::string hmac_sha512(std::string_view key, std::string_view text);
/// PBKDF2 with HMAC-SHA-512, one digest long: `Hi` of RFC 5802. 4096 iterations take milliseconds.
[[nodiscard]] std::string stretch(std::string_view password, std::string_view salt, int iterations);

/// Takes as long for any two texts of one length.
[[nodiscard]] bool equal_in_constant_time(std::string_view a, std::string_view b);

/// From the system's source for secrets. Ends the process when there is none: nothing that needs
/// one may go on.
[[nodiscard]] std::string random_bytes(std::size_t count);

}  // namespace kaas::security
