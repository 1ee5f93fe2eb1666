// The lines of a group slot's journal that are about offsets.

#include "base/ids.h"
#include "base/result.h"
#include "base/uuid.h"
#include "catalog/error.h"
#include "catalog/json_fields.h"
#include "coordinator/group_journal.h"
#include "coordinator/group_offsets.h"
#include "coordinator/json_text.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>

#include <charconv>
#include <concepts>
#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace kaas::coordinator {

namespace json = boost::json;

namespace {

std::unexpected<catalog::Error> refuse(std::string_view why) {
    return catalog::fail(catalog::ErrorCode::kMalformed, std::string(why));
}

std::optional<base::PartitionId> partition_of(std::string_view key) {
    std::int32_t partition = 0;
    const auto [end, wrong] = std::from_chars(key.data(), key.data() + key.size(), partition);
    const bool good = wrong == std::errc() && end == key.data() + key.size() && partition >= 0;
    return good ? std::optional(base::PartitionId{partition}) : std::nullopt;
}

template <std::integral T>
std::optional<T> integer_of(const json::value& value) {
    const auto* number = value.if_int64();
    return number != nullptr && std::in_range<T>(*number) ? std::optional(static_cast<T>(*number))
                                                          : std::nullopt;
}

/// An offset alone, or a list of it, its leader epoch and its metadata.
bool read_offset(const json::value& value, OffsetEntry& entry) {
    const auto* list = value.if_array();
    const auto offset =
        integer_of<std::int64_t>(list == nullptr || list->empty() ? value : list->front());
    if (!offset) return false;
    entry.offset = base::Offset{*offset};
    if (list == nullptr) return true;
    if (list->size() > 1) {
        const auto leader_epoch = integer_of<std::int32_t>((*list)[1]);
        if (!leader_epoch) return false;
        entry.leader_epoch = *leader_epoch;
    }
    if (list->size() > 2) {
        const auto* metadata = (*list)[2].if_string();
        if (metadata == nullptr) return false;
        entry.metadata.assign(metadata->data(), metadata->size());
    }
    return true;
}

catalog::Result<void> parse_topic(const json::value& value, const CommitHead& head,
                                  const SeeOffset& see) {
    catalog::JsonFields fields(value, "topic of a commit");
    const auto name = fields.text("topic");
    const auto id = fields.has("id") ? fields.uuid("id") : base::Uuid{};
    const auto& partitions = fields.object("partitions");
    KAAS_TRY(fields.fault());
    for (const auto& [key, offset] : partitions) {
        OffsetEntry entry{
            .committed_ms = head.committed_ms, .expires_ms = head.expires_ms, .topic_id = {id}};
        const auto partition = partition_of(key);
        if (!partition || !read_offset(offset, entry)) {
            return refuse(fmt::format("'{}' has no good offset of partition '{}'", name,
                                      std::string_view(key)));
        }
        see(name, *partition, std::move(entry));
    }
    return {};
}

/// Groups what was committed alike, as a line would have it.
std::string picture_of(const GroupOffsets::ByTopic<OffsetEntry>& committed) {
    std::map<CommitHead, CommitText> commits;
    for (const auto& [topic, partitions] : committed) {
        std::map<std::pair<CommitHead, base::TopicId>, std::vector<base::PartitionId>> alike;
        for (const auto& [partition, entry] : partitions) {
            const CommitHead head{.committed_ms = entry.committed_ms,
                                  .expires_ms = entry.expires_ms};
            alike[{head, entry.topic_id}].push_back(partition);
        }
        for (const auto& [key, ids] : alike) {
            auto& text = commits.try_emplace(key.first, key.first, std::nullopt).first->second;
            text.topic(topic, key.second);
            for (const auto id : ids) {
                const auto& entry = partitions.at(id);
                text.partition(id, entry.offset, entry.leader_epoch, entry.metadata);
            }
        }
    }
    std::string list;
    for (auto& [head, text] : commits) {
        if (!list.empty()) list += ',';
        list += text.take();
    }
    return list;
}

/// One by one, as their order counts.
std::string picture_of(const GroupOffsets::ByTopic<std::vector<GroupOffsets::Pending>>& pending) {
    std::string list;
    for (const auto& [topic, partitions] : pending) {
        for (const auto& [partition, waiting] : partitions) {
            for (const auto& [producer, entry, outdated] : waiting) {
                CommitText text({.committed_ms = entry.committed_ms,
                                 .producer = producer,
                                 .outdated = outdated},
                                std::nullopt);
                text.topic(topic, entry.topic_id);
                text.partition(partition, entry.offset, entry.leader_epoch, entry.metadata);
                if (!list.empty()) list += ',';
                list += text.take();
            }
        }
    }
    return list;
}

}  // namespace

