#pragma once

#include "common/api.h"
#include "common/bytes.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kaas::bench {

/// Bytes of a frame up to and with the correlation id: the part that differs from one sending of a
/// pre-encoded request to the next.
inline constexpr size_t kFramePrefix = 12;

struct Topic {
    std::string name;
    TopicId id{};
    int partitions = 0;
};

/// A batch and the partition it goes to.
struct Placement {
    int partition;
    std::string_view batch;
};

/// A position in a partition.
struct Position {
    int partition;
    int64_t offset;
};

struct FetchLimits {
    int max_wait_ms = 500;
    int min_bytes = 1;
    int partition_max_bytes = 1 << 20;
};

// Whole frames, size field included, correlation id zero.
std::string api_versions_request();
std::string metadata_request(const std::vector<std::string>& topics);
std::string create_topic_request(std::string_view topic, int partitions);
std::string delete_topic_request(std::string_view topic);
std::string produce_request(const Topic& topic, int acks, const std::vector<Placement>& batches,
                            std::string_view transactional_id = {});
std::string fetch_request(const Topic& topic, const std::vector<Position>& positions,
                          const FetchLimits& limits);

/// Where in a fetch request frame the offset of the n-th position stands.
size_t fetch_offset_at(const std::string& frame, size_t position, size_t positions);

/// Answers are read as far as needed; each returns the first error code found, 0 for none, nullopt
/// for an answer that does not parse. `reader` stands after the response header.
std::optional<int16_t> read_api_versions(Reader& reader);
std::optional<int16_t> read_metadata(Reader& reader, Topic* topic);
std::optional<int16_t> read_create_topic(Reader& reader);
std::optional<int16_t> read_fetch(Reader& reader);

struct ProduceAnswer {
    int16_t error = 0;
    int partitions = 0;
    int64_t last_base_offset = -1;
};
std::optional<ProduceAnswer> read_produce(Reader& reader);

/// The tag buffer of a flexible response header; ApiVersions has none in any version.
void skip_response_header_tags(Api api, Reader& reader);

}  // namespace kaas::bench
