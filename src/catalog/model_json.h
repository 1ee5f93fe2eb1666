#pragma once

#include "catalog/error.h"
#include "catalog/model.h"

#include <boost/json/object.hpp>

/// JSON of the model's values, as they stand in changes and in pictures.
namespace kaas::catalog {

[[nodiscard]] boost::json::object to_json(const Partition& partition);
[[nodiscard]] Result<Partition> parse_partition(const boost::json::value& value);

[[nodiscard]] boost::json::object to_json(const Topic& topic);
[[nodiscard]] Result<Topic> parse_topic(const boost::json::value& value);

[[nodiscard]] boost::json::object to_json(const Broker& broker);
[[nodiscard]] Result<Broker> parse_broker(const boost::json::value& value);

[[nodiscard]] boost::json::object to_json(const Deletion& deletion);
[[nodiscard]] Result<Deletion> parse_deletion(const boost::json::value& value);

[[nodiscard]] boost::json::object to_json(const ConfigMap& configs);
[[nodiscard]] Result<ConfigMap> parse_configs(const boost::json::object& object);

}  // namespace kaas::catalog
