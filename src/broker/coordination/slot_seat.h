#pragma once

#include "base/loop.h"
#include "coordinator/slot_machine.h"
#include "coordinator/slot_writer.h"
#include "storage/slot_log.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace kaas::broker {

/// One leadership of one slot: its state machine on its log. Gives the log pictures when it wants
/// them, and lives until all that the machine waits for has come back.
///
/// `Machine` is made by `make`, which gets the writer. Thread: the loop's, but for the constructor
/// and `machine` before `start`.
template <class Machine>
class SlotSeat final : public coordinator::SlotWriter,
                       public std::enable_shared_from_this<SlotSeat<Machine>> {
public:
    using Make = std::function<std::unique_ptr<Machine>(coordinator::SlotWriter&)>;

    SlotSeat(base::Loop& loop, std::shared_ptr<storage::SlotLog> log, const Make& make)
        : loop_(loop), log_(std::move(log)), machine_(make(*this)) {}

    [[nodiscard]] Machine& machine() { return *machine_; }

    using Served = std::move_only_function<void(storage::Result<void>)>;
    /// All is loaded. What was only read is made durable before it is served. `served` runs with
    /// the machine started, before the first request; or with the log's failure, and then the seat
    /// has let go of it.
    void start(Served served) {
        if (!log_->must_write_picture()) return serve(std::move(served));
        log_->begin_file(machine_->picture());
        log_->settle(loop_, [self = this->shared_from_this(),
                             served = std::move(served)](storage::Result<void> outcome) mutable {
            if (!outcome) return served(std::move(outcome));
            self->serve(std::move(served));
        });
    }

    /// After `served`. `closed` runs when the machine appends nothing any more and nothing of it is
    /// outstanding.
    void close(std::move_only_function<void()> closed) {
        machine_->close();
        closed_ = std::move(closed);
        finish_closing();
    }

    void append(std::string change) override {
        log_->append(std::move(change));
        if (log_->wants_picture()) log_->begin_file(machine_->picture());
    }

    void settle(Settled done) override {
        ++outstanding_;
        log_->settle(loop_, [self = this->shared_from_this(),
                             done = std::move(done)](storage::Result<void> outcome) mutable {
            --self->outstanding_;
            done(outcome.has_value());
            self->finish_closing();
        });
    }

private:
    void serve(Served served) {
        machine_->start();
        served({});
    }

    void finish_closing() {
        if (!closed_ || outstanding_ != 0) return;
        auto closed = std::exchange(closed_, {});
        closed();
    }

    base::Loop& loop_;
    const std::shared_ptr<storage::SlotLog> log_;
    const std::unique_ptr<Machine> machine_;
    std::size_t outstanding_ = 0;  ///< settles that have not come back
    std::move_only_function<void()> closed_;
};

}  // namespace kaas::broker
