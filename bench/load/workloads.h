#pragma once

#include "common/api.h"
#include "common/bytes.h"
#include "load/connection.h"
#include "load/messages.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kaas::bench {

/// Ends the program, with the API's name, unless there is an answer that parsed and bears no error.
void expect_no_error(std::string_view api, std::optional<int16_t> error);

/// Stands after the response header.
Reader after_header(Api api, std::string_view answer);

/// What one batch looks like. All batches of a run have the same size, so that sizes can be
/// checked.
struct BatchShape {
    int records = 16;
    size_t value_bytes = 1024;
};

/// Pre-encoded Produce requests, each with a batch for `partitions_per_request` partitions; a
/// connection goes round all of them, beginning at its own place.
class ProduceWorkload : public Workload {
public:
    struct Options {
        BatchShape shape;
        int acks = -1;
        int partitions_per_request = 1;
    };

    ProduceWorkload(const Topic& topic, const Options& options);

    [[nodiscard]] size_t batch_bytes() const { return batch_bytes_; }

    void next(Connection& connection, InFlight& request) override;
    Parsed parse(Connection& connection, const InFlight& request, std::string_view answer,
                 bool arrived, int cuts) override;
    void finished(Connection& connection, const InFlight& request, int64_t now) override;

private:
    Options options_;
    size_t batch_bytes_ = 0;
    std::vector<std::string> frames_;
    std::vector<size_t> turn_;  // by connection
};

/// What an answer to Fetch says, records left aside.
struct FetchSeen {
    size_t bytes = 0;
    size_t partitions = 0;
    int64_t high_watermark = -1;
};

/// Reads a Fetch answer as it arrives and cuts the records out of it. Each partition's records must
/// begin with the batch of the offset that was asked for; an error code ends the program.
class FetchReader {
public:
    explicit FetchReader(std::vector<Position> asked) : asked_(std::move(asked)) {}

    void expect(size_t position, int64_t offset) { asked_[position].offset = offset; }
    [[nodiscard]] const std::vector<Position>& asked() const { return asked_; }

    /// Fills `seen` once the answer is done.
    Parsed parse(std::string_view answer, int cuts, FetchSeen& seen) const;

private:
    std::vector<Position> asked_;
};

/// Fetches of a log that ProduceWorkload has filled, walking along it and round again, with sizes
/// checked: at least the whole batches that fit, at most what was allowed.
class FetchWorkload : public Workload {
public:
    struct Options {
        BatchShape shape;
        size_t batch_bytes = 0;
        int64_t batches = 0;  // in each partition
        int partitions_per_request = 1;
        size_t in_flight = 1;
        size_t connections = 1;
        FetchLimits limits;
    };

    FetchWorkload(const Topic& topic, const Options& options);

    void next(Connection& connection, InFlight& request) override;
    Parsed parse(Connection& connection, const InFlight& request, std::string_view answer,
                 bool arrived, int cuts) override;

private:
    struct Slot {
        std::string frame;
        FetchReader reader;
    };

    Options options_;
    int64_t batches_a_fetch_;
    std::vector<std::vector<Slot>> slots_;  // by connection
    std::vector<int64_t> turn_;             // by connection
};

/// The same Metadata request again and again.
class MetadataWorkload : public Workload {
public:
    explicit MetadataWorkload(const std::vector<std::string>& topics);

    void next(Connection& connection, InFlight& request) override;
    Parsed parse(Connection& connection, const InFlight& request, std::string_view answer,
                 bool arrived, int cuts) override;

private:
    std::string frame_;
};

/// Connection 0 produces one batch a request into an empty partition, connection 1 reads its end
/// with long polls. `latency` is from the moment a batch was due to the arrival of the answer that
/// brings it; requests are batches that arrived.
class EndToEndWorkload : public Workload {
public:
    EndToEndWorkload(const Topic& topic, const BatchShape& shape);

    void next(Connection& connection, InFlight& request) override;
    Parsed parse(Connection& connection, const InFlight& request, std::string_view answer,
                 bool arrived, int cuts) override;
    void finished(Connection& connection, const InFlight& request, int64_t now) override;

    Histogram produce_latency;

private:
    static constexpr int kProducer = 0;

    BatchShape shape_;
    ProduceWorkload producer_;
    FetchReader reader_;
    std::string fetch_frame_;
    std::vector<int64_t> started_;  // by number of the batch
    size_t arrived_ = 0;
};

}  // namespace kaas::bench
