#pragma once

#include "base/metrics.h"
#include "storage/error.h"
#include "storage/log_config.h"
#include "storage/partition_log.h"
#include "storage/segment.h"
#include "storage/testing_committed.h"
#include "storage/testing_ledger.h"
#include "storage/testing_log.h"
#include "storage/testing_process.h"
#include "storage/testing_world.h"
#include "storage/transaction_marker.h"
#include "wire/records.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kaas::storage::testing {

/// A transactional producer and its coordinator.
struct Transactor {
    std::size_t producer;
    bool bumps;  ///< it has an epoch for each transaction (`transaction.version` 2)
    std::int16_t epoch = 0;
    std::int32_t next = 0;  ///< sequence under this epoch
    Transaction* transaction = nullptr;
    std::vector<Sent*> batches{};
    std::optional<Marker> marker{};  ///< decided, and not answered yet

    /// The batch that may not be there; the next waits for it.
    [[nodiscard]] Sent* unanswered() const {
        const auto found = std::ranges::find(batches, Sent::Standing::kUnknown, &Sent::standing);
        return found == batches.end() ? nullptr : *found;
    }
};

/// What the controller, the producers and the consumers know of a partition.
struct Partition {
    std::size_t number = 0;
    Ledger ledger;
    LogConfig config{};
    bool ages = false;  ///< retention deletes, too
    base::Offset asked_start{0};
    std::size_t volume = 0;              ///< of the next epoch
    std::vector<std::size_t> volumes{};  ///< of the epochs so far
    std::optional<std::int32_t> written{};
    std::vector<Transactor> transactors{};
    std::int32_t coordinator_epoch = 0;

    [[nodiscard]] PartitionPaths paths() const {
        return PartitionPaths{fmt::format("topic.AAAAAAAAAAAAAAAAAAAAAA/{}", number)};
    }
};

/// The world's producers and consumers: what they do, and what they expect.
class Clients : public World {
protected:
    using World::World;

    [[nodiscard]] static Process::Led& led(Process& process, const Partition& partition) {
        return process.led[partition.number];
    }

    /// An error needs a cause.
    void explain(Process& process, const Partition& partition, const Error& error) {
        note("process {} gets: {}", number_of(process), error.context);
        const bool explained = process.dead || process.fenced || led(process, partition).disturbed;
        if (error.code == ErrorCode::kCorrupt || !explained)
            violated("process {} got {}", number_of(process), error.context);
    }
    // ---- Producers.

    void deliver(Process& process, Partition& partition, Sent& batch) {
        static constexpr Acks kPlain[] = {Acks::kAll, Acks::kLeader, Acks::kNone};
        const auto acks =
            Ledger::idempotent(batch.producer) ? Acks::kAll : kPlain[batch.sequence % 3];
        const auto standing = acks == Acks::kAll && !defers_flush_ ? Sent::Standing::kDurable
                                                                   : Sent::Standing::kWritten;
        auto answered = [this, &process, &partition, &batch,
                         standing](const Result<Appended>& answer) {
            if (process.dead || !answer) return;
            const auto offset = answer->base_offset.value();
            note("{} of log {} is acknowledged at {} by process {}", batch.name(), partition.number,
                 offset, number_of(process));
            check(Ledger::acknowledge(batch, offset, standing));
        };
        const auto log = led(process, partition).log;
        const auto taken =
            log->append(testing::to_append(testing::bytes_of(batch), acks, process.home, answered));
        if (!taken && !log->failure())
            violated("{} was refused: {}", batch.name(), taken.error().context);
    }

    /// As a client does: what was not answered goes out again, in order. Others that the log has to
    /// remember go with it, to see that it does.
    void resend(Process& process, Partition& partition) {
        for (std::size_t producer = 0; Ledger::idempotent(producer); ++producer) {
            for (auto* batch : partition.ledger.last_of(producer))
                deliver(process, partition, *batch);
        }
    }

    // ---- Transactions.

