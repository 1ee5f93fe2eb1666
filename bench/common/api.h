#pragma once

#include <cstdint>

namespace kaas::bench {

enum class Api : int16_t {
    kProduce = 0,
    kFetch = 1,
    kMetadata = 3,
    kApiVersions = 18,
    kCreateTopics = 19,
    kDeleteTopics = 20,
};

/// Versions that Apache 4.4 and kaas both serve. Produce and Fetch name topics by id, as the 4.4
/// Java client does.
inline constexpr int16_t kProduceVersion = 13;
inline constexpr int16_t kFetchVersion = 17;
inline constexpr int16_t kMetadataVersion = 12;
inline constexpr int16_t kApiVersionsVersion = 3;
inline constexpr int16_t kCreateTopicsVersion = 7;
inline constexpr int16_t kDeleteTopicsVersion = 6;

}  // namespace kaas::bench
