#pragma once

#include "common/bytes.h"
#include "load/messages.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kaas::bench {

// Error codes that are no failure here (Apache: Errors).
inline constexpr int16_t kCoordinatorLoadInProgress = 14;
inline constexpr int16_t kCoordinatorNotAvailable = 15;
inline constexpr int16_t kNotCoordinator = 16;
inline constexpr int16_t kUnknownMemberId = 25;
inline constexpr int16_t kRebalanceInProgress = 27;
inline constexpr int16_t kConcurrentTransactions = 51;
inline constexpr int16_t kMemberIdRequired = 79;

/// Whether asking again may help.
[[nodiscard]] constexpr bool coordinator_is_coming(int16_t error) {
    return error == kCoordinatorLoadInProgress || error == kCoordinatorNotAvailable ||
           error == kNotCoordinator;
}

enum class CoordinatorKind : int8_t { kGroup = 0, kTransaction = 1 };

/// A member of a group as its requests name it.
struct Membership {
    std::string group;
    int32_t generation = -1;
    std::string id;
};

// Whole frames, as in messages.h.
std::string find_coordinator_request(std::string_view key, CoordinatorKind kind);
/// Commits `offset` for partitions 0 to `partitions` - 1, as no member of the group.
std::string offset_commit_request(const Topic& topic, std::string_view group, int partitions,
                                  int64_t offset);
std::string join_group_request(const Membership& member, std::string_view metadata);
/// `assignments`: member ids; each is given `assignment`.
std::string sync_group_request(const Membership& member, const std::vector<std::string>& members,
                               std::string_view assignment);
std::string heartbeat_request(const Membership& member);
std::string leave_group_request(const Membership& member);
std::string init_producer_id_request(std::string_view transactional_id);
std::string commit_transaction_request(std::string_view transactional_id, int64_t producer_id,
                                       int16_t producer_epoch);

// Answers as in messages.h.
std::optional<int16_t> read_find_coordinator(Reader& reader);
std::optional<int16_t> read_offset_commit(Reader& reader);
/// SyncGroup, Heartbeat: no more than the error is wanted.
std::optional<int16_t> read_throttle_and_error(Reader& reader);

struct JoinAnswer {
    int16_t error = 0;
    int32_t generation = -1;
    std::string leader;
    std::string member;
    std::vector<std::string> members;  // for the leader alone
};
std::optional<JoinAnswer> read_join_group(Reader& reader);

/// What InitProducerId and EndTxn say.
struct ProducerAnswer {
    int16_t error = 0;
    int64_t producer_id = -1;
    int16_t producer_epoch = -1;
};
std::optional<ProducerAnswer> read_producer(Reader& reader);

}  // namespace kaas::bench
