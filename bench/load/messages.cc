#include "load/messages.h"

#include "common/api.h"
#include "common/bytes.h"
#include "load/frame.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kaas::bench {
namespace {

int16_t first_error(int16_t one, int16_t other) { return one != 0 ? one : other; }

/// One entry of a fetch request's partition list: all fixed width, which fetch_offset_at relies on.
constexpr size_t kFetchPartitionSize = 4 + 4 + 8 + 4 + 8 + 4 + 1;
constexpr size_t kOffsetInFetchPartition = 4 + 4;
/// What follows the partition list: topic's tags, forgotten topics, rack, tags.
constexpr size_t kFetchTail = 1 + 1 + 1 + 1;

}  // namespace

std::string api_versions_request() {
    auto frame = begin_frame(Api::kApiVersions, kApiVersionsVersion);
    frame.compact_string(kBenchClientId);
    frame.compact_string("1");
    frame.no_tags();
    return finish_frame(frame);
}

std::string metadata_request(const std::vector<std::string>& topics) {
    auto frame = begin_frame(Api::kMetadata, kMetadataVersion);
    frame.array(topics.size());
    for (const auto& topic : topics) {
        frame.id(TopicId{});
        frame.compact_string(topic);
        frame.no_tags();
    }
    frame.i8(0);  // no auto-create
    frame.i8(0);  // no authorized operations
    frame.no_tags();
    return finish_frame(frame);
}

