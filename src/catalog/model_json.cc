#include "catalog/model_json.h"

#include "base/ids.h"
#include "base/result.h"
#include "catalog/error.h"
#include "catalog/json_fields.h"
#include "catalog/model.h"

#include <boost/json/array.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace kaas::catalog {

namespace json = boost::json;

namespace {

json::array to_json(const std::vector<EpochRun>& runs) {
    json::array list;
    for (const auto& run : runs) {
        list.push_back({{"from", run.first.value()}, {"volume", run.volume}});
    }
    return list;
}

std::vector<EpochRun> parse_runs(JsonFields& fields) {
    std::vector<EpochRun> runs;
    for (const auto& entry : fields.array("volumes")) {
        JsonFields run(entry, "volume of an epoch");
        runs.push_back({base::LeaderEpoch(run.integer<std::int32_t>("from")), run.text("volume")});
        if (auto good = run.fault(); !good)
            fields.set_fault("has a bad list: " + good.error().context);
    }
    if (!std::ranges::is_sorted(runs, {}, &EpochRun::first))
        fields.set_fault("has unsorted 'volumes'");
    return runs;
}

json::object to_json(const Endpoint& endpoint) {
    return {{"listener", endpoint.listener},
            {"protocol", endpoint.security_protocol},
            {"host", endpoint.host},
            {"port", endpoint.port}};
}

Result<Endpoint> parse_endpoint(const json::value& value) {
    JsonFields fields(value, "endpoint");
    Endpoint endpoint{.listener = fields.text("listener"),
                      .security_protocol = fields.text("protocol"),
                      .host = fields.text("host"),
                      .port = fields.integer<std::uint16_t>("port")};
    KAAS_TRY(fields.fault());
    return endpoint;
}

json::object to_json(const BrokerVolume& volume) {
    json::object object{{"path", volume.path}};
    if (!volume.labels.empty()) {
        json::object labels;
        for (const auto& [label, value] : volume.labels) labels.emplace(label, value);
        object.emplace("labels", std::move(labels));
    }
    if (!volume.default_eligible) object.emplace("on_demand", true);
    if (volume.cordoned) object.emplace("cordoned", true);
    if (!volume.takes_partitions) object.emplace("cluster_only", true);
    return object;
}

Result<BrokerVolume> parse_broker_volume(const json::value& value) {
    JsonFields fields(value, "volume");
    BrokerVolume volume{.path = fields.text("path")};
    for (const auto& [label, text] : fields.object("labels")) {
        volume.labels.emplace(label, fields.as_text(text, "labels"));
    }
    volume.default_eligible = !fields.flag("on_demand");
    volume.cordoned = fields.flag("cordoned");
    volume.takes_partitions = !fields.flag("cluster_only");
    KAAS_TRY(fields.fault());
    return volume;
}

}  // namespace

json::array to_json(const std::vector<base::BrokerId>& brokers) {
    json::array list;
    for (auto id : brokers) list.emplace_back(id.value());
    return list;
}

std::vector<base::BrokerId> parse_brokers(JsonFields& fields, std::string_view key) {
    std::vector<base::BrokerId> brokers;
    for (const auto& id : fields.array(key)) {
        brokers.emplace_back(fields.as_integer<std::int32_t>(id, key));
    }
    return brokers;
}

json::object to_json(const Partition& partition) {
    json::object object{{"replicas", to_json(partition.replicas)},
                        {"leader", partition.leader.broker.value()},
                        {"incarnation", partition.leader.incarnation.uuid.to_string()},
                        {"epoch", partition.leader_epoch.value()}};
    if (partition.opened_epoch != base::kNoLeaderEpoch) {
        object.emplace("opened", partition.opened_epoch.value());
    }
    if (partition.written_epoch != base::kNoLeaderEpoch) {
        object.emplace("written", partition.written_epoch.value());
    }
    // Nearly always one volume has held all epochs; then its name says it all.
    if (partition.runs.size() == 1) {
        object.emplace("volume", partition.volume());
    } else {
        object.emplace("volumes", to_json(partition.runs));
    }
    if (!partition.target.empty()) object.emplace("target", to_json(partition.target));
    if (partition.released) object.emplace("released", true);
    if (partition.asked_back) object.emplace("asked_back", true);
    put_unknown(object, partition.unknown);
    return object;
}

Result<Partition> parse_partition(const json::value& value) {
    JsonFields fields(value, "partition");
    Partition partition;
    partition.replicas = parse_brokers(fields, "replicas");
    if (fields.has("target")) partition.target = parse_brokers(fields, "target");
    partition.leader.broker = base::BrokerId(fields.integer<std::int32_t>("leader"));
    partition.leader.incarnation.uuid = fields.uuid("incarnation");
    partition.leader_epoch = base::LeaderEpoch(fields.integer<std::int32_t>("epoch"));
    partition.opened_epoch = base::LeaderEpoch(fields.integer<std::int32_t>("opened", -1));
    partition.written_epoch = base::LeaderEpoch(fields.integer<std::int32_t>("written", -1));
    partition.runs = parse_runs(fields);
    if (partition.runs.empty()) {
        partition.runs.push_back({base::LeaderEpoch(0), fields.text("volume")});
    }
    partition.released = fields.flag("released");
    partition.asked_back = fields.flag("asked_back");
    partition.unknown = fields.unknown();
    KAAS_TRY(fields.fault());
    return partition;
}

