#include "load/workloads.h"

#include "common/api.h"
#include "common/batch.h"
#include "common/bytes.h"
#include "common/fd.h"
#include "load/connection.h"
#include "load/messages.h"
#include "load/process.h"

#include <endian.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kaas::bench {
namespace {

constexpr Parsed kMore{.kind = Parsed::Kind::kMore};

void patch_i64(std::string& frame, size_t at, int64_t value) {
    const uint64_t big = htobe64(static_cast<uint64_t>(value));
    std::memcpy(frame.data() + at, &big, sizeof big);
}

std::vector<Position> positions(int first, int count, int partitions) {
    std::vector<Position> list;
    list.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) list.push_back({(first + i) % partitions, 0});
    return list;
}

}  // namespace

void expect_no_error(std::string_view api, std::optional<int16_t> error) {
    if (!error) fail(std::string(api) + " answer does not parse");
    if (*error != 0) fail(std::string(api) + " error code " + std::to_string(*error));
}

Reader after_header(Api api, std::string_view answer) {
    Reader reader(answer);
    reader.i32();
    skip_response_header_tags(api, reader);
    return reader;
}

// ---- produce

ProduceWorkload::ProduceWorkload(const Topic& topic, const Options& options) : options_(options) {
    const int group = std::min(options.partitions_per_request, topic.partitions);
    for (int first = 0; first < topic.partitions; first += group) {
        std::vector<std::string> batches;
        std::vector<Placement> placements;
        placements.reserve(static_cast<size_t>(group));
        for (const auto& [partition, _] : positions(first, group, topic.partitions)) {
            batches.push_back(make_batch(options.shape.records, options.shape.value_bytes,
                                         static_cast<uint64_t>(partition)));
        }
        for (int i = 0; i < group; ++i) {
            placements.push_back({(first + i) % topic.partitions, batches[static_cast<size_t>(i)]});
        }
        batch_bytes_ = batches.front().size();
        frames_.push_back(produce_request(topic, options.acks, placements));
    }
    options_.partitions_per_request = group;
}

void ProduceWorkload::next(Connection& connection, InFlight& request) {
    const auto index = static_cast<size_t>(connection.index());
    if (turn_.size() <= index) turn_.resize(index + 1);
    request.frame = &frames_[(index + turn_[index]++) % frames_.size()];
}

Parsed ProduceWorkload::parse(Connection&, const InFlight&, std::string_view answer, bool arrived,
                              int) {
    if (!arrived) return kMore;
    auto reader = after_header(Api::kProduce, answer);
    const auto found = read_produce(reader);
    expect_no_error("Produce", found ? std::optional(found->error) : std::nullopt);
    if (found->partitions != options_.partitions_per_request || found->last_base_offset < 0) {
        fail("a Produce answer without all partitions or offsets");
    }
    return {Parsed::Kind::kDone};
}

void ProduceWorkload::finished(Connection& connection, const InFlight& request, int64_t now) {
    Workload::finished(connection, request, now);
    const auto batches = static_cast<uint64_t>(options_.partitions_per_request);
    counters.bytes += batches * batch_bytes_;
    counters.records += batches * static_cast<uint64_t>(options_.shape.records);
}

// ---- fetch

Parsed FetchReader::parse(std::string_view answer, int cuts, FetchSeen& seen) const {
    seen = {};
    int with_records = 0;
    auto reader = after_header(Api::kFetch, answer);
    reader.i32();  // throttle
    const auto error = reader.i16();
    reader.i32();  // session
    if (reader.ok()) expect_no_error("Fetch", error);
    for (auto topics = reader.array(); topics > 0 && reader.ok(); --topics) {
        reader.id();
        for (auto partitions = reader.array(); partitions > 0; --partitions) {
            const auto partition = reader.i32();
            const auto partition_error = reader.i16();
            seen.high_watermark = reader.i64();
            reader.i64();
            reader.i64();
            for (auto aborted = reader.array(); aborted > 0 && reader.ok(); --aborted) {
                reader.skip(16);
                reader.skip_tags();
            }
            reader.i32();  // preferred replica
            const auto length = reader.uvarint();
            if (!reader.ok()) return kMore;
            expect_no_error("Fetch partition", partition_error);
            if (length > 1) {
                if (with_records++ == cuts) {
                    const auto at = reader.position();
                    const auto first_offset = reader.i64();
                    if (!reader.ok()) return kMore;
                    if (seen.partitions >= asked_.size() ||
                        partition != asked_[seen.partitions].partition ||
                        first_offset != asked_[seen.partitions].offset) {
                        fail("a Fetch answer begins at another offset than asked");
                    }
                    return {Parsed::Kind::kCut, at, length - 1};
                }
                seen.bytes += length - 1;
            }
            ++seen.partitions;
            reader.skip_tags();
        }
        reader.skip_tags();
    }
    reader.skip_tags();
    return reader.ok() ? Parsed{Parsed::Kind::kDone} : kMore;
}

