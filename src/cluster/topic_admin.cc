#include "cluster/topic_admin.h"

#include "base/ids.h"
#include "base/result.h"
#include "base/utf8.h"
#include "base/uuid.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "catalog/slot.h"
#include "catalog/topic_name.h"
#include "cluster/admin.h"
#include "cluster/balancer.h"
#include "cluster/draft.h"
#include "cluster/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace kaas::cluster {
namespace {

using catalog::Image;

/// Apache `ReplicationControlManager.MAX_PARTITIONS_PER_BATCH`.
constexpr std::int64_t kMaxPartitionsPerRequest = 10'000;
/// Kept for Apache's own; here it would only confuse its tools.
constexpr std::string_view kClusterMetadataTopic = "__cluster_metadata";

/// Names that stand more than once among `items`.
template <class Items, class Name>
std::set<std::string> duplicates(const Items& items, Name name) {
    std::set<std::string> seen;
    std::set<std::string> twice;
    for (const auto& item : items) {
        if (!seen.insert(name(item)).second) twice.insert(name(item));
    }
    return twice;
}

Result<void> check_total(const CreateTopics& request, const ControllerConfig& config) {
    std::int64_t total = 0;
    for (const auto& topic : request.topics) {
        if (!topic.assignments.empty()) {
            total += static_cast<std::int64_t>(topic.assignments.size());
        } else if (topic.partitions == -1) {
            total += config.default_partitions;
        } else if (topic.partitions > 0) {
            total += topic.partitions;
        }
    }
    if (total <= kMaxPartitionsPerRequest) return {};
    return fail(ErrorCode::kPolicyViolation, "Excessively large number of partitions per request.");
}

Result<void> check_name(const std::string& name, const Image& image) {
    if (name == kClusterMetadataTopic) {
        return fail(ErrorCode::kInvalidRequest,
                    "Creation of internal topic __cluster_metadata is prohibited.");
    }
    if (image.topic(name) != nullptr) {
        return fail(ErrorCode::kTopicAlreadyExists,
                    fmt::format("Topic '{}' already exists.", name));
    }
    if (const auto* other = image.colliding_topic(name)) {
        return fail(ErrorCode::kInvalidTopic,
                    fmt::format("Topic '{}' collides with existing topic: {}", name, other->name));
    }
    if (auto fault = catalog::topic_name_fault(name); !fault.empty()) {
        return fail(ErrorCode::kInvalidTopic, std::move(fault));
    }
    return {};
}

/// The control log is JSON, which takes no other text.
Result<void> check_text(const std::string& key, const std::optional<std::string>& value) {
    if (base::is_utf8(key) && base::is_utf8(value.value_or(""))) return {};
    return fail(ErrorCode::kInvalidConfig, "Name or value of a config is not UTF-8 text.");
}

Result<catalog::ConfigMap> check_configs(const NewTopic& topic, const ControllerConfig& config) {
    catalog::ConfigMap configs;
    std::vector<std::string> nulls;
    for (const auto& [key, value] : topic.configs) {
        KAAS_TRY(check_text(key, value));
        if (value) {
            configs.insert_or_assign(key, *value);
        } else {
            nulls.push_back(key);
        }
    }
    if (!nulls.empty()) {
        return fail(
            ErrorCode::kInvalidConfig,
            fmt::format("Null value not supported for topic configs: {}", fmt::join(nulls, ",")));
    }
    if (config.topic_config_fault && !configs.empty()) {
        if (auto fault = config.topic_config_fault(configs)) {
            return fail(ErrorCode::kInvalidConfig, std::move(*fault));
        }
    }
    return configs;
}

Result<Placement> place_by_hand(const std::vector<base::BrokerId>& brokers, std::int32_t index,
                                std::optional<std::size_t> factor, const Image& image,
                                VolumeUse& use) {
    KAAS_TRY(check_replicas(brokers, factor, image));
    auto placement = lead(image, brokers, use);
    if (placement) return std::move(*placement);
    return fail(
        ErrorCode::kInvalidReplicaAssignment,
        fmt::format("All brokers specified in the manual partition assignment for partition {} are "
                    "fenced or in controlled shutdown.",
                    index));
}

Result<std::vector<Placement>> place_by_hand(const NewTopic& topic, const Image& image,
                                             VolumeUse use) {
    if (topic.replication_factor != -1) {
        return fail(ErrorCode::kInvalidRequest,
                    "A manual partition assignment was specified, but replication factor was not "
                    "set to -1.");
    }
    if (topic.partitions != -1) {
        return fail(
            ErrorCode::kInvalidRequest,
            "A manual partition assignment was specified, but numPartitions was not set to -1.");
    }
    std::map<std::int32_t, Placement> by_index;
    std::optional<std::size_t> factor;
    for (const auto& [index, brokers] : topic.assignments) {
        if (by_index.contains(index)) {
            return fail(
                ErrorCode::kInvalidReplicaAssignment,
                fmt::format("Found multiple manual partition assignments for partition {}", index));
        }
        KAAS_TRY_ASSIGN(placement, place_by_hand(brokers, index, factor, image, use));
        factor = brokers.size();
        by_index.emplace(index, std::move(placement));
    }
    std::vector<Placement> places;
    for (auto& [index, placement] : by_index) {
        if (index != static_cast<std::int32_t>(places.size())) {
            return fail(ErrorCode::kInvalidReplicaAssignment,
                        "partitions should be a consecutive 0-based integer sequence");
        }
        places.push_back(std::move(placement));
    }
    return places;
}

/// Apache `StripedReplicaPlacer`.
std::unexpected<Error> no_broker_for(std::size_t factor) {
    return fail(ErrorCode::kInvalidReplicationFactor,
                fmt::format("Unable to replicate the partition {} time(s): All brokers are "
                            "currently fenced, or have all their log directories cordoned.",
                            factor));
}

Result<std::vector<Placement>> place_new(const NewTopic& topic, const ControllerConfig& config,
                                         const Image& image) {
    VolumeUse use =
        catalog::slot_kind(topic.name) ? VolumeUse(image, config.slot_volume) : VolumeUse(image);
    if (!topic.assignments.empty()) return place_by_hand(topic, image, std::move(use));
    if (topic.replication_factor < -1 || topic.replication_factor == 0) {
        return fail(ErrorCode::kInvalidReplicationFactor,
                    "Replication factor must be larger than 0, or -1 to use the default value.");
    }
    if (topic.partitions < -1 || topic.partitions == 0) {
        return fail(ErrorCode::kInvalidPartitions,
                    "Number of partitions was set to an invalid non-positive value.");
    }
    const auto count = topic.partitions == -1 ? config.default_partitions : topic.partitions;
    const auto factor = topic.replication_factor == -1 ? config.default_replication_factor
                                                       : topic.replication_factor;
    auto places = place(image, static_cast<std::size_t>(count), static_cast<std::size_t>(factor),
                        std::move(use));
    if (!places.empty()) return places;
    return no_broker_for(static_cast<std::size_t>(factor));
}

/// What is not said of a topic of slots is as its coordinator wants it (Apache
/// `AutoTopicCreationManager`).
NewTopic with_defaults(NewTopic topic, const ControllerConfig& config) {
    const auto kind = catalog::slot_kind(topic.name);
    const auto wanted = kind ? config.slot_topics.find(*kind) : config.slot_topics.end();
    if (wanted == config.slot_topics.end() || !topic.assignments.empty()) return topic;
    const auto& [slots, factor, configs] = wanted->second;
    if (topic.partitions == -1) topic.partitions = slots;
    if (topic.replication_factor == -1) topic.replication_factor = factor;
    if (topic.configs.empty()) topic.configs.assign(configs.begin(), configs.end());
    return topic;
}

/// The same for every attempt of a request, so that a topic tells who has made it.
base::TopicId id_of_new(const Attempt& attempt, std::size_t index) {
    if (attempt.request.is_zero()) return {base::Uuid::random()};
    base::TopicId id{attempt.request};
    for (std::size_t at = id.uuid.bytes.size(); index > 0; index >>= 8) {
        id.uuid.bytes[--at] ^= static_cast<std::uint8_t>(index);
    }
    return id;
}

/// Made by an earlier attempt of this request: the answer is what that one would have said.
bool is_done(const CreateTopics& request, std::size_t index, const Image& image,
             CreatedTopic& answer) {
    const auto* topic = image.topic(request.topics[index].name);
    const auto id = id_of_new(request.attempt, index);
    if (!request.attempt.again || topic == nullptr || topic->id != id) return false;
    answer.id = id;
    answer.partitions = static_cast<std::int32_t>(topic->partitions.size());
    answer.replication_factor = static_cast<std::int16_t>(topic->partitions[0].replicas.size());
    answer.configs = topic->configs;
    return true;
}

/// Fills `answer`, which has the id, for a topic whose name is good, and makes it unless it is only
/// to be validated.
Result<void> create(const NewTopic& topic, const ControllerConfig& config, bool validate_only,
                    CreatedTopic& answer, Draft& draft) {
    KAAS_TRY_ASSIGN(configs, check_configs(topic, config));
    KAAS_TRY_ASSIGN(places, place_new(topic, config, draft.image()));
    answer.partitions = static_cast<std::int32_t>(places.size());
    answer.replication_factor = static_cast<std::int16_t>(places.front().replicas.size());
    answer.configs = configs;
    if (validate_only) return {};
    catalog::Topic made{
        .name = topic.name, .id = answer.id, .partitions = {}, .configs = configs, .unknown = {}};
    made.partitions.reserve(places.size());
    for (const auto& placement : places) made.partitions.push_back(new_partition(placement));
    draft.add(catalog::TopicCreated{std::move(made)});
    return {};
}

Result<void> grow(const GrowTopic& request, bool again, bool validate_only, Draft& draft) {
    const auto* topic = draft.image().topic(request.name);
    if (topic == nullptr) return fail(ErrorCode::kUnknownTopicOrPartition, {});
    if (catalog::slot_kind(request.name)) {
        return fail(ErrorCode::kInvalidTopic,
                    "Ids that are kept in a slot could not be found any more with another number "
                    "of slots.");
    }
    const auto present = static_cast<std::int32_t>(topic->partitions.size());
    if (request.count == present && again) return {};  // by an earlier attempt
    if (request.count == present) {
        return fail(ErrorCode::kInvalidPartitions,
                    fmt::format("Topic already has {} partition(s).", present));
    }
    if (request.count < present) {
        return fail(
            ErrorCode::kInvalidPartitions,
            fmt::format("The topic {} currently has {} partition(s); {} would not be an increase.",
                        request.name, present, request.count));
    }
    const auto more = static_cast<std::size_t>(request.count - present);
    if (request.assignments && request.assignments->size() != more) {
        return fail(
            ErrorCode::kInvalidReplicaAssignment,
            fmt::format(
                "Attempted to add {} additional partition(s), but only {} assignment(s) were "
                "specified.",
                more, request.assignments->size()));
    }
    const auto factor = topic->partitions.front().replicas.size();
    std::vector<Placement> places;
    if (request.assignments) {
        VolumeUse use(draft.image());
        for (const auto& brokers : *request.assignments) {
            const auto index = present + static_cast<std::int32_t>(places.size());
            KAAS_TRY_ASSIGN(placement, place_by_hand(brokers, index, factor, draft.image(), use));
            places.push_back(std::move(placement));
        }
    } else {
        places = place(draft.image(), more, factor, VolumeUse(draft.image()));
    }
    if (places.empty()) return no_broker_for(factor);
    if (validate_only) return {};
    catalog::PartitionsAdded change{topic->id, {}};
    for (const auto& placement : places) change.partitions.push_back(new_partition(placement));
    draft.add(std::move(change));
    return {};
}

Result<void> check_growth(const CreatePartitions& request, const Image& image) {
    std::int64_t total = 0;
    for (const auto& topic : request.topics) {
        const auto* known = image.topic(topic.name);
        if (topic.count < 0 || known == nullptr) continue;
        total += std::max<std::int64_t>(
            0, topic.count - static_cast<std::int64_t>(known->partitions.size()));
    }
    if (total <= kMaxPartitionsPerRequest) return {};
    return fail(ErrorCode::kPolicyViolation,
                "Excessively large number of additional partitions per request.");
}

/// Resolves what a DeleteTopics names; the error is the answer when it names nothing.
Result<const catalog::Topic*> find(const std::variant<std::string, base::TopicId>& wanted,
                                   const Image& image) {
    if (const auto* name = std::get_if<std::string>(&wanted)) {
        if (const auto* topic = image.topic(*name)) return topic;
        return fail(ErrorCode::kUnknownTopicOrPartition,
                    "This server does not host this topic-partition.");
    }
    if (const auto* topic = image.topic(std::get<base::TopicId>(wanted))) return topic;
    return fail(ErrorCode::kUnknownTopicId, "This server does not host this topic ID.");
}

Result<void> remove(const catalog::Topic& topic, Draft& draft) {
    if (catalog::slot_kind(topic.name)) {
        return fail(ErrorCode::kInvalidTopic, "The slots of coordinators cannot be deleted.");
    }
    draft.add(catalog::TopicDeleted{topic.id});
    return {};
}

}  // namespace

