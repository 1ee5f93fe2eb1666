// Any bytes as a message between brokers and the controller: taken or refused, and what was taken
// is said again in the same way.

#include "base/assert.h"
#include "cluster/link_messages.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

namespace cluster = kaas::cluster;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (const auto heard = cluster::parse_heartbeat(text)) {
        const auto again = cluster::to_text(*heard);
        const auto twice = cluster::parse_heartbeat(again);
        KAAS_ASSERT(twice && cluster::to_text(*twice) == again);
    }
    if (const auto heard = cluster::parse_registration(text)) {
        const auto again = cluster::to_text(*heard);
        const auto twice = cluster::parse_registration(again);
        KAAS_ASSERT(twice && cluster::to_text(*twice) == again);
    }
    if (const auto heard = cluster::parse_news(text)) {
        KAAS_ASSERT(cluster::parse_news(cluster::to_text(*heard)));
        if (const auto* picture = std::get_if<std::shared_ptr<const std::string>>(&*heard)) {
            [[maybe_unused]] const auto image = cluster::parse_picture_text(**picture);
        }
    }
    return 0;
}
