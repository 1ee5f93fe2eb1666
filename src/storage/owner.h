#pragma once

#include "base/ids.h"
#include "storage/error.h"

#include <boost/json/object.hpp>

namespace kaas::storage {

/// Who writes: stands in every picture, for people and for the taker's messages.
struct Owner {
    base::BrokerId broker;
    base::Incarnation incarnation;
};

/// `{"broker":1,"incarnation":".."}`.
[[nodiscard]] boost::json::object to_json(const Owner& owner);
/// Errors: kCorrupt.
[[nodiscard]] Result<Owner> owner_from_json(const boost::json::object& object);

}  // namespace kaas::storage
