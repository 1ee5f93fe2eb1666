#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "base/mutex.h"
#include "base/timer_queue.h"
#include "base/unique_fd.h"
#include "net/error.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace kaas::net {

/// Something with a descriptor that a reactor watches.
class Pollable {
public:
    virtual ~Pollable() = default;
    /// `events` are epoll's. Notes what is possible now and asks for `Reactor::work_soon`.
    virtual void on_ready(std::uint32_t events) = 0;
    /// Reads and computes.
    virtual void on_work() {}
    /// Sends what the turn has brought together.
    virtual void on_turn_end() {}
};

/// One event loop on one thread. A turn is: wait for events, tell their owners, run what was posted
/// and what is due, then let everything touched do its I/O once. So whatever one turn brings to a
/// connection leaves in one send, and one wait costs one epoll_wait.
///
/// This is epoll itself, not `asio::io_context` (docs/decisions/0010): readiness is edge-triggered
/// and registered once, so a request costs no call beside its recv and send. Thread: `post`,
/// `ticks` and `on_thread` from any; the rest on the reactor's own thread.
class Reactor final : public base::Executor {
public:
    /// Throws std::system_error when the system gives no descriptor or thread.
    explicit Reactor(std::string name, base::Clock& clock = base::Clock::system());
    /// Stops, joins, and drops what is still posted. All that was posted from elsewhere must be
    /// dead or harmless by then.
    ~Reactor() override;
    Reactor(const Reactor&) = delete;
    Reactor& operator=(const Reactor&) = delete;

    void post(Work work) override KAAS_EXCLUDES(mutex_);
    /// Runs `work` on the reactor, behind all that was posted before, and waits for it. Not on a
    /// reactor.
    void run_and_wait(Work work);
    /// Bumped once a second; one that stands still means that the thread is wedged.
    [[nodiscard]] std::uint64_t ticks() const { return ticks_.load(std::memory_order_relaxed); }
    [[nodiscard]] bool on_thread() const { return current() == this; }
    /// The reactor whose thread this is, or null.
    [[nodiscard]] static Reactor* current();

    /// The time at which this turn began.
    [[nodiscard]] base::Clock::Steady now() const { return now_; }
    /// `target` must be unwatched before `fd` closes, and `retire`d (not just deleted) after.
    [[nodiscard]] Result<void> watch(int fd, std::uint32_t events, Pollable& target);
    void unwatch(int fd);
    /// Runs `work` with each tick, in the place of what was given before.
    void on_tick(Work work) { on_tick_ = std::move(work); }
    /// Calls `target->on_work()` in this turn's next round, or in the next turn, and
    /// `target->on_turn_end()` after the last round.
    void work_soon(std::shared_ptr<Pollable> target) { touched_.push_back(std::move(target)); }
    /// Keeps `object` alive to the end of the turn: events already fetched may still name it.
    void retire(std::shared_ptr<Pollable> object) { retired_.push_back(std::move(object)); }
    [[nodiscard]] base::TimerQueue& timers() { return timers_; }

private:
    /// Rounds before the next epoll_wait, so that the steps of a request cost no system calls,
    /// and the answers that they bring leave together.
    static constexpr int kRoundsPerTurn = 8;

    void run();
    void wait_for_events();
    [[nodiscard]] int timeout_ms() KAAS_EXCLUDES(mutex_);
    void run_posted() KAAS_EXCLUDES(mutex_);
    void run_due_timers();
    void run_touched();
    void end_turn();
    void tick();
    template <class Call>
    void guarded(Call&& call);

    base::Clock& clock_;
    base::UniqueFd epoll_;
    base::UniqueFd wake_;
    base::Clock::Steady now_;
    base::TimerQueue timers_;
    base::TimerQueue::Entry tick_timer_;
    Work on_tick_;
    std::vector<std::shared_ptr<Pollable>> touched_;
    std::vector<std::shared_ptr<Pollable>> working_;  ///< kept for its capacity
    std::vector<std::shared_ptr<Pollable>> worked_;
    std::vector<std::shared_ptr<Pollable>> retired_;
    std::vector<Work> local_;    ///< posted by the reactor's own thread
    std::vector<Work> running_;  ///< kept for its capacity

    std::atomic<std::uint64_t> ticks_ = 0;
    std::atomic<bool> stopping_ = false;
    /// Set before the last look at `remote_`: whoever posts after that look must wake the thread.
    std::atomic<bool> sleeping_ = false;
    base::Mutex mutex_;
    std::vector<Work> remote_ KAAS_GUARDED_BY(mutex_);
    std::thread thread_;
};

/// A timer of the current reactor. The callback runs once, on the reactor, unless cancelled or
/// re-armed; it may arm or destroy this timer. Thread: the reactor's only.
class ReactorTimer {
public:
    explicit ReactorTimer(Reactor& reactor) : reactor_(reactor) {}
    ~ReactorTimer() { cancel(); }
    ReactorTimer(const ReactorTimer&) = delete;
    ReactorTimer& operator=(const ReactorTimer&) = delete;

    void arm(std::chrono::milliseconds after, base::Executor::Work callback);
    void cancel() { reactor_.timers().cancel(entry_); }
    [[nodiscard]] bool armed() const { return entry_.armed(); }

private:
    Reactor& reactor_;
    base::TimerQueue::Entry entry_;
};

/// The reactors of a process. Outlives servers, handlers and every executor reference to them.
class ReactorPool {
public:
    explicit ReactorPool(std::size_t count, base::Clock& clock = base::Clock::system());
    /// One reactor, whose thread has that name.
    explicit ReactorPool(std::string name, base::Clock& clock = base::Clock::system());

    [[nodiscard]] std::size_t size() const { return reactors_.size(); }
    [[nodiscard]] Reactor& operator[](std::size_t index) { return *reactors_[index]; }

private:
    std::vector<std::unique_ptr<Reactor>> reactors_;
};

}  // namespace kaas::net
