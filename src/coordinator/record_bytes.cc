#include "coordinator/record_bytes.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kaas::coordinator {
namespace {

constexpr std::size_t kBatchHeader = 61;
/// Its own length, attributes, deltas, lengths of key and value, count of headers.
constexpr std::size_t kRecordFrame = 10;

std::size_t string_bytes(std::size_t length) { return 2 + length; }
std::size_t string_bytes(const std::optional<std::string>& text) {
    return string_bytes(text ? text->size() : 0);
}

}  // namespace

std::size_t group_record_bytes(const Group& group, const Assignments& assignments) {
    const auto protocol = group.protocol_name().value_or("");
    std::size_t bytes = kBatchHeader + kRecordFrame + 2 + string_bytes(group.id().size());
    bytes += 2 + string_bytes(group.protocol_type()) + 4 + string_bytes(group.protocol_name()) +
             string_bytes(group.leader()) + 8 + 4;
    for (const auto& [id, member] : group.members()) {
        const auto assignment = assignments.find(id);
        bytes += string_bytes(id.size()) + string_bytes(member.identity.group_instance_id) +
                 string_bytes(member.client_id.size()) + string_bytes(member.client_host.size()) +
                 4 + 4 + 4 + member.metadata(protocol).size() + 4 +
                 (assignment == assignments.end() ? 0 : assignment->second.size());
    }
    return bytes;
}

std::size_t commit_record_bytes(std::string_view group_id, const std::vector<CommitTopic>& topics) {
    constexpr std::size_t kPartition = 4;
    constexpr std::size_t kValue = 2 + 8 + 4 + 1 + 8 + 1 + 18;
    std::size_t bytes = kBatchHeader;
    for (const auto& topic : topics) {
        const auto each = kRecordFrame + 2 + string_bytes(group_id.size()) +
                          string_bytes(topic.name.size()) + kPartition + kValue;
        bytes += each * topic.partitions.size();
        for (const auto& partition : topic.partitions) {
            if (partition.metadata) bytes += partition.metadata->size();
        }
    }
    return bytes;
}

std::size_t bytes_of(const std::vector<MemberProtocol>& protocols) {
    std::size_t bytes = 0;
    for (const auto& one : protocols)
        bytes += string_bytes(one.name.size()) + 4 + one.metadata.size();
    return bytes;
}

std::size_t bytes_of(const std::vector<SyncGroupRequest::Assignment>& assignments) {
    std::size_t bytes = 0;
    for (const auto& one : assignments)
        bytes += string_bytes(one.member_id.size()) + 4 + one.assignment.size();
    return bytes;
}

}  // namespace kaas::coordinator