Result<void> check_replicas(const std::vector<base::BrokerId>& brokers,
                            std::optional<std::size_t> factor, const Image& image) {
    const auto bad = [](std::string why) {
        return fail(ErrorCode::kInvalidReplicaAssignment,
                    "The manual partition assignment includes " + std::move(why));
    };
    if (brokers.empty()) return bad("an empty replica list.");
    auto sorted = brokers;
    std::ranges::sort(sorted);
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        const auto* broker = image.broker(sorted[i]);
        if (broker == nullptr) {
            return bad(fmt::format("broker {}, but no such broker is registered.", sorted[i]));
        }
        if (all_cordoned(image, *broker)) {
            return bad(
                fmt::format("broker {}, but all its log directories are cordoned.", sorted[i]));
        }
        if (i > 0 && sorted[i] == sorted[i - 1]) {
            return bad(fmt::format("the broker {} more than once.", sorted[i]));
        }
    }
    if (factor && sorted.size() != *factor) {
        return bad(
            fmt::format("a partition with {} replica(s), but this is not consistent with previous "
                        "partitions, which have {} replica(s).",
                        sorted.size(), *factor));
    }
    return {};
}

Result<std::vector<CreatedTopic>> plan(const CreateTopics& request, const ControllerConfig& config,
                                       Draft& draft) {
    KAAS_TRY(check_total(request, config));
    const auto twice = duplicates(request.topics, [](const NewTopic& topic) { return topic.name; });
    std::vector<CreatedTopic> answers;
    std::vector<const NewTopic*> good;
    // Names are checked against what stood before the request, as Apache does: two new names of one
    // request may collide with each other.
    for (std::size_t i = 0; i < request.topics.size(); ++i) {
        const auto& topic = request.topics[i];
        if (twice.contains(topic.name)) continue;
        auto& answer = answers.emplace_back();
        answer.name = topic.name;
        const bool done = is_done(request, i, draft.image(), answer);
        if (!done) answer.outcome = check_name(topic.name, draft.image());
        answer.id = id_of_new(request.attempt, i);
        good.push_back(!done && answer.outcome ? &topic : nullptr);
    }
    for (std::size_t i = 0; i < good.size(); ++i) {
        if (good[i] == nullptr) continue;
        answers[i].outcome = create(with_defaults(*good[i], config), config, request.validate_only,
                                    answers[i], draft);
    }
    for (const auto& name : twice) {
        auto& answer = answers.emplace_back();
        answer.name = name;
        answer.outcome = fail(ErrorCode::kInvalidRequest, "Duplicate topic name.");
    }
    return answers;
}

