#include "coordinator/group_journal.h"

#include "base/base64.h"
#include "base/ids.h"
#include "base/result.h"
#include "catalog/error.h"
#include "catalog/json_fields.h"
#include "coordinator/group.h"
#include "coordinator/group_requests.h"
#include "coordinator/json_text.h"
#include "storage/transaction_marker.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::coordinator {

namespace json = boost::json;

namespace {

void append_key(std::string& to, std::string_view key) {
    if (!to.empty() && to.back() != '{') to += ',';
    append_json(to, key);
    to += ':';
}
void put_text(std::string& to, std::string_view key, std::string_view text) {
    append_key(to, key);
    append_json(to, text);
}
void put_optional(std::string& to, std::string_view key, const std::optional<std::string>& text) {
    if (text) put_text(to, key, *text);
}
template <std::integral T>
void put_number(std::string& to, std::string_view key, T number) {
    append_key(to, key);
    append_number(to, number);
}

void append_member(std::string& to, const Group& group, const Member& member,
                   std::string_view assignment) {
    to += '{';
    put_text(to, "member", member.id());
    put_optional(to, "instance", member.identity.group_instance_id);
    put_text(to, "client", member.client_id);
    put_text(to, "host", member.client_host);
    put_number(to, "session_timeout_ms", member.session_timeout.count());
    put_number(to, "rebalance_timeout_ms", member.rebalance_timeout.count());
    append_key(to, "metadata");
    append_bytes(to, member.metadata(group.protocol_name().value_or("")));
    append_key(to, "assignment");
    append_bytes(to, assignment);
    to += '}';
}

void append_unknown(std::string& to, const catalog::UnknownKeys& unknown) {
    if (unknown == nullptr) return;
    for (const auto& [key, value] : *unknown) {
        append_key(to, key);
        to += json::serialize(value);
    }
}

/// Bytes that stand as base64. Sets a fault for what is none.
std::string bytes_of(catalog::JsonFields& fields, std::string_view key) {
    auto bytes = base::from_base64(fields.text(key));
    if (!bytes) fields.set_fault(fmt::format("has no base64 '{}'", key));
    return std::move(bytes).value_or("");
}

Group::Stored::StoredMember member_of(catalog::JsonFields& fields) {
    using std::chrono::milliseconds;
    return {.identity = {.member_id = fields.text("member"),
                         .group_instance_id = fields.optional_text("instance")},
            .client_id = fields.text("client"),
            .client_host = fields.text("host"),
            .rebalance_timeout = milliseconds(fields.integer<std::int32_t>("rebalance_timeout_ms")),
            .session_timeout = milliseconds(fields.integer<std::int32_t>("session_timeout_ms")),
            .metadata = bytes_of(fields, "metadata"),
            .assignment = bytes_of(fields, "assignment")};
}

/// What members must have in common with their group, whoever wrote it.
catalog::Result<void> check(const std::string& group_id, const Group::Stored& stored) {
    const auto refuse = [&](std::string_view why) {
        return catalog::fail(catalog::ErrorCode::kMalformed,
                             fmt::format("group '{}' {}", group_id, why));
    };
    if (stored.members.empty()) return {};
    if (!stored.protocol_type || stored.protocol_type->empty() || !stored.protocol_name) {
        return refuse("has members, but no protocol");
    }
    std::set<std::string_view> ids;
    std::set<std::string_view> instances;
    for (const auto& member : stored.members) {
        const auto& [id, instance] = member.identity;
        if (!ids.insert(id).second) return refuse("has a member twice");
        if (instance && !instances.insert(*instance).second) {
            return refuse("has an instance id twice");
        }
    }
    if (!stored.leader || !ids.contains(*stored.leader)) return refuse("has no leader among them");
    return {};
}

}  // namespace

Assignments assignments_of(const Group& group) {
    Assignments assignments;
    for (const auto& [id, member] : group.members()) assignments[id] = member.assignment;
    return assignments;
}

std::string group_text(const Group& group, const Assignments& assignments) {
    std::string text;
    put_text(text, "group", group.id());
    put_number(text, "generation", group.generation());
    if (group.since_ms()) put_number(text, "since", *group.since_ms());
    put_optional(text, "protocol_type", group.protocol_type());
    put_optional(text, "protocol", group.protocol_name());
    put_optional(text, "leader", group.leader());
    append_key(text, "members");
    text += '[';
    for (const auto& [id, member] : group.members()) {
        if (text.back() != '[') text += ',';
        const auto assignment = assignments.find(id);
        append_member(text, group, member,
                      assignment == assignments.end() ? std::string_view() : assignment->second);
    }
    text += ']';
    append_unknown(text, group.unknown);
    return text;
}

std::string new_group_text(const Group& group) {
    std::string text;
    put_text(text, "group", group.id());
    put_number(text, "generation", 0);
    if (group.since_ms()) put_number(text, "since", *group.since_ms());
    text += R"(,"members":[])";
    append_unknown(text, group.unknown);
    return text;
}

std::string simple_group_text(std::string_view group_id) {
    std::string text;
    put_text(text, "group", group_id);
    return text;
}

std::string group_line(std::string_view text) {
    return fmt::format(R"({{"change":"group",{}}})", text);
}

catalog::Result<Group::Stored> parse_group(const json::object& object) {
    catalog::JsonFields fields(object, "group");
    for (const auto* known : {"change", "offsets", "pending"}) fields.skip(known);
    const auto id = fields.text("group");
    Group::Stored stored;
    stored.generation = fields.integer<std::int32_t>("generation");
    if (fields.has("since")) stored.since_ms = fields.integer<std::int64_t>("since");
    stored.protocol_type = fields.optional_text("protocol_type");
    stored.protocol_name = fields.optional_text("protocol");
    stored.leader = fields.optional_text("leader");
    for (const auto& value : fields.array("members")) {
        catalog::JsonFields member(value, "group member");
        stored.members.push_back(member_of(member));
        KAAS_TRY(member.fault());
    }
    KAAS_TRY(fields.fault());
    KAAS_TRY(check(id, stored));
    stored.unknown = fields.unknown();
    return stored;
}

std::string group_deleted_line(std::string_view group_id) {
    std::string text = R"({"change":"group-deleted")";
    put_text(text, "group", group_id);
    return text += '}';
}

std::string transaction_ended_line(const storage::Marker& marker, std::int64_t now_ms) {
    std::string text = R"({"change":"transaction-ended")";
    put_number(text, "producer", marker.producer.value());
    put_number(text, "epoch", marker.epoch.value());
    put_number(text, "coordinator_epoch", marker.coordinator_epoch);
    put_number(text, "at", now_ms);
    append_key(text, "commit");
    text += marker.commit ? "true}" : "false}";
    return text;
}

void append_producer(std::string& to, base::ProducerId id,
                     const TransactionalProducers::Producer& producer) {
    to += '{';
    put_number(to, "producer", id.value());
    put_number(to, "epoch", producer.epoch.value());
    put_number(to, "coordinator_epoch", producer.coordinator_epoch);
    put_number(to, "at", producer.seen_ms);
    if (producer.open) to += R"(,"open":true)";
    to += '}';
}

}  // namespace kaas::coordinator
