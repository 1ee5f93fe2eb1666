#pragma once

#include <boost/json/object.hpp>

#include <string>
#include <string_view>

namespace kaas::storage {

/// The last member of a JSON line that we write: CRC32C of all text before it, eight hexadecimal
/// digits. A line without it counts as it is, so that a person mends a line in a text editor by
/// deleting the member.
///
///     {"roll":10,"crc":"e3069283"}
inline constexpr std::string_view kChecksumKey = "crc";

/// The text of a JSON object with its checksum. Requires: it has none yet.
[[nodiscard]] std::string with_checksum(std::string object);

/// False when the line, which says `object`, has a checksum and that is not of its text.
[[nodiscard]] bool checksum_holds(std::string_view line, const boost::json::object& object);

}  // namespace kaas::storage
