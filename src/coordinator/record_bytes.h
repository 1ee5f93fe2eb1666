#pragma once

#include "coordinator/group.h"
#include "coordinator/group_journal.h"
#include "coordinator/group_requests.h"

#include <cstddef>
#include <string_view>
#include <vector>

/// How large the records would be that Apache writes to `__consumer_offsets`, in a batch of their
/// own: its `max.message.bytes` limits what a group may have kept at once, there and here. Exact
/// to a few bytes.
namespace kaas::coordinator {

/// Apache `GroupMetadataValue`, version 3.
[[nodiscard]] std::size_t group_record_bytes(const Group& group, const Assignments& assignments);
/// Apache `OffsetCommitValue`, version 4, one for each partition.
[[nodiscard]] std::size_t commit_record_bytes(std::string_view group_id,
                                              const std::vector<CommitTopic>& topics);

/// What a request wants kept, at least: such sums are cheap, and go before all work.
[[nodiscard]] std::size_t bytes_of(const std::vector<MemberProtocol>& protocols);
[[nodiscard]] std::size_t bytes_of(const std::vector<SyncGroupRequest::Assignment>& assignments);

}  // namespace kaas::coordinator