std::vector<DeletedTopic> plan(const DeleteTopics& request, Draft& draft) {
    std::map<std::variant<std::string, base::TopicId>, int> asked;
    for (const auto& wanted : request.topics) ++asked[wanted];
    std::vector<DeletedTopic> answers;
    std::set<base::TopicId> ids_asked;
    for (const auto& [wanted, times] : asked) {
        if (const auto* id = std::get_if<base::TopicId>(&wanted)) ids_asked.insert(*id);
    }
    std::set<base::TopicId> named_twice;
    for (const auto& [wanted, times] : asked) {
        const auto* name = std::get_if<std::string>(&wanted);
        const auto* topic = name == nullptr ? nullptr : draft.image().topic(*name);
        if (topic != nullptr && ids_asked.contains(topic->id)) named_twice.insert(topic->id);
    }
    for (const auto& [wanted, times] : asked) {
        const auto* name = std::get_if<std::string>(&wanted);
        const auto* id = std::get_if<base::TopicId>(&wanted);
        DeletedTopic answer{.name = name == nullptr ? std::nullopt : std::optional(*name),
                            .id = id == nullptr ? base::TopicId{} : *id,
                            .outcome = {}};
        auto found = find(wanted, draft.image());
        if (times > 1) {
            answer.outcome =
                fail(ErrorCode::kInvalidRequest,
                     name != nullptr ? "Duplicate topic name." : "Duplicate topic id.");
        } else if (!found && request.attempt.again) {
            // By an earlier attempt, or it never was: gone it is.
        } else if (!found) {
            answer.outcome = std::unexpected(std::move(found).error());
        } else if (named_twice.contains((*found)->id)) {
            if (name == nullptr) continue;  // one answer for both
            answer.id = (*found)->id;
            answer.outcome =
                fail(ErrorCode::kInvalidRequest,
                     "The provided topic name maps to an ID that was already supplied.");
        } else {
            answer.name = (*found)->name;
            answer.id = (*found)->id;
            answer.outcome = remove(**found, draft);
        }
        answers.push_back(std::move(answer));
    }
    return answers;
}

