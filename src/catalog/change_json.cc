#include "base/ids.h"
#include "base/result.h"
#include "catalog/change.h"
#include "catalog/error.h"
#include "catalog/json_fields.h"
#include "catalog/model_json.h"

#include <boost/json/array.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace kaas::catalog {

namespace json = boost::json;

namespace {

constexpr std::string_view kKind = "change";

json::object line(std::string_view kind) { return {{kKind, kind}}; }

json::array to_json(const std::vector<PartitionEpoch>& epochs) {
    json::array list;
    list.reserve(epochs.size());
    for (const auto& [id, epoch] : epochs) {
        list.push_back({{"topic", id.topic.uuid.to_string()},
                        {"partition", id.partition.value()},
                        {"epoch", epoch.value()}});
    }
    return list;
}

Result<std::vector<PartitionEpoch>> parse_epochs(JsonFields& fields) {
    std::vector<PartitionEpoch> epochs;
    for (const auto& value : fields.array("partitions")) {
        JsonFields entry(value, "partition's epoch");
        epochs.push_back({{base::TopicId{entry.uuid("topic")},
                           base::PartitionId(entry.integer<std::int32_t>("partition"))},
                          base::LeaderEpoch(entry.integer<std::int32_t>("epoch"))});
        KAAS_TRY(entry.fault());
    }
    return epochs;
}

struct Encoder {
    json::object operator()(const TopicCreated& change) const {
        auto out = line("topic-created");
        out.emplace("topic", to_json(change.topic));
        return out;
    }
    json::object operator()(const PartitionsAdded& change) const {
        auto out = line("partitions-added");
        out.emplace("topic", change.topic.uuid.to_string());
        json::array partitions;
        for (const auto& partition : change.partitions) partitions.push_back(to_json(partition));
        out.emplace("partitions", std::move(partitions));
        return out;
    }
    json::object operator()(const ConfigsChanged& change) const {
        auto out = line("configs-changed");
        if (const auto* topic = std::get_if<base::TopicId>(&change.resource)) {
            out.emplace("topic", topic->uuid.to_string());
        } else {
            out.emplace("broker", std::get<base::BrokerId>(change.resource).value());
        }
        json::object values;
        for (const auto& [key, value] : change.values) {
            values.emplace(key, value ? json::value(*value) : json::value(nullptr));
        }
        out.emplace("values", std::move(values));
        return out;
    }
    json::object operator()(const TopicDeleted& change) const {
        auto out = line("topic-deleted");
        out.emplace("topic", change.topic.uuid.to_string());
        return out;
    }
    json::object operator()(const TopicReclaimed& change) const {
        auto out = line("topic-reclaimed");
        out.emplace("topic", change.topic.uuid.to_string());
        return out;
    }
    json::object operator()(const BrokerRegistered& change) const {
        auto out = line("broker-registered");
        out.emplace("broker", to_json(change.broker));
        return out;
    }
    json::object operator()(const BrokerGone& change) const {
        auto out = line("broker-gone");
        out.emplace("broker", change.broker.value());
        return out;
    }
    json::object operator()(const BrokerDraining& change) const {
        auto out = line("broker-draining");
        out.emplace("broker", change.broker.value());
        return out;
    }
    json::object operator()(const BrokerUnregistered& change) const {
        auto out = line("broker-unregistered");
        out.emplace("broker", change.broker.value());
        return out;
    }
    json::object operator()(const LeadershipRenewed& change) const {
        auto out = line("leadership-renewed");
        out.emplace("broker", change.broker.value());
        return out;
    }
    json::object operator()(const Assigned& change) const {
        auto out = line("assigned");
        json::array list;
        for (const auto& one : change.assignments) {
            list.push_back({{"topic", one.partition.topic.uuid.to_string()},
                            {"partition", one.partition.partition.value()},
                            {"replicas", catalog::to_json(one.replicas)},
                            {"leader", one.leader.broker.value()},
                            {"incarnation", one.leader.incarnation.uuid.to_string()},
                            {"epoch", one.leader_epoch.value()},
                            {"volume", one.volume}});
        }
        out.emplace("assignments", std::move(list));
        return out;
    }
    json::object operator()(const ReplicasChanged& change) const {
        auto out = line("replicas-changed");
        json::array list;
        for (const auto& [id, replicas] : change.lists) {
            list.push_back({{"topic", id.topic.uuid.to_string()},
                            {"partition", id.partition.value()},
                            {"replicas", catalog::to_json(replicas)}});
        }
        out.emplace("partitions", std::move(list));
        return out;
    }
    json::object operator()(const AskedBack& change) const {
        auto out = line("asked-back");
        out.emplace("partitions", to_json(change.epochs));
        return out;
    }
    json::object operator()(const Released& change) const {
        auto out = line("released");
        out.emplace("partitions", to_json(change.epochs));
        return out;
    }
    json::object operator()(const Opened& change) const {
        auto out = line("opened");
        json::array list;
        for (const auto& [id, epoch, written] : change.epochs) {
            json::object entry{{"topic", id.topic.uuid.to_string()},
                               {"partition", id.partition.value()},
                               {"epoch", epoch.value()}};
            if (written != base::kNoLeaderEpoch) entry.emplace("written", written.value());
            list.push_back(std::move(entry));
        }
        out.emplace("partitions", std::move(list));
        return out;
    }
};

using Parser = Result<Change> (*)(JsonFields&);

Result<Change> parse_topic_created(JsonFields& fields) {
    KAAS_TRY_ASSIGN(topic, parse_topic(fields.value("topic")));
    return TopicCreated{std::move(topic)};
}

Result<Change> parse_partitions_added(JsonFields& fields) {
    PartitionsAdded change{base::TopicId{fields.uuid("topic")}, {}};
    for (const auto& entry : fields.array("partitions")) {
        KAAS_TRY_ASSIGN(partition, parse_partition(entry));
        change.partitions.push_back(std::move(partition));
    }
    return change;
}

Result<Change> parse_configs_changed(JsonFields& fields) {
    ConfigsChanged change;
    if (fields.has("topic")) {
        change.resource = base::TopicId{fields.uuid("topic")};
    } else {
        change.resource = base::BrokerId(fields.integer<std::int32_t>("broker"));
    }
    for (const auto& [key, value] : fields.object("values")) {
        change.values.emplace_back(key, std::nullopt);
        if (!value.is_null()) change.values.back().second = fields.as_text(value, key);
    }
    return change;
}

Result<Change> parse_assigned(JsonFields& fields) {
    Assigned change;
    for (const auto& value : fields.array("assignments")) {
        JsonFields entry(value, "assignment");
        Assignment one;
        one.partition = {base::TopicId{entry.uuid("topic")},
                         base::PartitionId(entry.integer<std::int32_t>("partition"))};
        one.replicas = parse_brokers(entry, "replicas");
        one.leader = {base::BrokerId(entry.integer<std::int32_t>("leader")),
                      base::Incarnation{entry.uuid("incarnation")}};
        one.leader_epoch = base::LeaderEpoch(entry.integer<std::int32_t>("epoch"));
        one.volume = entry.text("volume");
        KAAS_TRY(entry.fault());
        change.assignments.push_back(std::move(one));
    }
    return change;
}

Result<Change> parse_replicas_changed(JsonFields& fields) {
    ReplicasChanged change;
    for (const auto& value : fields.array("partitions")) {
        JsonFields entry(value, "partition's replicas");
        change.lists.push_back({{base::TopicId{entry.uuid("topic")},
                                 base::PartitionId(entry.integer<std::int32_t>("partition"))},
                                parse_brokers(entry, "replicas")});
        KAAS_TRY(entry.fault());
    }
    return change;
}

template <class T>
Result<Change> parse_of_topic(JsonFields& fields) {
    return T{base::TopicId{fields.uuid("topic")}};
}

template <class T>
Result<Change> parse_of_broker(JsonFields& fields) {
    return T{base::BrokerId(fields.integer<std::int32_t>("broker"))};
}

template <class T>
Result<Change> parse_of_epochs(JsonFields& fields) {
    KAAS_TRY_ASSIGN(epochs, parse_epochs(fields));
    return T{std::move(epochs)};
}

Result<Change> parse_opened(JsonFields& fields) {
    Opened change;
    for (const auto& value : fields.array("partitions")) {
        JsonFields entry(value, "opened epoch");
        change.epochs.push_back({{base::TopicId{entry.uuid("topic")},
                                  base::PartitionId(entry.integer<std::int32_t>("partition"))},
                                 base::LeaderEpoch(entry.integer<std::int32_t>("epoch")),
                                 base::LeaderEpoch(entry.integer<std::int32_t>("written", -1))});
        KAAS_TRY(entry.fault());
    }
    return change;
}

Result<Change> parse_broker_registered(JsonFields& fields) {
    KAAS_TRY_ASSIGN(broker, parse_broker(fields.value("broker")));
    return BrokerRegistered{std::move(broker)};
}

constexpr std::array<std::pair<std::string_view, Parser>, std::variant_size_v<Change>> kParsers = {{
    {"topic-created", parse_topic_created},
    {"partitions-added", parse_partitions_added},
    {"configs-changed", parse_configs_changed},
    {"topic-deleted", parse_of_topic<TopicDeleted>},
    {"topic-reclaimed", parse_of_topic<TopicReclaimed>},
    {"broker-registered", parse_broker_registered},
    {"broker-gone", parse_of_broker<BrokerGone>},
    {"broker-draining", parse_of_broker<BrokerDraining>},
    {"broker-unregistered", parse_of_broker<BrokerUnregistered>},
    {"leadership-renewed", parse_of_broker<LeadershipRenewed>},
    {"assigned", parse_assigned},
    {"replicas-changed", parse_replicas_changed},
    {"asked-back", parse_of_epochs<AskedBack>},
    {"released", parse_of_epochs<Released>},
    {"opened", parse_opened},
}};

}  // namespace

json::object to_json(const Change& change) { return std::visit(Encoder{}, change); }

Result<Change> parse_change(const json::object& object) {
    JsonFields fields(object, "change");
    const auto kind = fields.text(kKind);
    KAAS_TRY(fields.fault());
    for (const auto& [name, parse] : kParsers) {
        if (name != kind) continue;
        JsonFields of_kind(object, name);
        KAAS_TRY_ASSIGN(change, parse(of_kind));
        KAAS_TRY(of_kind.fault());
        return change;
    }
    return fail(ErrorCode::kNewerFormat, "change '" + kind + "' is not known to this version");
}

}  // namespace kaas::catalog