    /// The next that a transactional producer or its coordinator does.
    void transact(Process& process, Partition& partition, Transactor& transactor) {
        if (transactor.marker) {
            // Another coordinator may have taken over.
            if (chance(4)) {
                transactor.marker->coordinator_epoch = ++partition.coordinator_epoch;
                partition.ledger.decide(*transactor.transaction, *transactor.marker);
            }
            return deliver_marker(process, partition, transactor);
        }
        auto* const unanswered = transactor.unanswered();
        if (transactor.transaction != nullptr && chance(3)) {
            const bool bumps = transactor.bumps || unanswered != nullptr;
            transactor.marker =
                Marker{.producer = base::ProducerId{static_cast<std::int64_t>(transactor.producer)},
                       .epoch = base::ProducerEpoch{static_cast<std::int16_t>(transactor.epoch +
                                                                              (bumps ? 1 : 0))},
                       .coordinator_epoch = ++partition.coordinator_epoch,
                       .commit = unanswered == nullptr && chance(2),
                       .transaction_version = static_cast<std::int8_t>(transactor.bumps ? 2 : 1)};
            partition.ledger.decide(*transactor.transaction, *transactor.marker);
            return deliver_marker(process, partition, transactor);
        }
        if (unanswered != nullptr)
            return deliver_in_transaction(process, partition, transactor, *unanswered);
        auto& ledger = partition.ledger;
        if (transactor.transaction == nullptr) transactor.transaction = &ledger.begin_transaction();
        std::vector<Ledger::Filling> fillings(static_cast<std::size_t>(pick(1, 2)));
        for (auto& filling : fillings) {
            filling.key = static_cast<int>(pick(0, 5));
            if (!chance(5)) filling.bytes = static_cast<std::size_t>(pick(0, 200));
        }
        auto& batch = ledger.issue(transactor.producer, clock_.wall_ms() + pick(-50, 50), fillings);
        batch.epoch = transactor.epoch;
        batch.wire_sequence = std::exchange(
            transactor.next, transactor.next + static_cast<std::int32_t>(fillings.size()));
        ledger.join(batch, *transactor.transaction);
        transactor.batches.push_back(&batch);
        deliver_in_transaction(process, partition, transactor, batch);
    }

    void deliver_in_transaction(Process& process, Partition& partition,
                                const Transactor& transactor, Sent& batch) {
        const auto log = led(process, partition).log;
        auto request = testing::to_append(
            testing::bytes_of(batch), Acks::kAll, process.home,
            [this, &process, &partition, &batch](const Result<Appended>& answer) {
                if (process.dead || !answer) return;
                const auto offset = answer->base_offset.value();
                note("{} of log {} is acknowledged at {} by process {}", batch.name(),
                     partition.number, offset, number_of(process));
                check(Ledger::acknowledge(batch, offset, Sent::Standing::kDurable));
            });
        const auto asked = log->begin_verification(
            base::ProducerId{static_cast<std::int64_t>(batch.producer)},
            base::ProducerEpoch{batch.epoch}, batch.wire_sequence, transactor.bumps);
        if (!asked) {
            if (!log->failure())
                violated("{} may not be asked for: {}", batch.name(), asked.error().context);
            return;
        }
        if (const auto* guard = std::get_if<VerificationGuard>(&*asked))
            request.verification = *guard;
        const auto taken = log->append(std::move(request));
        if (!taken && !log->failure())
            violated("{} was refused: {}", batch.name(), taken.error().context);
    }

    void deliver_marker(Process& process, Partition& partition, Transactor& transactor) {
        const auto log = led(process, partition).log;
        const auto marker = *transactor.marker;
        auto answered = [this, &process, &partition, &transactor,
                         marker](const Result<Appended>& answer) {
            if (process.dead || !answer) return;
            note("{} of log {} is acknowledged at {} by process {}", name_of(marker),
                 partition.number, answer->base_offset, number_of(process));
            markers_.push_back({&partition, name_of(marker), answer->base_offset.value()});
            if (!transactor.marker || name_of(*transactor.marker) != name_of(marker)) return;
            if (marker.epoch.value() != transactor.epoch) transactor.next = 0;
            transactor.epoch = marker.epoch.value();
            transactor.transaction = nullptr;
            transactor.batches.clear();
            transactor.marker.reset();
        };
        const auto taken = log->append_marker(marker, process.home, answered);
        if (!taken && !log->failure())
            violated("{} was refused: {}", name_of(marker), taken.error().context);
    }

    /// Readers of committed data get to where the first open transaction begins, and nothing that
    /// was aborted.
    void look_at_committed(Process& process, Partition& partition) {
        const auto log = led(process, partition).log;
        const auto before = log->view();
        std::vector<std::string> names;
        Result<void> read;
        as(process, [&] {
            read = each_committed(
                *log, before.log_start, static_cast<std::uint64_t>(pick(1, 2000)), site_,
                [&](const wire::BatchView& batch, base::Offset) {
                    auto reader = wire::RecordReader::open(batch, site_);
                    for (wire::Record record; reader && *reader->next(record);) {
                        if (record.offset >= before.log_start.value())
                            names.emplace_back(base::as_text(*record.headers.at(0).value));
                    }
                });
        });
        if (process.dead || led(process, partition).log != log) return;
        if (!read) return explain(process, partition, read.error());
        auto& ledger = partition.ledger;
        for (const auto& name : names) {
            if (ledger.aborted(name)) violated("{} was aborted, and is read as committed", name);
        }
        const auto after = log->view();
        const bool moved = before.high_watermark != after.high_watermark ||
                           before.last_stable_offset != after.last_stable_offset ||
                           before.log_start != after.log_start || before.sealed != after.sealed;
        if (moved || &process != current_ || ledger.end() != after.high_watermark.value() ||
            ledger.start() != after.log_start.value())
            return;
        const auto stable = ledger.stable_end();
        if (!stable) return;
        if (after.last_stable_offset.value() != *stable)
            violated("committed reads stop at {}, and not at {}", after.last_stable_offset,
                     *stable);
        const auto expected = ledger.committed(*stable);
        if (names != expected)
            violated("committed are [{}], read were [{}]", fmt::join(expected, " "),
                     fmt::join(names, " "));
        skipped_ += static_cast<std::size_t>(ledger.end()) - names.size();
    }
    /// All markers that were acknowledged have been seen.
    void find_markers(const Partition& looked_at) {
        for (const auto& [partition, name, offset] : markers_) {
            if (partition == &looked_at) check(looked_at.ledger.find_marker(name, offset));
        }
    }