FetchWorkload::FetchWorkload(const Topic& topic, const Options& options)
    : options_(options),
      batches_a_fetch_(std::max<int64_t>(
          options.limits.partition_max_bytes / static_cast<int64_t>(options.batch_bytes), 1)),
      turn_(options.connections) {
    options_.partitions_per_request = std::min(options.partitions_per_request, topic.partitions);
    if (batches_a_fetch_ > options.batches) fail("the log is smaller than one fetch");
    for (size_t connection = 0; connection < options.connections; ++connection) {
        const auto asked = positions(static_cast<int>(connection) * options_.partitions_per_request,
                                     options_.partitions_per_request, topic.partitions);
        const Slot slot{fetch_request(topic, asked, options.limits), FetchReader(asked)};
        slots_.emplace_back(options.in_flight, slot);
    }
}

void FetchWorkload::next(Connection& connection, InFlight& request) {
    const auto index = static_cast<size_t>(connection.index());
    const auto turn = turn_[index]++;
    auto& slots = slots_[index];
    request.cookie = turn % static_cast<int64_t>(slots.size());
    auto& slot = slots[static_cast<size_t>(request.cookie)];
    const auto places = options_.batches / batches_a_fetch_;
    const auto offset = (turn % places) * batches_a_fetch_ * options_.shape.records;
    for (size_t i = 0; i < slot.reader.asked().size(); ++i) {
        slot.reader.expect(i, offset);
        patch_i64(slot.frame, fetch_offset_at(slot.frame, i, slot.reader.asked().size()), offset);
    }
    request.frame = &slot.frame;
}

Parsed FetchWorkload::parse(Connection& connection, const InFlight& request,
                            std::string_view answer, bool, int cuts) {
    const auto& slot =
        slots_[static_cast<size_t>(connection.index())][static_cast<size_t>(request.cookie)];
    FetchSeen seen;
    const auto parsed = slot.reader.parse(answer, cuts, seen);
    if (parsed.kind != Parsed::Kind::kDone) return parsed;
    const auto partitions = slot.reader.asked().size();
    const auto least = partitions * static_cast<size_t>(batches_a_fetch_) * options_.batch_bytes;
    const auto most =
        partitions *
        std::max(static_cast<size_t>(options_.limits.partition_max_bytes), options_.batch_bytes);
    if (seen.partitions != partitions || seen.bytes < least || seen.bytes > most) {
        fail("a Fetch answer of " + std::to_string(seen.bytes) + " bytes, expected " +
             std::to_string(least) + " to " + std::to_string(most));
    }
    counters.bytes += seen.bytes;
    counters.records +=
        seen.bytes / options_.batch_bytes * static_cast<uint64_t>(options_.shape.records);
    return parsed;
}

// ---- metadata

MetadataWorkload::MetadataWorkload(const std::vector<std::string>& topics)
    : frame_(metadata_request(topics)) {}

void MetadataWorkload::next(Connection&, InFlight& request) { request.frame = &frame_; }

Parsed MetadataWorkload::parse(Connection&, const InFlight&, std::string_view answer, bool arrived,
                               int) {
    if (!arrived) return kMore;
    auto reader = after_header(Api::kMetadata, answer);
    expect_no_error("Metadata", read_metadata(reader, nullptr));
    return {Parsed::Kind::kDone};
}

// ---- end to end

EndToEndWorkload::EndToEndWorkload(const Topic& topic, const BatchShape& shape)
    : shape_(shape),
      producer_(topic, {.shape = shape}),
      reader_({{0, 0}}),
      fetch_frame_(fetch_request(topic, reader_.asked(), {})) {}

void EndToEndWorkload::next(Connection& connection, InFlight& request) {
    if (connection.index() == kProducer) {
        started_.push_back(request.started_ns);
        producer_.next(connection, request);
        return;
    }
    const auto offset = static_cast<int64_t>(arrived_) * shape_.records;
    reader_.expect(0, offset);
    patch_i64(fetch_frame_, fetch_offset_at(fetch_frame_, 0, 1), offset);
    request.frame = &fetch_frame_;
}

Parsed EndToEndWorkload::parse(Connection& connection, const InFlight& request,
                               std::string_view answer, bool arrived, int cuts) {
    if (connection.index() == kProducer) {
        return producer_.parse(connection, request, answer, arrived, cuts);
    }
    FetchSeen seen;
    const auto parsed = reader_.parse(answer, cuts, seen);
    if (parsed.kind != Parsed::Kind::kDone) return parsed;
    if (seen.bytes % producer_.batch_bytes() != 0) fail("a Fetch answer with a part of a batch");
    const auto batches = seen.bytes / producer_.batch_bytes();
    if (arrived_ + batches > started_.size()) fail("more batches fetched than produced");
    const auto now = now_ns();
    for (size_t i = 0; i < batches; ++i) latency.record(now - started_[arrived_ + i]);
    arrived_ += batches;
    counters.bytes += seen.bytes;
    counters.records += batches * static_cast<uint64_t>(shape_.records);
    return parsed;
}

void EndToEndWorkload::finished(Connection& connection, const InFlight& request, int64_t now) {
    if (connection.index() == kProducer) produce_latency.record(now - request.started_ns);
}

}  // namespace kaas::bench
