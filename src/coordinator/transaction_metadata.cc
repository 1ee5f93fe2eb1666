#include "coordinator/transaction_metadata.h"

#include "base/ids.h"
#include "base/result.h"
#include "catalog/error.h"
#include "catalog/json_fields.h"
#include "coordinator/json_text.h"
#include "coordinator/transaction_requests.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace kaas::coordinator {
namespace {

namespace json = boost::json;

/// By number (Apache `TransactionState`).
constexpr std::array<std::string_view, 8> kStateNames = {
    "Empty",          "Ongoing",       "PrepareCommit", "PrepareAbort",
    "CompleteCommit", "CompleteAbort", "Dead",          "PrepareEpochFence"};

/// What has its usual value in an object that lacks it.
constexpr std::int64_t kNone = -1;

/// Calls `put(key, number)` for each number of `metadata` that is not the usual one.
template <class Put>
void for_each_number(const TransactionMetadata& metadata, Put put) {
    put("producer_id", metadata.producer.id.value());
    put("producer_epoch", std::int64_t{metadata.producer.epoch.value()});
    put("timeout_ms", std::int64_t{metadata.timeout_ms});
    put("updated_ms", metadata.update_ms);
    const auto put_unusual = [&put](std::string_view key, std::int64_t value, std::int64_t usual) {
        if (value != usual) put(key, value);
    };
    put_unusual("started_ms", metadata.start_ms, kNone);
    put_unusual("last_producer_epoch", metadata.last_epoch.value(), kNone);
    put_unusual("previous_producer_id", metadata.previous_producer_id.value(), kNone);
    put_unusual("next_producer_id", metadata.next_producer_id.value(), kNone);
    put_unusual("transaction_version", metadata.version, kFixedEpoch);
}

void append_partitions(std::string& line, const std::set<TransactionPartition>& partitions) {
    line += R"(,"partitions":{)";
    const std::string* topic = nullptr;
    for (const auto& partition : partitions) {
        if (topic != nullptr && *topic == partition.topic) {
            line += ',';
        } else {
            if (topic != nullptr) line += "],";
            topic = &partition.topic;
            append_json(line, *topic);
            line += ":[";
        }
        fmt::format_to(std::back_inserter(line), "{}", partition.partition);
    }
    line += "]}";
}

void read_partitions(catalog::JsonFields& fields, std::set<TransactionPartition>& partitions) {
    for (const auto& [topic, numbers] : fields.object("partitions")) {
        const auto* list = numbers.if_array();
        if (list == nullptr) {
            fields.set_fault("has partitions that are not lists");
            return;
        }
        for (const auto& number : *list) {
            const base::PartitionId partition{
                fields.as_integer<std::int32_t>(number, "partitions")};
            partitions.insert({std::string(topic), partition});
        }
    }
}

/// What the slot's rules build on, and an edited line might break.
void check_rules(const TransactionMetadata& metadata, catalog::JsonFields& fields) {
    if (metadata.transactional_id.empty()) fields.set_fault("has an empty 'transactional_id'");
    if (metadata.producer.id.value() < 0) fields.set_fault("has no good 'producer_id'");
    if (metadata.producer.epoch.value() < 0) fields.set_fault("has no good 'producer_epoch'");
    if (metadata.version < kFixedEpoch || metadata.version > kEpochBump)
        fields.set_fault("has no good 'transaction_version'");
    const bool open = metadata.state == TransactionState::kOngoing || metadata.is_ending();
    if (!open && !metadata.partitions.empty())
        fields.set_fault("has partitions without an open transaction");
}

}  // namespace

std::string_view to_string(TransactionState state) {
    return kStateNames.at(static_cast<std::size_t>(state));
}

std::optional<TransactionState> parse_transaction_state(std::string_view name) {
    const auto* found = std::ranges::find(kStateNames, name);
    if (found == kStateNames.end()) return std::nullopt;
    return static_cast<TransactionState>(found - kStateNames.begin());
}

std::string to_line(const TransactionMetadata& metadata) {
    std::string line = R"({"transactional_id":)";
    append_json(line, metadata.transactional_id);
    line += R"(,"state":)";
    append_json(line, to_string(metadata.state));
    for_each_number(metadata, [&line](std::string_view key, std::int64_t value) {
        fmt::format_to(std::back_inserter(line), R"(,"{}":{})", key, value);
    });
    if (!metadata.partitions.empty()) append_partitions(line, metadata.partitions);
    if (metadata.unknown != nullptr && !metadata.unknown->empty()) {
        const auto text = json::serialize(*metadata.unknown);
        line += ',';
        line.append(text, 1, text.size() - 2);  // the members, without their braces
    }
    line += '}';
    return line;
}

std::string removal_line(std::string_view transactional_id) {
    std::string line = R"({"transactional_id":)";
    append_json(line, transactional_id);
    line += R"(,"removed":true})";
    return line;
}

json::object to_json(const TransactionMetadata& metadata) {
    json::object object{{"transactional_id", metadata.transactional_id},
                        {"state", to_string(metadata.state)}};
    for_each_number(metadata, [&object](std::string_view key, std::int64_t value) {
        object.emplace(key, value);
    });
    if (!metadata.partitions.empty()) {
        json::object topics;
        for (const auto& [topic, partition] : metadata.partitions) {
            auto& list = topics[topic];
            if (!list.is_array()) list.emplace_array();
            list.get_array().emplace_back(partition.value());
        }
        object.emplace("partitions", std::move(topics));
    }
    catalog::put_unknown(object, metadata.unknown);
    return object;
}

catalog::Result<TransactionLine> parse_transaction_line(const json::object& line) {
    catalog::JsonFields fields(line, "transaction");
    TransactionLine parsed;
    auto& metadata = parsed.metadata;
    metadata.transactional_id = fields.text("transactional_id");
    parsed.removed = fields.flag("removed");
    if (parsed.removed) {
        KAAS_TRY(fields.fault());
        return parsed;
    }
    const auto state = parse_transaction_state(fields.text("state"));
    if (state && *state <= TransactionState::kCompleteAbort) {
        metadata.state = *state;
    } else {
        fields.set_fault("has no good 'state'");
    }
    metadata.producer.id = base::ProducerId(fields.integer<std::int64_t>("producer_id"));
    metadata.producer.epoch = base::ProducerEpoch(fields.integer<std::int16_t>("producer_epoch"));
    metadata.timeout_ms = fields.integer<std::int32_t>("timeout_ms");
    metadata.update_ms = fields.integer<std::int64_t>("updated_ms");
    metadata.start_ms = fields.integer<std::int64_t>("started_ms", kNone);
    metadata.last_epoch =
        base::ProducerEpoch(fields.integer<std::int16_t>("last_producer_epoch", kNone));
    metadata.previous_producer_id =
        base::ProducerId(fields.integer<std::int64_t>("previous_producer_id", kNone));
    metadata.next_producer_id =
        base::ProducerId(fields.integer<std::int64_t>("next_producer_id", kNone));
    metadata.version = fields.integer<TransactionVersion>("transaction_version", kFixedEpoch);
    read_partitions(fields, metadata.partitions);
    check_rules(metadata, fields);
    metadata.unknown = fields.unknown();
    KAAS_TRY(fields.fault());
    return parsed;
}

}  // namespace kaas::coordinator
