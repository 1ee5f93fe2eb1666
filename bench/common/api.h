#pragma once

#include <cstdint>

namespace kaas::bench {

enum class Api : int16_t {
    kProduce = 0,
    kFetch = 1,
    kMetadata = 3,
    kOffsetCommit = 8,
    kFindCoordinator = 10,
    kJoinGroup = 11,
    kHeartbeat = 12,
    kLeaveGroup = 13,
    kSyncGroup = 14,
    kApiVersions = 18,
    kCreateTopics = 19,
    kDeleteTopics = 20,
    kInitProducerId = 22,
    kEndTxn = 26,
};

/// Versions that Apache 4.4 and kaas both serve. Topics are named by id where they may be, as
/// the 4.4 Java client does.
inline constexpr int16_t kProduceVersion = 13;
inline constexpr int16_t kFetchVersion = 17;
inline constexpr int16_t kMetadataVersion = 12;
inline constexpr int16_t kApiVersionsVersion = 3;
inline constexpr int16_t kCreateTopicsVersion = 7;
inline constexpr int16_t kDeleteTopicsVersion = 6;
inline constexpr int16_t kOffsetCommitVersion = 10;
inline constexpr int16_t kFindCoordinatorVersion = 4;
inline constexpr int16_t kJoinGroupVersion = 9;
inline constexpr int16_t kHeartbeatVersion = 4;
inline constexpr int16_t kLeaveGroupVersion = 5;
inline constexpr int16_t kSyncGroupVersion = 5;
inline constexpr int16_t kInitProducerIdVersion = 5;
/// The one with which every completion bumps the epoch (KIP-890).
inline constexpr int16_t kEndTxnVersion = 5;

}  // namespace kaas::bench
