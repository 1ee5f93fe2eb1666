// What a group slot does with offsets.

#include "base/ids.h"
#include "base/log.h"
#include "base/result.h"
#include "coordinator/group.h"
#include "coordinator/group_journal.h"
#include "coordinator/group_offsets.h"
#include "coordinator/group_requests.h"
#include "coordinator/group_slot.h"
#include "coordinator/record_bytes.h"
#include "coordinator/slot_writer.h"
#include "storage/producer_state.h"
#include "storage/transaction_marker.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace kaas::coordinator {
namespace {

/// From these versions on a client knows that a group may not be (OffsetCommit, TxnOffsetCommit).
constexpr std::int16_t kKnowsNoGroupFrom = 9;
constexpr std::int16_t kTransactionKnowsNoGroupFrom = 6;

/// How Java counts a string: `offset.metadata.max.bytes` is compared with that.
std::size_t utf16_length(std::string_view utf8) {
    std::size_t length = 0;
    for (const char c : utf8) {
        const auto byte = static_cast<unsigned char>(c);
        const bool continues = (byte & 0xC0U) == 0x80U;
        const bool is_pair = byte >= 0xF0U;
        length += continues ? 0 : is_pair ? 2 : 1;
    }
    return length;
}

/// As Java adds and subtracts: times come from clients and from journals.
std::int64_t plus(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t minus(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

OffsetCommitAnswer with_error(OffsetCommitAnswer answer, ErrorCode error) {
    for (auto& topic : answer.topics) {
        for (auto& partition : topic.partitions) partition.error = error;
    }
    return answer;
}

}  // namespace

void GroupSlot::put(Group& group, std::string_view topic, base::PartitionId partition,
                    OffsetEntry entry) {
    if (!group.offsets.put(topic, partition, std::move(entry))) return;
    ++offsets_;
    metrics_.offsets.add(1);
}

void GroupSlot::remove_offset(Group& group, std::string_view topic, base::PartitionId partition) {
    if (!group.offsets.remove(topic, partition)) return;
    --offsets_;
    metrics_.offsets.add(-1);
}

ErrorCode GroupSlot::check_committer(Group& group, const MemberIdentity& member,
                                     std::int32_t generation, bool in_transaction) const {
    if (generation < 0 && group.is(GroupState::kEmpty)) return ErrorCode::kNone;
    const bool names_member =
        generation >= 0 || !member.member_id.empty() || member.group_instance_id;
    if (names_member) {
        if (const auto error = group.check_member(member); error != ErrorCode::kNone) return error;
        if (generation != group.generation()) return ErrorCode::kIllegalGeneration;
    } else if (!in_transaction && !group.is(GroupState::kEmpty)) {
        return ErrorCode::kUnknownMemberId;
    }
    // Whoever commits now may be about to lose the partition; a transaction has its own fence.
    return !in_transaction && group.is(GroupState::kCompletingRebalance)
               ? ErrorCode::kRebalanceInProgress
               : ErrorCode::kNone;
}

ErrorCode GroupSlot::check_commit(Group* group, const OffsetCommitRequest& request) const {
    auto error = ErrorCode::kNone;
    if (group != nullptr) {
        error = check_committer(*group, request.member, request.generation, false);
    } else if (request.generation >= 0) {
        error = request.version >= kKnowsNoGroupFrom ? ErrorCode::kGroupIdNotFound
                                                     : ErrorCode::kIllegalGeneration;
    }
    return error == ErrorCode::kNone ? check_size(request.group_id, request.topics) : error;
}

ErrorCode GroupSlot::check_size(const std::string& group_id,
                                const std::vector<CommitTopic>& topics) const {
    if (commit_record_bytes(group_id, topics) <= config_.record_max_bytes) return ErrorCode::kNone;
    base::log::warn("groups",
                    "group '{}': a commit is refused, it is larger than max.message.bytes of "
                    "__consumer_offsets",
                    group_id);
    return ErrorCode::kUnknownServerError;
}

ErrorCode GroupSlot::check_commit(Group* group, const TxnOffsetCommitRequest& request) {
    auto error = ErrorCode::kNone;
    if (group != nullptr) {
        error = check_committer(*group, request.member, request.generation, true);
    } else if (request.generation >= 0) {
        error = request.version >= kTransactionKnowsNoGroupFrom ? ErrorCode::kGroupIdNotFound
                                                                : ErrorCode::kIllegalGeneration;
    }
    if (error == ErrorCode::kNone) error = check_size(request.group_id, request.topics);
    if (error != ErrorCode::kNone) return error;
    std::optional<storage::VerificationGuard> shown;
    if (const auto& verified = request.verification) {
        // What it was verified against was another state, perhaps one that a failed log has lost.
        if (verified->leadership != leadership_) return ErrorCode::kNotCoordinator;
        shown = verified->guard.value_or(storage::VerificationGuard{});
    }
    return producers_.check_commit(request.producer_id, request.producer_epoch, shown);
}

void GroupSlot::commit(OffsetCommitRequest request, Done<OffsetCommitAnswer> done) {
    auto* group = groups_.find(request.group_id);
    const auto error = check_commit(group, request);
    auto answer = all_with(request.topics, error);
    if (error != ErrorCode::kNone) {
        done(std::move(answer));
        return;
    }
    if (group != nullptr) {
        auto* member = group->find(request.member.member_id);
        const bool counts =
            group->is(GroupState::kStable) || group->is(GroupState::kPreparingRebalance);
        if (member != nullptr && counts) classic_.touch(*group, *member);
    }
    const auto now = clock_.wall_ms();
    CommitHead head{.committed_ms = now};
    if (request.retention) head.expires_ms = plus(now, request.retention->count());
    write(head, request.group_id, request.topics, answer,
          [&](std::string_view topic, base::PartitionId partition, OffsetEntry entry) {
              // A group of offsets alone begins with its first one.
              if (group == nullptr) group = &groups_.find_or_create(request.group_id);
              put(*group, topic, partition, std::move(entry));
          });
    auto lost = with_error(answer, ErrorCode::kNotCoordinator);
    answer_settled(writer_, std::move(done), std::move(answer), std::move(lost));
}

void GroupSlot::write(const CommitHead& head, const std::string& group_id,
                      std::vector<CommitTopic>& topics, OffsetCommitAnswer& answer,
                      const SeeOffset& see) {
    CommitText line(head, group_id);
    std::size_t count = 0;
    for (std::size_t i = 0; i < topics.size(); ++i) {
        auto& topic = topics[i];
        line.topic(topic.name, topic.id);
        for (std::size_t j = 0; j < topic.partitions.size(); ++j) {
            auto& [partition, offset, leader_epoch, metadata] = topic.partitions[j];
            if (metadata && utf16_length(*metadata) > config_.offset_metadata_max_bytes) {
                answer.topics[i].partitions[j].error = ErrorCode::kOffsetMetadataTooLarge;
                continue;
            }
            auto text = std::move(metadata).value_or("");
            line.partition(partition, offset, leader_epoch, text);
            see(topic.name, partition,
                {.offset = offset,
                 .leader_epoch = leader_epoch,
                 .committed_ms = head.committed_ms,
                 .expires_ms = head.expires_ms,
                 .topic_id = topic.id,
                 .metadata = std::move(text)});
            ++count;
        }
    }
    if (line.empty()) return;
    metrics_.offset_commits.add(count);
    writer_.append(line.take());
}

std::expected<CommitVerification, ErrorCode> GroupSlot::begin_verification(
    base::ProducerId producer, base::ProducerEpoch epoch) {
    KAAS_TRY_ASSIGN(begun, producers_.begin_verification(producer, epoch, clock_.wall_ms()));
    const auto* guard = std::get_if<storage::VerificationGuard>(&begun);
    return CommitVerification{guard == nullptr ? std::nullopt : std::optional(*guard), leadership_};
}

void GroupSlot::commit_in_transaction(TxnOffsetCommitRequest request,
                                      Done<OffsetCommitAnswer> done) {
    auto* group = groups_.find(request.group_id);
    const auto error = check_commit(group, request);
    auto answer = all_with(request.topics, error);
    if (error != ErrorCode::kNone) {
        done(std::move(answer));
        return;
    }
    const auto now = clock_.wall_ms();
    const CommitHead head{.committed_ms = now,
                          .producer = request.producer_id,
                          .producer_epoch = request.producer_epoch};
    write(head, request.group_id, request.topics, answer,
          [&](std::string_view topic, base::PartitionId partition, OffsetEntry entry) {
              if (group == nullptr) group = &groups_.find_or_create(request.group_id);
              group->offsets.put_pending(topic, partition, {request.producer_id, std::move(entry)});
              producers_.committed(request.producer_id, request.producer_epoch, group->id(), now);
          });
    auto lost = with_error(answer, ErrorCode::kNotCoordinator);
    answer_settled(writer_, std::move(done), std::move(answer), std::move(lost));
}

void GroupSlot::end_transaction(const storage::Marker& marker, Done<ErrorCode> done) {
    if (const auto error = producers_.check_marker(marker); error != ErrorCode::kNone) {
        done(error);
        return;
    }
    if (!producers_.knows(marker)) {
        const auto now = clock_.wall_ms();
        end(marker, now);
        writer_.append(transaction_ended_line(marker, now));
    }
    answer_settled(writer_, std::move(done), ErrorCode::kNone, ErrorCode::kNotCoordinator);
}

void GroupSlot::end(const storage::Marker& marker, std::int64_t now_ms) {
    for (const auto& id : producers_.ended(marker, now_ms)) {
        auto* group = groups_.find(id);
        if (group == nullptr) continue;
        const auto added =
            static_cast<std::int64_t>(group->offsets.end(marker.producer, marker.commit));
        offsets_ += added;
        metrics_.offsets.add(added);
    }
}

void GroupSlot::fetch(OffsetFetchRequest request, Done<OffsetFetchAnswer> done) {
    const auto* group = groups_.find(request.group_id);
    OffsetFetchAnswer answer;
    if (request.topics) {
        for (const auto& topic : *request.topics) {
            answer.topics.push_back(fetch_topic(group, request.require_stable, topic));
        }
    } else if (group != nullptr) {
        answer.topics = fetch_all(*group, request.require_stable);
    }
    answer_settled(writer_, std::move(done), std::move(answer),
                   {.error = ErrorCode::kNotCoordinator});
}

namespace {

FetchedOffset fetched(const Group& group, const std::string& topic, base::PartitionId partition,
                      const OffsetEntry* entry, bool require_stable) {
    if (require_stable && group.offsets.has_pending(topic, partition)) {
        return {.partition = partition, .error = ErrorCode::kUnstableOffsetCommit};
    }
    if (entry == nullptr) return {.partition = partition};
    return {.partition = partition,
            .offset = entry->offset,
            .leader_epoch = entry->leader_epoch,
            .metadata = entry->metadata};
}

}  // namespace

OffsetFetchAnswer::Topic GroupSlot::fetch_topic(const Group* group, bool require_stable,
                                                const OffsetFetchRequest::Topic& asked) {
    OffsetFetchAnswer::Topic topic{asked.id, asked.name, {}};
    for (const auto partition : asked.partitions) {
        if (group == nullptr) {
            topic.partitions.push_back({.partition = partition});
            continue;
        }
        const auto* entry = group->offsets.find(asked.name, partition);
        // Of another topic that had the name before.
        const bool is_other = entry != nullptr && !entry->topic_id.uuid.is_zero() &&
                              !asked.id.uuid.is_zero() && entry->topic_id != asked.id;
        topic.partitions.push_back(
            fetched(*group, asked.name, partition, is_other ? nullptr : entry, require_stable));
    }
    return topic;
}

std::vector<OffsetFetchAnswer::Topic> GroupSlot::fetch_all(const Group& group,
                                                           bool require_stable) {
    std::vector<OffsetFetchAnswer::Topic> topics;
    for (const auto& [name, partitions] : group.offsets.committed()) {
        auto& topic = topics.emplace_back(OffsetFetchAnswer::Topic{{}, name, {}});
        for (const auto& [partition, entry] : partitions) {
            topic.partitions.push_back(fetched(group, name, partition, &entry, require_stable));
        }
    }
    return topics;
}

void GroupSlot::delete_offsets(OffsetDeleteRequest request, Done<OffsetDeleteAnswer> done) {
    auto* group = groups_.find(request.group_id);
    auto error = ErrorCode::kNone;
    if (group == nullptr) {
        error = ErrorCode::kGroupIdNotFound;
    } else if (!group->is(GroupState::kEmpty) && !group->uses_consumer_protocol()) {
        // Nobody can tell what its members read.
        error = ErrorCode::kNonEmptyGroup;
    }
    if (error != ErrorCode::kNone) {
        done({.error = error});
        return;
    }
    OffsetDeleteAnswer answer;
    Places places;
    for (auto& topic : request.topics) {
        auto& outcome = answer.topics.emplace_back(TopicOutcome{{}, topic.name, {}});
        const bool is_subscribed = group->is_subscribed_to(topic.name);
        for (const auto partition : topic.partitions) {
            outcome.partitions.push_back(
                {partition, is_subscribed ? ErrorCode::kGroupSubscribedToTopic : ErrorCode::kNone});
            const bool is_kept = group->offsets.find(topic.name, partition) != nullptr ||
                                 group->offsets.has_pending(topic.name, partition);
            if (!is_subscribed && is_kept) places.emplace(topic.name, partition);
        }
    }
    metrics_.deleted_offsets.add(places.size());
    remove(*group, places);
    answer_settled(writer_, std::move(done), std::move(answer),
                   {.error = ErrorCode::kNotCoordinator});
}

void GroupSlot::remove(Group& group, const Places& places) {
    DeletionLine line(group.id());
    std::string_view topic;
    for (const auto& [name, partition] : places) {
        if (line.empty() || topic != name) line.topic(topic = name);
        line.partition(partition);
        remove_offset(group, name, partition);
    }
    if (!line.empty()) writer_.append(line.take());
}

bool GroupSlot::expire_offsets(Group& group) {
    const auto now = clock_.wall_ms();
    // Offsets of a group with members live as long as somebody may read the topic: Apache
    // `ClassicGroup.offsetExpirationCondition`, KIP-211.
    const bool is_empty = group.is(GroupState::kEmpty);
    const bool may_expire =
        !group.protocol_type() || is_empty ||
        (group.uses_consumer_protocol() && group.subscribed() && group.is(GroupState::kStable));
    if (group.offsets.committed().empty()) return group.offsets.empty();
    if (!may_expire) return false;
    const auto expired = [&](const OffsetEntry& entry) {
        if (entry.expires_ms) return now >= *entry.expires_ms;
        const bool by_group = group.protocol_type() && is_empty;
        const auto since =
            by_group ? group.since_ms().value_or(entry.committed_ms) : entry.committed_ms;
        return minus(now, since) >= config_.offsets_retention.count();
    };
    Places places;
    for (const auto& [topic, partitions] : group.offsets.committed()) {
        if (group.is_subscribed_to(topic)) continue;
        for (const auto& [partition, entry] : partitions) {
            if (expired(entry) && !group.offsets.has_pending(topic, partition)) {
                places.emplace(topic, partition);
            }
        }
    }
    metrics_.expired_offsets.add(places.size());
    remove(group, places);
    return group.offsets.empty();
}

void GroupSlot::topics_deleted(const std::vector<DeletedTopic>& topics) {
    const auto goes = [&](const std::string& topic, const OffsetEntry& entry) {
        return std::ranges::any_of(topics, [&](const DeletedTopic& gone) {
            return gone.name == topic &&
                   (entry.topic_id == gone.id || entry.topic_id.uuid.is_zero());
        });
    };
    sweep(goes);
}

void GroupSlot::keep_topics(const std::function<bool(const base::TopicId&)>& exists) {
    sweep([&](const std::string& /*topic*/, const OffsetEntry& entry) {
        return !entry.topic_id.uuid.is_zero() && !exists(entry.topic_id);
    });
}

void GroupSlot::sweep(
    const std::function<bool(const std::string& topic, const OffsetEntry& entry)>& goes) {
    for (const auto& [id, group] : groups_) {
        Places places;
        for (const auto& [topic, partitions] : group->offsets.committed()) {
            for (const auto& [partition, entry] : partitions) {
                if (goes(topic, entry)) places.emplace(topic, partition);
            }
        }
        for (const auto& [topic, partitions] : group->offsets.pending()) {
            for (const auto& [partition, waiting] : partitions) {
                const bool one_goes =
                    std::ranges::any_of(waiting, [&](const GroupOffsets::Pending& pending) {
                        return goes(topic, pending.entry);
                    });
                if (one_goes) places.emplace(topic, partition);
            }
        }
        remove(*group, places);
    }
}

void GroupSlot::visit_offsets(const std::function<bool(const CommittedOffset&)>& visit) const {
    for (const auto& [id, group] : groups_) {
        for (const auto& [topic, partitions] : group->offsets.committed()) {
            for (const auto& [partition, entry] : partitions) {
                if (!visit({id, topic, entry.topic_id, partition, entry.offset})) return;
            }
        }
    }
}

}  // namespace kaas::coordinator
