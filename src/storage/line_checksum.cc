#include "storage/line_checksum.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace kaas::storage {
namespace {

/// The checksum's member, and with it the end of the line, behind `before`.
[[nodiscard]] std::string member_behind(std::string_view before) {
    return fmt::format(R"("{}":"{:08x}"}})", kChecksumKey, base::crc32c(base::as_bytes(before)));
}

}  // namespace

std::string with_checksum(std::string object) {
    KAAS_ASSERT(object.starts_with('{') && object.ends_with('}'));
    object.pop_back();
    if (object.size() > 1) object += ',';
    return object + member_behind(object);
}

bool checksum_holds(std::string_view line, const boost::json::object& object) {
    if (!object.contains(kChecksumKey)) return true;
    line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
    const auto size = member_behind({}).size();
    if (line.size() <= size) return false;
    const auto before = line.substr(0, line.size() - size);
    return line.substr(before.size()) == member_behind(before);
}

}  // namespace kaas::storage
