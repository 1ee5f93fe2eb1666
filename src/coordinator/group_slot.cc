#include "coordinator/group_slot.h"

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/timer_queue.h"
#include "catalog/error.h"
#include "catalog/json_fields.h"
#include "coordinator/classic_protocol.h"
#include "coordinator/group.h"
#include "coordinator/group_config.h"
#include "coordinator/group_journal.h"
#include "coordinator/group_metrics.h"
#include "coordinator/group_offsets.h"
#include "coordinator/group_requests.h"
#include "coordinator/slot_writer.h"
#include "storage/transaction_marker.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::coordinator {

namespace json = boost::json;

namespace {

constexpr std::string_view kClassic = "classic";

/// Grows when older versions could no longer understand what we write.
constexpr std::int32_t kFormat = 1;

std::string lower_case(std::string_view text) {
    std::string lower(text);
    std::ranges::transform(lower, lower.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return lower;
}

/// As Java's `String.trim`.
std::string_view trimmed(std::string_view text) {
    while (!text.empty() && static_cast<unsigned char>(text.front()) <= ' ') text.remove_prefix(1);
    while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
    return text;
}

std::string_view text_of(const json::object& object, std::string_view key) {
    const auto* value = object.if_contains(key);
    const auto* text = value == nullptr ? nullptr : value->if_string();
    return text == nullptr ? std::string_view() : std::string_view(text->data(), text->size());
}

std::uint64_t next_leadership() {
    static std::atomic<std::uint64_t> last = 0;
    return ++last;
}

}  // namespace

GroupSlot::GroupSlot(SlotWriter& writer, base::TimerQueue& timers, const base::Clock& clock,
                     const GroupConfig& config, GroupMetrics& metrics,
                     ClassicProtocol::NewId new_id)
    : writer_(writer),
      timers_(timers),
      clock_(clock),
      config_(config),
      metrics_(metrics),
      groups_(metrics),
      classic_(groups_, writer, timers, clock, config, metrics, new_id),
      leadership_(next_leadership()) {}

GroupSlot::~GroupSlot() { metrics_.offsets.add(-offsets_); }

catalog::Result<void> GroupSlot::load_picture(const json::object& picture) {
    catalog::JsonFields fields(picture, "picture of a group slot");
    KAAS_TRY(fields.check_format(kFormat, kFormat));
    if (fields.has("groups")) {
        for (const auto& value : fields.array("groups")) {
            const auto* object = value.if_object();
            if (object == nullptr) {
                return catalog::fail(catalog::ErrorCode::kMalformed, "a group is no object");
            }
            KAAS_TRY(load_group(*object));
        }
    }
    if (fields.has("producers")) {
        for (const auto& value : fields.array("producers")) {
            const auto* object = value.if_object();
            if (object == nullptr) {
                return catalog::fail(catalog::ErrorCode::kMalformed, "a producer is no object");
            }
            KAAS_TRY(load_producer(*object));
        }
    }
    KAAS_TRY(fields.fault());
    unknown_ = fields.unknown();
    return {};
}

catalog::Result<void> GroupSlot::load_group(const json::object& object) {
    catalog::JsonFields fields(object, "group");
    const auto id = fields.text("group");
    KAAS_TRY(fields.fault());
    if (groups_.find(id) != nullptr) {
        return catalog::fail(catalog::ErrorCode::kMalformed,
                             fmt::format("group '{}' stands there twice", id));
    }
    auto& group = groups_.find_or_create(id);
    if (fields.has("generation")) {
        KAAS_TRY_ASSIGN(stored, parse_group(object));
        load_stored(group, std::move(stored), object);
    }
    if (fields.has("offsets")) {
        for (const auto& value : fields.array("offsets")) {
            const auto* commit = value.if_object();
            if (commit == nullptr) {
                return catalog::fail(catalog::ErrorCode::kMalformed, "a commit is no object");
            }
            const auto see = [&](std::string_view topic, base::PartitionId partition,
                                 OffsetEntry entry) {
                put(group, topic, partition, std::move(entry));
            };
            KAAS_TRY(parse_commit(*commit, see));
        }
    }
    return load_pending(group, object);
}

catalog::Result<void> GroupSlot::load_pending(Group& group, const json::object& object) {
    catalog::JsonFields fields(object, "group");
    if (!fields.has("pending")) return {};
    for (const auto& value : fields.array("pending")) {
        const auto* commit = value.if_object();
        if (commit == nullptr) {
            return catalog::fail(catalog::ErrorCode::kMalformed, "a commit is no object");
        }
        std::vector<std::pair<std::pair<std::string, base::PartitionId>, OffsetEntry>> entries;
        KAAS_TRY_ASSIGN(
            head, parse_commit(*commit, [&](std::string_view topic, base::PartitionId partition,
                                            OffsetEntry entry) {
                entries.emplace_back(std::pair(std::string(topic), partition), std::move(entry));
            }));
        if (!head.producer) {
            return catalog::fail(catalog::ErrorCode::kMalformed, "a pending commit of no producer");
        }
        for (auto& [place, entry] : entries) {
            group.offsets.put_pending(place.first, place.second,
                                      {*head.producer, std::move(entry), head.outdated});
        }
        producers_.waits(*head.producer, group.id());
    }
    return fields.fault();
}

catalog::Result<void> GroupSlot::load_producer(const json::object& object) {
    catalog::JsonFields fields(object, "producer");
    const base::ProducerId id{fields.integer<std::int64_t>("producer")};
    const base::ProducerEpoch epoch{fields.integer<std::int16_t>("epoch")};
    producers_.load(id, {.epoch = epoch,
                         .coordinator_epoch = fields.integer<std::int32_t>("coordinator_epoch"),
                         .seen_ms = fields.integer<std::int64_t>("at"),
                         .open = fields.flag("open")});
    return fields.fault();
}

catalog::Result<void> GroupSlot::load_change(const json::object& change) {
    const auto kind = text_of(change, "change");
    if (kind == "offsets-committed") return load_commit(change);
    if (kind == "transaction-ended") return load_transaction_end(change);
    if (kind == "offsets-deleted") return load_deletion(change);
    if (kind != "group" && kind != "group-deleted") {
        return catalog::fail(catalog::ErrorCode::kNewerFormat,
                             fmt::format("change '{}' is not known to this version", kind));
    }
    catalog::JsonFields fields(change, "change");
    const auto id = fields.text("group");
    KAAS_TRY(fields.fault());
    if (kind == "group-deleted") {
        if (auto* group = groups_.find(id); group != nullptr) erase(*group);
        return {};
    }
    KAAS_TRY_ASSIGN(stored, parse_group(change));
    load_stored(groups_.find_or_create(id), std::move(stored), change);
    return {};
}

void GroupSlot::load_stored(Group& group, Group::Stored stored, const json::object& object) {
    json::object kept(object);
    for (const auto* key : {"change", "offsets", "pending"}) kept.erase(key);
    auto text = json::serialize(kept);
    group.stored_text = text.substr(1, text.size() - 2);
    group.load(std::move(stored));
}

catalog::Result<void> GroupSlot::load_commit(const json::object& object) {
    const auto id = text_of(object, "group");
    auto& group = groups_.find_or_create(id);
    const auto* producer = object.if_contains("producer");
    if (producer == nullptr) {
        KAAS_TRY(parse_commit(
            object, [&](std::string_view topic, base::PartitionId partition, OffsetEntry entry) {
                put(group, topic, partition, std::move(entry));
            }));
        return {};
    }
    const base::ProducerId producer_id{producer->is_int64() ? producer->get_int64() : -1};
    KAAS_TRY_ASSIGN(head, parse_commit(object, [&](std::string_view topic,
                                                   base::PartitionId partition, OffsetEntry entry) {
                        group.offsets.put_pending(topic, partition,
                                                  {producer_id, std::move(entry)});
                    }));
    producers_.committed(producer_id, head.producer_epoch, group.id(), head.committed_ms);
    return {};
}

catalog::Result<void> GroupSlot::load_deletion(const json::object& object) {
    auto* group = groups_.find(text_of(object, "group"));
    return parse_deletion(object, [&](std::string_view topic, base::PartitionId partition) {
        if (group != nullptr) remove_offset(*group, topic, partition);
    });
}

catalog::Result<void> GroupSlot::load_transaction_end(const json::object& object) {
    catalog::JsonFields fields(object, "end of a transaction");
    const storage::Marker marker{
        .producer = base::ProducerId{fields.integer<std::int64_t>("producer")},
        .epoch = base::ProducerEpoch{fields.integer<std::int16_t>("epoch")},
        .coordinator_epoch = fields.integer<std::int32_t>("coordinator_epoch"),
        .commit = fields.flag("commit")};
    const auto at = fields.integer<std::int64_t>("at");
    KAAS_TRY(fields.fault());
    end(marker, at);
    return {};
}

void GroupSlot::start() {
    producers_.expire(clock_.wall_ms(), config_.producer_expiration.count());
    classic_.start();
    arm_clean_up();
}

json::object GroupSlot::picture() const {
    std::vector<const Group*> by_id;
    for (const auto& [id, group] : groups_) by_id.push_back(group.get());
    std::ranges::sort(by_id, {}, &Group::id);
    auto text = fmt::format(R"({{"format":{},"groups":[)", kFormat);
    for (const auto* group : by_id) {
        const bool is_known = !group->stored_text.empty() || !group->offsets.empty();
        if (!is_known) continue;
        if (text.back() != '[') text += ',';
        text += '{';
        text += group->stored_text.empty() ? simple_group_text(group->id()) : group->stored_text;
        text += offsets_text(group->offsets);
        text += '}';
    }
    text += R"(],"producers":[)";
    for (const auto& [id, producer] : producers_.all()) {
        if (text.back() != '[') text += ',';
        append_producer(text, id, producer);
    }
    text += "]}";
    auto picture = json::parse(text).as_object();
    catalog::put_unknown(picture, unknown_);
    return picture;
}

void GroupSlot::close() {
    timers_.cancel(clean_up_timer_);
    classic_.close();
}

void GroupSlot::join(JoinGroupRequest request, Done<JoinGroupAnswer> done) {
    classic_.join(std::move(request), std::move(done));
}

void GroupSlot::sync(SyncGroupRequest request, Done<SyncGroupAnswer> done) {
    classic_.sync(std::move(request), std::move(done));
}

void GroupSlot::heartbeat(const HeartbeatRequest& request, Done<ErrorCode> done) {
    done(classic_.heartbeat(request));
}

void GroupSlot::leave(const LeaveGroupRequest& request, Done<LeaveGroupAnswer> done) {
    answer_settled(writer_, std::move(done), classic_.leave(request),
                   {.error = ErrorCode::kNotCoordinator});
}

void GroupSlot::describe(const std::vector<std::string>& group_ids,
                         Done<DescribeGroupsAnswer> done) {
    DescribeGroupsAnswer answer;
    DescribeGroupsAnswer lost;
    for (const auto& id : group_ids) {
        answer.push_back(describe(id));
        lost.push_back({.error = ErrorCode::kNotCoordinator, .group_id = id, .state = ""});
    }
    answer_settled(writer_, std::move(done), std::move(answer), std::move(lost));
}

DescribedGroup GroupSlot::describe(const std::string& group_id) const {
    const auto* group = groups_.find(group_id);
    if (group == nullptr) {
        return {.error = ErrorCode::kGroupIdNotFound, .group_id = group_id, .state = "Dead"};
    }
    DescribedGroup described{.group_id = group_id,
                             .state = std::string(to_string(group->state())),
                             .protocol_type = group->protocol_type().value_or("")};
    const bool is_stable = group->is(GroupState::kStable);
    if (is_stable) described.protocol = group->protocol_name().value_or("");
    for (const auto& [id, member] : group->members()) {
        described.members.push_back(
            {.member = member.identity,
             .client_id = member.client_id,
             .client_host = member.client_host,
             .metadata = is_stable ? member.metadata(described.protocol) : std::string(),
             .assignment = member.assignment});
    }
    return described;
}

void GroupSlot::list(const ListGroupsRequest& request, Done<ListGroupsAnswer> done) {
    std::set<std::string> states;
    for (const auto& state : request.states) states.insert(lower_case(trimmed(state)));
    const bool has_classic =
        request.types.empty() || std::ranges::any_of(request.types, [](const std::string& type) {
            return lower_case(type) == kClassic;
        });
    ListGroupsAnswer answer;
    for (const auto& [id, group] : groups_) {
        const std::string state(to_string(group->state()));
        if (!has_classic || (!states.empty() && !states.contains(lower_case(state)))) continue;
        answer.groups.push_back(
            {id, group->protocol_type().value_or(""), state, std::string(kClassic)});
    }
    answer_settled(writer_, std::move(done), std::move(answer),
                   {.error = ErrorCode::kNotCoordinator});
}

void GroupSlot::delete_groups(const std::vector<std::string>& group_ids,
                              Done<DeleteGroupsAnswer> done) {
    DeleteGroupsAnswer answer;
    DeleteGroupsAnswer lost;
    for (const auto& id : group_ids) {
        auto error = ErrorCode::kNone;
        if (auto* group = groups_.find(id); group == nullptr) {
            error = ErrorCode::kGroupIdNotFound;
        } else if (!group->is(GroupState::kEmpty)) {
            error = ErrorCode::kNonEmptyGroup;
        } else {
            metrics_.deleted_offsets.add(group->offsets.committed_count());
            erase(*group);
            writer_.append(group_deleted_line(id));
        }
        answer.push_back({id, error});
        lost.push_back({id, ErrorCode::kNotCoordinator});
    }
    answer_settled(writer_, std::move(done), std::move(answer), std::move(lost));
}

void GroupSlot::erase(Group& group) {
    const auto count = static_cast<std::int64_t>(group.offsets.committed_count());
    offsets_ -= count;
    metrics_.offsets.add(-count);
    classic_.cancel_timers(group);
    groups_.erase(std::string(group.id()));
}

void GroupSlot::arm_clean_up() {
    timers_.arm(clean_up_timer_, clock_.now() + config_.retention_check_interval, [this] {
        clean_up();
        arm_clean_up();
    });
}

void GroupSlot::clean_up() {
    producers_.expire(clock_.wall_ms(), config_.producer_expiration.count());
    std::vector<Group*> idle;
    for (const auto& [id, group] : groups_) {
        if (expire_offsets(*group) && group->is(GroupState::kEmpty)) idle.push_back(group.get());
    }
    for (auto* group : idle) {
        auto line = group_deleted_line(group->id());
        erase(*group);
        writer_.append(std::move(line));
    }
}

}  // namespace kaas::coordinator
