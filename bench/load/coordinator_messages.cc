#include "load/coordinator_messages.h"

#include "common/api.h"
#include "common/bytes.h"
#include "load/frame.h"
#include "load/messages.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kaas::bench {
namespace {

constexpr std::string_view kProtocolType = "consumer";
constexpr std::string_view kProtocol = "cooperative-sticky";
constexpr int32_t kSessionMs = 45'000;
constexpr int32_t kRebalanceMs = 300'000;
constexpr int32_t kTransactionMs = 60'000;

}  // namespace

std::string find_coordinator_request(std::string_view key, CoordinatorKind kind) {
    auto frame = begin_frame(Api::kFindCoordinator, kFindCoordinatorVersion);
    frame.i8(static_cast<int8_t>(kind));
    frame.array(1);
    frame.compact_string(key);
    frame.no_tags();
    return finish_frame(frame);
}

std::string offset_commit_request(const Topic& topic, std::string_view group, int partitions,
                                  int64_t offset) {
    auto frame = begin_frame(Api::kOffsetCommit, kOffsetCommitVersion);
    frame.compact_string(group);
    frame.i32(-1);  // no member: no generation,
    frame.compact_string("");
    frame.null();
    frame.array(1);
    frame.id(topic.id);
    frame.array(static_cast<size_t>(partitions));
    for (int partition = 0; partition < partitions; ++partition) {
        frame.i32(partition);
        frame.i64(offset);
        frame.i32(-1);  // leader epoch
        frame.compact_string("");
        frame.no_tags();
    }
    frame.no_tags();
    frame.no_tags();
    return finish_frame(frame);
}

std::string join_group_request(const Membership& member, std::string_view metadata) {
    auto frame = begin_frame(Api::kJoinGroup, kJoinGroupVersion);
    frame.compact_string(member.group);
    frame.i32(kSessionMs);
    frame.i32(kRebalanceMs);
    frame.compact_string(member.id);
    frame.null();  // instance id
    frame.compact_string(kProtocolType);
    frame.array(1);
    frame.compact_string(kProtocol);
    frame.compact_string(metadata);
    frame.no_tags();
    frame.null();  // reason
    frame.no_tags();
    return finish_frame(frame);
}

std::string sync_group_request(const Membership& member, const std::vector<std::string>& members,
                               std::string_view assignment) {
    auto frame = begin_frame(Api::kSyncGroup, kSyncGroupVersion);
    frame.compact_string(member.group);
    frame.i32(member.generation);
    frame.compact_string(member.id);
    frame.null();
    frame.compact_string(kProtocolType);
    frame.compact_string(kProtocol);
    frame.array(members.size());
    for (const auto& id : members) {
        frame.compact_string(id);
        frame.compact_string(assignment);
        frame.no_tags();
    }
    frame.no_tags();
    return finish_frame(frame);
}

std::string heartbeat_request(const Membership& member) {
    auto frame = begin_frame(Api::kHeartbeat, kHeartbeatVersion);
    frame.compact_string(member.group);
    frame.i32(member.generation);
    frame.compact_string(member.id);
    frame.null();
    frame.no_tags();
    return finish_frame(frame);
}

std::string leave_group_request(const Membership& member) {
    auto frame = begin_frame(Api::kLeaveGroup, kLeaveGroupVersion);
    frame.compact_string(member.group);
    frame.array(1);
    frame.compact_string(member.id);
    frame.null();
    frame.null();
    frame.no_tags();
    frame.no_tags();
    return finish_frame(frame);
}

std::string init_producer_id_request(std::string_view transactional_id) {
    auto frame = begin_frame(Api::kInitProducerId, kInitProducerIdVersion);
    frame.compact_string(transactional_id);
    frame.i32(kTransactionMs);
    frame.i64(-1);
    frame.i16(-1);
    frame.no_tags();
    return finish_frame(frame);
}

std::string commit_transaction_request(std::string_view transactional_id, int64_t producer_id,
                                       int16_t producer_epoch) {
    auto frame = begin_frame(Api::kEndTxn, kEndTxnVersion);
    frame.compact_string(transactional_id);
    frame.i64(producer_id);
    frame.i16(producer_epoch);
    frame.i8(1);
    frame.no_tags();
    return finish_frame(frame);
}

std::optional<int16_t> read_find_coordinator(Reader& reader) {
    reader.i32();  // throttle
    if (reader.array() != 1) return std::nullopt;
    reader.compact_string();
    reader.i32();
    reader.compact_string();
    reader.i32();
    const auto error = reader.i16();
    if (!reader.ok()) return std::nullopt;
    return error;
}

std::optional<int16_t> read_offset_commit(Reader& reader) {
    int16_t error = 0;
    reader.i32();  // throttle
    for (auto topics = reader.array(); topics > 0 && reader.ok(); --topics) {
        reader.id();
        for (auto partitions = reader.array(); partitions > 0 && reader.ok(); --partitions) {
            reader.i32();
            const auto found = reader.i16();
            if (error == 0) error = found;
            reader.skip_tags();
        }
        reader.skip_tags();
    }
    reader.skip_tags();
    if (!reader.ok()) return std::nullopt;
    return error;
}

std::optional<int16_t> read_throttle_and_error(Reader& reader) {
    reader.i32();
    const auto error = reader.i16();
    if (!reader.ok()) return std::nullopt;
    return error;
}

std::optional<JoinAnswer> read_join_group(Reader& reader) {
    JoinAnswer answer;
    reader.i32();  // throttle
    answer.error = reader.i16();
    answer.generation = reader.i32();
    reader.compact_string();
    reader.compact_string();
    answer.leader = reader.compact_string();
    reader.i8();  // skip assignment
    answer.member = reader.compact_string();
    for (auto members = reader.array(); members > 0 && reader.ok(); --members) {
        answer.members.emplace_back(reader.compact_string());
        reader.compact_string();
        reader.compact_string();
        reader.skip_tags();
    }
    reader.skip_tags();
    if (!reader.ok()) return std::nullopt;
    return answer;
}

std::optional<ProducerAnswer> read_producer(Reader& reader) {
    ProducerAnswer answer;
    reader.i32();  // throttle
    answer.error = reader.i16();
    answer.producer_id = reader.i64();
    answer.producer_epoch = reader.i16();
    if (!reader.ok()) return std::nullopt;
    return answer;
}

}  // namespace kaas::bench
