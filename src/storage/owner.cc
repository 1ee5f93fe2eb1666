#include "storage/owner.h"

#include "base/uuid.h"

#include <boost/json/value.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace kaas::storage {

boost::json::object to_json(const Owner& owner) {
    return {{"broker", owner.broker.value()}, {"incarnation", owner.incarnation.uuid.to_string()}};
}

Result<Owner> owner_from_json(const boost::json::object& object) {
    const auto* broker = object.if_contains("broker");
    const auto* incarnation = object.if_contains("incarnation");
    if (broker == nullptr || !broker->is_int64() || broker->get_int64() < 0 ||
        broker->get_int64() > std::numeric_limits<std::int32_t>::max()) {
        return fail(ErrorCode::kCorrupt, "owner: bad or missing \"broker\"");
    }
    const auto uuid = incarnation != nullptr && incarnation->is_string()
                          ? base::Uuid::parse(std::string_view(incarnation->get_string()))
                          : std::nullopt;
    if (!uuid) return fail(ErrorCode::kCorrupt, "owner: bad or missing \"incarnation\"");
    return Owner{base::BrokerId{static_cast<std::int32_t>(broker->get_int64())}, {*uuid}};
}

}  // namespace kaas::storage
