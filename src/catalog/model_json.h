#pragma once

#include "base/ids.h"
#include "catalog/error.h"
#include "catalog/json_fields.h"
#include "catalog/model.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <string_view>
#include <vector>

/// JSON of the model's values, as they stand in changes and in pictures.
namespace kaas::catalog {

[[nodiscard]] boost::json::array to_json(const std::vector<base::BrokerId>& brokers);
/// A fault stays in `fields`.
[[nodiscard]] std::vector<base::BrokerId> parse_brokers(JsonFields& fields, std::string_view key);

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