    // ---- Consumers.

    [[nodiscard]] Result<testing::Unpacked> read(PartitionLog& log, std::int64_t from) {
        const storage::Read request{.from = base::Offset{from},
                                    .max_bytes = static_cast<std::uint64_t>(pick(1, 2000))};
        KAAS_TRY_ASSIGN(result, log.read(request, Patience::kMayBlock));
        return testing::unpack(result.records, site_);
    }

    [[nodiscard]] Result<std::vector<Seen>> read_all(PartitionLog& log) {
        std::vector<Seen> all;
        for (auto from = log.view().log_start.value();;) {
            KAAS_TRY_ASSIGN(some, read(log, from));
            if (some.next < 0) return all;
            if (some.next <= from) return fail(ErrorCode::kCorrupt, "a reader gets no further");
            from = some.next;
            std::ranges::move(some.records, std::back_inserter(all));
        }
    }

    /// A consumer reads everything.
    void look(Process& process, Partition& partition) {
        Result<std::vector<Seen>> read;
        const auto log = led(process, partition).log;
        as(process, [&] { read = read_all(*log); });
        if (process.dead || led(process, partition).log != log) return;
        if (!read) return explain(process, partition, read.error());
        auto& ledger = partition.ledger;
        if (&process == current_) {
            const auto start = log->view().log_start;
            if (!partition.ages && start > partition.asked_start)
                violated("nobody has deleted up to {}", start);
            if (start.value() < ledger.start()) violated("deleted records are back at {}", start);
            ledger.begin_at(start.value());
        }
        check(ledger.observe(*read, &process == current_, clock_.wall_ms()));
        if (&process != current_) return;
        // acks=1 is answered within a cycle, before consumers may see it.
        if (!process.in_cycle) {
            check(ledger.find_acknowledged());
            find_markers(partition);
        }
        search(process, partition);
        if (!process.dead && led(process, partition).log == log)
            look_at_committed(process, partition);
    }

    /// Part of the log, from anywhere in it.
    void read_some(Partition& partition) {
        auto& process = *current_;
        const auto log = led(process, partition).log;
        const auto start = log->view().log_start.value();
        const auto from = pick(start, std::max(start, partition.ledger.end()));
        Result<testing::Unpacked> some;
        as(process, [&] { some = read(*log, from); });
        if (process.dead || led(process, partition).log != log) return;
        if (!some) return explain(process, partition, some.error());
        for (const auto& record : some->records) check(partition.ledger.compare(record));
        if (&process != current_ || some->next < 0) return;
        const auto first = some->records.empty() ? some->next : some->records.front().offset;
        for (auto missed = from; missed < first; ++missed) {
            if (!partition.ledger.may_miss(missed, clock_.wall_ms()))
                violated("a read from {} gave {} to {}", from, first, some->next);
        }
    }

    void search(Process& process, Partition& partition) {
        auto& ledger = partition.ledger;
        if (ledger.end() == ledger.start()) return;
        const auto near = pick(ledger.start(), ledger.end() - 1);
        const auto wanted = ledger.timestamp_of(near) + pick(-2, 2);
        Result<std::optional<OffsetAndTimestamp>> found;
        const auto log = led(process, partition).log;
        as(process, [&] { found = log->first_at_or_after(wanted, Isolation::kReadUncommitted); });
        if (process.dead || led(process, partition).log != log) return;
        if (!found) return explain(process, partition, found.error());
        if (&process != current_) return;  // the next owner may have deleted some meanwhile
        const auto expected = ledger.first_at_or_after(wanted);
        const auto offset = *found ? (*found)->offset.value() : -1;
        if (offset != expected)
            violated("time {} is at {}, and not at {}", wanted, expected, offset);
    }

    struct AcknowledgedMarker {
        const Partition* partition;
        std::string name;
        std::int64_t offset;
    };
    std::vector<AcknowledgedMarker> markers_;
    std::size_t skipped_ = 0;  ///< offsets that readers of committed data did not get
    bool defers_flush_ =
        false;  ///< `flush.messages` above 1: no promise but that of the page cache

private:
    base::metrics::Registry metrics_;
    wire::DecodeSite site_{metrics_, "simulation"};
};

}  // namespace kaas::storage::testing
