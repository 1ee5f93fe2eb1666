#pragma once

#include "base/metrics.h"
#include "storage/error.h"
#include "storage/log_config.h"
#include "storage/partition_log.h"
#include "storage/segment.h"
#include "storage/testing_ledger.h"
#include "storage/testing_log.h"
#include "storage/testing_process.h"
#include "storage/testing_world.h"
#include "wire/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

namespace kaas::storage::testing {

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

    [[nodiscard]] PartitionPaths paths() const {
        return {fmt::format("topic.AAAAAAAAAAAAAAAAAAAAAA/{}", number)};
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
        if (!process.in_cycle) check(ledger.find_acknowledged());
        search(process, partition);
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

    bool defers_flush_ =
        false;  ///< `flush.messages` above 1: no promise but that of the page cache

private:
    base::metrics::Registry metrics_;
    wire::DecodeSite site_{metrics_, "simulation"};
};

}  // namespace kaas::storage::testing