json::object to_json(const Topic& topic) {
    json::array partitions;
    partitions.reserve(topic.partitions.size());
    for (const auto& partition : topic.partitions) partitions.push_back(to_json(partition));
    json::object object{{"name", topic.name}, {"id", topic.id.uuid.to_string()}};
    if (!topic.configs.empty()) object.emplace("configs", to_json(topic.configs));
    object.emplace("partitions", std::move(partitions));
    put_unknown(object, topic.unknown);
    return object;
}

Result<Topic> parse_topic(const json::value& value) {
    JsonFields fields(value, "topic");
    Topic topic;
    topic.name = fields.text("name");
    topic.id.uuid = fields.uuid("id");
    KAAS_TRY_ASSIGN(configs, parse_configs(fields.object("configs")));
    topic.configs = std::move(configs);
    const auto& partitions = fields.array("partitions");
    topic.partitions.reserve(partitions.size());
    for (const auto& entry : partitions) {
        KAAS_TRY_ASSIGN(partition, parse_partition(entry));
        topic.partitions.push_back(std::move(partition));
    }
    topic.unknown = fields.unknown();
    KAAS_TRY(fields.fault());
    return topic;
}

json::object to_json(const Broker& broker) {
    json::object sessions;
    for (const auto& [volume, incarnation] : broker.sessions) {
        sessions.emplace(volume, incarnation.uuid.to_string());
    }
    json::array endpoints;
    for (const auto& endpoint : broker.endpoints) endpoints.push_back(to_json(endpoint));
    json::object object{{"id", broker.id.value()},
                        {"sessions", std::move(sessions)},
                        {"endpoints", std::move(endpoints)}};
    if (!broker.volumes.empty()) {
        json::object volumes;
        for (const auto& [name, volume] : broker.volumes) volumes.emplace(name, to_json(volume));
        object.emplace("volumes", std::move(volumes));
    }
    if (broker.rack) object.emplace("rack", *broker.rack);
    if (broker.draining) object.emplace("draining", true);
    put_unknown(object, broker.unknown);
    return object;
}

Result<Broker> parse_broker(const json::value& value) {
    JsonFields fields(value, "broker");
    Broker broker;
    broker.id = base::BrokerId(fields.integer<std::int32_t>("id"));
    for (const auto& [volume, incarnation] : fields.object("sessions")) {
        broker.sessions.emplace(volume, base::Incarnation{fields.as_uuid(incarnation, "sessions")});
    }
    for (const auto& entry : fields.array("endpoints")) {
        KAAS_TRY_ASSIGN(endpoint, parse_endpoint(entry));
        broker.endpoints.push_back(std::move(endpoint));
    }
    for (const auto& [name, entry] : fields.object("volumes")) {
        KAAS_TRY_ASSIGN(volume, parse_broker_volume(entry));
        broker.volumes.emplace(name, std::move(volume));
    }
    broker.rack = fields.optional_text("rack");
    broker.draining = fields.flag("draining");
    broker.unknown = fields.unknown();
    KAAS_TRY(fields.fault());
    return broker;
}

json::object to_json(const Deletion& deletion) {
    json::array volumes;
    for (const auto& volume : deletion.volumes) volumes.emplace_back(volume);
    json::object object{{"name", deletion.name},
                        {"id", deletion.id.uuid.to_string()},
                        {"volumes", std::move(volumes)}};
    put_unknown(object, deletion.unknown);
    return object;
}

Result<Deletion> parse_deletion(const json::value& value) {
    JsonFields fields(value, "deletion");
    Deletion deletion;
    deletion.name = fields.text("name");
    deletion.id.uuid = fields.uuid("id");
    for (const auto& volume : fields.array("volumes")) {
        deletion.volumes.push_back(fields.as_text(volume, "volumes"));
    }
    deletion.unknown = fields.unknown();
    KAAS_TRY(fields.fault());
    return deletion;
}

json::object to_json(const ConfigMap& configs) {
    json::object object;
    for (const auto& [key, value] : configs) object.emplace(key, value);
    return object;
}

Result<ConfigMap> parse_configs(const json::object& object) {
    JsonFields fields(object, "configs");
    ConfigMap configs;
    for (const auto& [key, value] : object) configs.emplace(key, fields.as_text(value, key));
    KAAS_TRY(fields.fault());
    return configs;
}

}  // namespace kaas::catalog