CommitText::CommitText(const CommitHead& head, std::optional<std::string_view> group_id) {
    text_.reserve(256);
    text_ += '{';
    if (group_id) {
        text_ += R"("change":"offsets-committed","group":)";
        append_json(text_, *group_id);
        text_ += ',';
    }
    text_ += R"("at":)";
    append_number(text_, head.committed_ms);
    if (head.expires_ms) {
        text_ += R"(,"expires":)";
        append_number(text_, *head.expires_ms);
    }
    if (head.producer) {
        text_ += R"(,"producer":)";
        append_number(text_, head.producer->value());
        if (head.producer_epoch != base::kNoProducerEpoch) {
            text_ += R"(,"epoch":)";
            append_number(text_, head.producer_epoch.value());
        }
    }
    if (head.outdated) text_ += R"(,"outdated":true)";
    text_ += R"(,"topics":[)";
}

void CommitText::topic(std::string_view name, const base::TopicId& id) {
    if (partitions_ > 0) text_ += "}}";
    topic_ = name;
    topic_id_ = id;
    partitions_ = 0;
}

void CommitText::partition(base::PartitionId partition, base::Offset offset,
                           std::int32_t leader_epoch, std::string_view metadata) {
    if (partitions_++ == 0) {
        text_ += topics_++ == 0 ? R"({"topic":)" : R"(,{"topic":)";
        append_json(text_, topic_);
        if (!topic_id_.uuid.is_zero()) {
            text_ += R"(,"id":")";
            text_ += topic_id_.uuid.to_string();
            text_ += '"';
        }
        text_ += R"(,"partitions":{")";
    } else {
        text_ += R"(,")";
    }
    append_number(text_, partition.value());
    text_ += R"(":)";
    const bool alone = leader_epoch == kNoLeaderEpochKnown && metadata.empty();
    if (!alone) text_ += '[';
    append_number(text_, offset.value());
    if (alone) return;
    text_ += ',';
    append_number(text_, leader_epoch);
    if (!metadata.empty()) {
        text_ += ',';
        append_json(text_, metadata);
    }
    text_ += ']';
}

std::string CommitText::take() {
    text_ += partitions_ > 0 ? "}}]}" : "]}";
    return std::move(text_);
}

catalog::Result<CommitHead> parse_commit(const json::object& object, const SeeOffset& see) {
    catalog::JsonFields fields(object, "commit");
    CommitHead head;
    head.committed_ms = fields.integer<std::int64_t>("at");
    if (fields.has("expires")) head.expires_ms = fields.integer<std::int64_t>("expires");
    if (fields.has("producer")) {
        head.producer = base::ProducerId{fields.integer<std::int64_t>("producer")};
        head.producer_epoch = base::ProducerEpoch{fields.integer<std::int16_t>("epoch", -1)};
    }
    head.outdated = fields.flag("outdated");
    const auto& topics = fields.array("topics");
    KAAS_TRY(fields.fault());
    for (const auto& topic : topics) KAAS_TRY(parse_topic(topic, head, see));
    return head;
}

DeletionLine::DeletionLine(std::string_view group_id)
    : text_(R"({"change":"offsets-deleted","group":)") {
    append_json(text_, group_id);
    text_ += R"(,"topics":[)";
}

void DeletionLine::partition(base::PartitionId partition) {
    if (partitions_++ == 0) {
        text_ += topics_++ == 0 ? R"({"topic":)" : R"(]},{"topic":)";
        append_json(text_, topic_);
        text_ += R"(,"partitions":[)";
    } else {
        text_ += ',';
    }
    append_number(text_, partition.value());
}

std::string DeletionLine::take() {
    text_ += topics_ > 0 ? "]}]}" : "]}";
    return std::move(text_);
}

catalog::Result<void> parse_deletion(const json::object& object, const SeePartition& see) {
    catalog::JsonFields fields(object, "deletion of offsets");
    const auto& topics = fields.array("topics");
    KAAS_TRY(fields.fault());
    for (const auto& value : topics) {
        catalog::JsonFields topic(value, "topic of a deletion");
        const auto name = topic.text("topic");
        for (const auto& partition : topic.array("partitions")) {
            see(name, base::PartitionId{topic.as_integer<std::int32_t>(partition, "partitions")});
        }
        KAAS_TRY(topic.fault());
    }
    return {};
}

std::string offsets_text(const GroupOffsets& offsets) {
    std::string text;
    if (!offsets.committed().empty()) {
        text += fmt::format(R"(,"offsets":[{}])", picture_of(offsets.committed()));
    }
    if (!offsets.pending().empty()) {
        text += fmt::format(R"(,"pending":[{}])", picture_of(offsets.pending()));
    }
    return text;
}

}  // namespace kaas::coordinator