Result<std::vector<GrownTopic>> plan(const CreatePartitions& request, Draft& draft) {
    KAAS_TRY(check_growth(request, draft.image()));
    const auto twice =
        duplicates(request.topics, [](const GrowTopic& topic) { return topic.name; });
    std::vector<GrownTopic> answers;
    for (const auto& name : twice) {
        answers.push_back({name, fail(ErrorCode::kInvalidRequest, "Duplicate topic name.")});
    }
    for (const auto& topic : request.topics) {
        if (twice.contains(topic.name)) continue;
        answers.push_back(
            {topic.name, grow(topic, request.attempt.again, request.validate_only, draft)});
    }
    return answers;
}

Result<void> plan(const AlterConfigs& request, const ControllerConfig& config, Draft& draft) {
    catalog::ConfigsChanged change{{}, request.values};
    catalog::ConfigMap after;
    const auto* name = std::get_if<std::string>(&request.resource);
    if (name != nullptr) {
        const auto* topic = draft.image().topic(*name);
        if (topic == nullptr) {
            return fail(ErrorCode::kUnknownTopicOrPartition,
                        fmt::format("The topic '{}' does not exist.", *name));
        }
        change.resource = topic->id;
        after = topic->configs;
    } else {
        change.resource = std::get<base::BrokerId>(request.resource);
    }
    for (const auto& [key, value] : request.values) {
        KAAS_TRY(check_text(key, value));
        if (value) {
            after.insert_or_assign(key, *value);
        } else {
            after.erase(key);
        }
    }
    if (name != nullptr && config.topic_config_fault) {
        if (auto fault = config.topic_config_fault(after)) {
            return fail(ErrorCode::kInvalidConfig, std::move(*fault));
        }
    }
    if (!request.validate_only) draft.add(std::move(change));
    return {};
}

}  // namespace kaas::cluster