std::string create_topic_request(std::string_view topic, int partitions) {
    auto frame = begin_frame(Api::kCreateTopics, kCreateTopicsVersion);
    frame.array(1);
    frame.compact_string(topic);
    frame.i32(partitions);
    frame.i16(1);    // replication factor
    frame.array(0);  // manual assignments
    frame.array(0);  // configs
    frame.no_tags();
    frame.i32(30'000);  // timeout
    frame.i8(0);        // validate only
    frame.no_tags();
    return finish_frame(frame);
}

std::string delete_topic_request(std::string_view topic) {
    auto frame = begin_frame(Api::kDeleteTopics, kDeleteTopicsVersion);
    frame.array(1);
    frame.compact_string(topic);
    frame.id(TopicId{});
    frame.no_tags();
    frame.i32(30'000);
    frame.no_tags();
    return finish_frame(frame);
}

std::string produce_request(const Topic& topic, int acks, const std::vector<Placement>& batches,
                            std::string_view transactional_id) {
    auto frame = begin_frame(Api::kProduce, kProduceVersion);
    if (transactional_id.empty()) frame.null();
    if (!transactional_id.empty()) frame.compact_string(transactional_id);
    frame.i16(static_cast<int16_t>(acks));
    frame.i32(30'000);
    frame.array(1);
    frame.id(topic.id);
    frame.array(batches.size());
    for (const auto& [partition, batch] : batches) {
        frame.i32(partition);
        frame.uvarint(batch.size() + 1);
        frame.raw(batch);
        frame.no_tags();
    }
    frame.no_tags();
    frame.no_tags();
    return finish_frame(frame);
}

std::string fetch_request(const Topic& topic, const std::vector<Position>& positions,
                          const FetchLimits& limits) {
    auto frame = begin_frame(Api::kFetch, kFetchVersion);
    frame.i32(limits.max_wait_ms);
    frame.i32(limits.min_bytes);
    frame.i32(INT32_MAX);  // whole response
    frame.i8(0);           // read uncommitted
    frame.i32(0);          // no session
    frame.i32(-1);
    frame.array(1);
    frame.id(topic.id);
    frame.array(positions.size());
    for (const auto& [partition, offset] : positions) {
        frame.i32(partition);
        frame.i32(-1);  // current leader epoch
        frame.i64(offset);
        frame.i32(-1);  // last fetched epoch
        frame.i64(-1);  // log start of a follower
        frame.i32(limits.partition_max_bytes);
        frame.no_tags();
    }
    frame.no_tags();
    frame.array(0);  // forgotten topics
    frame.compact_string("");
    frame.no_tags();
    return finish_frame(frame);
}

size_t fetch_offset_at(const std::string& frame, size_t position, size_t positions) {
    const auto list = frame.size() - kFetchTail - positions * kFetchPartitionSize;
    return list + position * kFetchPartitionSize + kOffsetInFetchPartition;
}

void skip_response_header_tags(Api api, Reader& reader) {
    if (api != Api::kApiVersions) reader.skip_tags();
}

std::optional<int16_t> read_api_versions(Reader& reader) {
    const auto error = reader.i16();
    if (reader.array() == 0 || !reader.ok()) return std::nullopt;
    return error;
}

std::optional<int16_t> read_metadata(Reader& reader, Topic* topic) {
    int16_t error = 0;
    reader.i32();  // throttle
    for (auto brokers = reader.array(); brokers > 0 && reader.ok(); --brokers) {
        reader.i32();
        reader.compact_string();
        reader.i32();
        reader.compact_string();
        reader.skip_tags();
    }
    reader.compact_string();  // cluster id
    reader.i32();             // controller
    for (auto topics = reader.array(); topics > 0 && reader.ok(); --topics) {
        error = first_error(error, reader.i16());
        const auto name = reader.compact_string();
        const auto id = reader.id();
        reader.i8();
        const auto partitions = reader.array();
        for (size_t i = 0; i < partitions && reader.ok(); ++i) {
            error = first_error(error, reader.i16());
            reader.i32();
            reader.i32();
            reader.i32();
            for (int list = 0; list < 3; ++list) reader.skip(reader.array() * 4);
            reader.skip_tags();
        }
        reader.i32();
        reader.skip_tags();
        if (topic != nullptr) *topic = {std::string(name), id, static_cast<int>(partitions)};
    }
    reader.skip_tags();
    if (!reader.ok()) return std::nullopt;
    return error;
}

std::optional<int16_t> read_create_topic(Reader& reader) {
    reader.i32();
    if (reader.array() != 1) return std::nullopt;
    reader.compact_string();
    reader.id();
    const auto error = reader.i16();
    if (!reader.ok()) return std::nullopt;
    return error;
}

std::optional<int16_t> read_fetch(Reader& reader) {
    reader.i32();  // throttle
    auto error = reader.i16();
    reader.i32();  // session
    for (auto topics = reader.array(); topics > 0 && reader.ok(); --topics) {
        reader.id();
        for (auto partitions = reader.array(); partitions > 0 && reader.ok(); --partitions) {
            reader.i32();
            error = first_error(error, reader.i16());
            reader.skip(24);                   // high watermark, last stable offset, log start
            reader.skip(reader.array() * 17);  // aborted transactions
            reader.i32();
            reader.compact_string();  // the records
            reader.skip_tags();
        }
        reader.skip_tags();
    }
    reader.skip_tags();
    if (!reader.ok()) return std::nullopt;
    return error;
}

std::optional<ProduceAnswer> read_produce(Reader& reader) {
    ProduceAnswer answer;
    for (auto topics = reader.array(); topics > 0 && reader.ok(); --topics) {
        reader.id();
        for (auto partitions = reader.array(); partitions > 0 && reader.ok(); --partitions) {
            ++answer.partitions;
            reader.i32();
            answer.error = first_error(answer.error, reader.i16());
            answer.last_base_offset = reader.i64();
            reader.i64();
            reader.i64();
            for (auto errors = reader.array(); errors > 0 && reader.ok(); --errors) {
                reader.i32();
                reader.compact_string();
                reader.skip_tags();
            }
            reader.compact_string();
            reader.skip_tags();
        }
        reader.skip_tags();
    }
    reader.i32();
    reader.skip_tags();
    if (!reader.ok()) return std::nullopt;
    return answer;
}

}  // namespace kaas::bench
