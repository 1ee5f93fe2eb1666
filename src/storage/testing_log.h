#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "storage/log_dir.h"
#include "storage/memory_volume.h"
#include "storage/partition_log.h"
#include "storage/testing_session.h"
#include "wire/records.h"

#include <cstddef>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

/// What tests of the partition log share: a machine in memory on which brokers live, die and come
/// back.
namespace kaas::storage::testing {

struct BatchOptions {
    std::int32_t records = 1;
    std::size_t value_bytes = 10;
    std::int64_t timestamp_ms = 1'700'000'000'000;
    std::int64_t producer_id = -1;
    std::int16_t producer_epoch = -1;
    std::int32_t sequence = -1;
    std::string value{};
    wire::Compression compression = wire::Compression::kNone;
    bool transactional = false;
    bool supports_epoch_bump = false;  ///< its producer speaks `transaction.version` 2
};

[[nodiscard]] inline std::vector<std::byte> make_batch(const BatchOptions& options) {
    wire::BatchBuilder builder({.compression = options.compression,
                                .producer_id = options.producer_id,
                                .producer_epoch = options.producer_epoch,
                                .base_sequence = options.sequence,
                                .transactional = options.transactional});
    const auto value =
        options.value.empty() ? std::string(options.value_bytes, 'v') : options.value;
    for (std::int32_t i = 0; i < options.records; ++i) {
        builder.add(options.timestamp_ms + i, base::as_bytes("key"), base::as_bytes(value));
    }
    return builder.build();
}

/// A frame of its own around some bytes.
[[nodiscard]] inline Append to_append(const std::vector<std::byte>& bytes, Acks acks,
                                      base::Executor& home,
                                      std::move_only_function<void(Result<Appended>)> done) {
    auto block = base::Block::allocate(bytes.size());
    std::memcpy(block->data(), bytes.data(), bytes.size());
    const base::MutableBytes view(block->data(), bytes.size());
    return {.frame = {std::move(block), view},
            .records = view,
            .acks = acks,
            .home = &home,
            .done = std::move(done)};
}

/// Runs what is posted when the test says so.
class HeldExecutor final : public base::Executor {
public:
    void post(Work work) override { queue_.push_back(std::move(work)); }
    void run_all() {
        while (!queue_.empty()) {
            auto work = std::move(queue_.front());
            queue_.pop_front();
            work();
        }
    }
    [[nodiscard]] std::size_t size() const { return queue_.size(); }

private:
    std::deque<Work> queue_;
};

/// One life of a broker on a volume.
struct Broker {
    explicit Broker(Volume& volume, base::Clock& clock, std::uint64_t checkpoint_bytes = 1 << 20)
        : log_dir({.volume = &volume,
                   .session = &session,
                   .io_pool = &executor,
                   .io_width = 1,
                   .clock = &clock,
                   .owner = {.broker = base::BrokerId{1}, .incarnation = {base::Uuid::random()}},
                   .checkpoint_bytes = checkpoint_bytes}) {}

    [[nodiscard]] Result<std::shared_ptr<PartitionLog>> open(std::int32_t epoch,
                                                             LogConfig config = {},
                                                             std::int32_t lowest = 0,
                                                             bool lowest_written = false) {
        return PartitionLog::open(
            {.log_dir = &log_dir,
             .directory = "topic.AAAAAAAAAAAAAAAAAAAAAA/0",
             .epoch = base::LeaderEpoch{epoch},
             .earlier = candidates_below(log_dir.volume(), epoch, lowest, lowest_written),
             .config = config});
    }

    void commit_all() {
        while (log_dir.run_cycle()) {
        }
    }

    TestingSession session;
    base::InlineExecutor executor;
    LogDir log_dir;
};

/// Keeps the answer of one append.
struct Answer {
    std::optional<Result<Appended>> value;

    [[nodiscard]] auto receiver() {
        return [this](Result<Appended> result) { value = std::move(result); };
    }
    [[nodiscard]] bool good() const { return value && value->has_value(); }
};

/// What a client's batch shows once the coordinator was asked about its transaction.
[[nodiscard]] inline Result<VerificationGuard> verify(PartitionLog& log,
                                                      const BatchOptions& batch) {
    KAAS_TRY_ASSIGN(asked, log.begin_verification(base::ProducerId{batch.producer_id},
                                                  base::ProducerEpoch{batch.producer_epoch},
                                                  batch.sequence, batch.supports_epoch_bump));
    const auto* guard = std::get_if<VerificationGuard>(&asked);
    return guard == nullptr ? VerificationGuard{} : *guard;
}

/// All bytes that a consumer may see from `from` on.
[[nodiscard]] inline Result<std::vector<std::byte>> read_all(PartitionLog& log, base::Offset from,
                                                             std::uint64_t max_bytes = 1 << 20) {
    std::vector<std::byte> all;
    for (;;) {
        KAAS_TRY_ASSIGN(read,
                        log.read({.from = from, .max_bytes = max_bytes}, Patience::kMayBlock));
        if (read.records.length == 0) return all;
        std::vector<std::byte> bytes(read.records.length);
        KAAS_TRY(read_exactly(*read.records.file, read.records.offset, bytes, Patience::kMayBlock));
        for (base::ByteView rest(bytes); !rest.empty();) {
            const auto batch = wire::first_batch(rest);
            if (!batch) return fail(ErrorCode::kCorrupt, batch.error().context);
            const base::Offset next{batch->header.last_offset() + 1};
            if (next <= from) return fail(ErrorCode::kCorrupt, "offsets go backwards");
            from = next;
            rest = rest.subspan(batch->bytes.size());
        }
        all.insert(all.end(), bytes.begin(), bytes.end());
    }
}

/// The values of all records that a consumer may see.
[[nodiscard]] inline Result<std::vector<std::string>> read_values(PartitionLog& log) {
    KAAS_TRY_ASSIGN(bytes, read_all(log, log.view().log_start));
    base::metrics::Registry metrics;
    wire::DecodeSite site(metrics, "test");
    std::vector<std::string> values;
    for (base::ByteView rest(bytes); !rest.empty();) {
        const auto batch = wire::first_batch(rest);
        rest = rest.subspan(batch->bytes.size());
        auto reader = wire::RecordReader::open(*batch, site);
        if (!reader) return fail(ErrorCode::kCorrupt, reader.error().context);
        wire::Record record;
        for (;;) {
            const auto more = reader->next(record);
            if (!more) return fail(ErrorCode::kCorrupt, more.error().context);
            if (!*more) break;
            if (record.offset !=
                static_cast<std::int64_t>(values.size()) + log.view().log_start.value()) {
                return fail(ErrorCode::kCorrupt, "offsets are not in a row");
            }
            values.emplace_back(record.value ? base::as_text(*record.value) : std::string_view());
        }
    }
    return values;
}

}  // namespace kaas::storage::testing
