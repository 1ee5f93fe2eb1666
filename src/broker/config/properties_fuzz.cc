// Whatever bytes stand in a configuration file, reading them ends, and what was read can be written
// and read again as the same.

#include "base/assert.h"
#include "broker/config/properties.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

/// Every character escaped that means something to the parser.
std::string escaped(std::string_view text) {
    std::string out;
    for (char c : text) {
        switch (c) {
            case '\n': out += "\\n"; break;
            case '\r': out += "\\r"; break;
            case '\t': out += "\\t"; break;
            case '\f': out += "\\f"; break;
            case ' ':
            case '=':
            case ':':
            case '#':
            case '!':
            case '\\':
                out.push_back('\\');
                out.push_back(c);
                break;
            default: out.push_back(c);
        }
    }
    return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    auto properties = kaas::broker::parse_properties({reinterpret_cast<const char*>(data), size});
    if (!properties) return 0;
    std::string again;
    for (const auto& [key, value] : *properties)
        again += escaped(key) + "=" + escaped(value) + "\n";
    auto second = kaas::broker::parse_properties(again);
    KAAS_ASSERT(second.has_value());
    KAAS_ASSERT(*second == *properties);
    return 0;
}
