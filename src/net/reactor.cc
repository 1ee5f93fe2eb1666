#include "net/reactor.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/thread_pool.h"
#include "base/timer_queue.h"
#include "net/error.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <future>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace kaas::net {
namespace {

constexpr std::chrono::seconds kTick{1};
constexpr std::size_t kEventsPerWait = 256;

thread_local Reactor* current_reactor = nullptr;

}  // namespace

Reactor::Reactor(std::string name, base::Clock& clock)
    : clock_(clock),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      now_(clock.now()) {
    const auto need = [&name](bool got) {
        if (!got) throw std::system_error(errno, std::generic_category(), name);
    };
    need(epoll_ && wake_);
    // Edge-triggered: every write to the eventfd is an event, and nobody needs to read it.
    epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.ptr = nullptr}};
    need(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) == 0);
    thread_ = std::thread(
        [this, label = std::move(name)] { base::run_thread(label, [this] { run(); }); });
}

Reactor::~Reactor() {
    post([this] { stopping_.store(true, std::memory_order_relaxed); });
    thread_.join();
    timers_.cancel(tick_timer_);
    // Dropping work may drop the last reference to something that posts again.
    for (;;) {
        std::vector<Work> left = std::move(local_);
        local_.clear();
        {
            base::MutexLock lock(mutex_);
            left.insert(left.end(), std::make_move_iterator(remote_.begin()),
                        std::make_move_iterator(remote_.end()));
            remote_.clear();
        }
        if (left.empty()) break;
    }
}

Reactor* Reactor::current() { return current_reactor; }

void Reactor::post(Work work) {
    if (on_thread()) {
        local_.push_back(std::move(work));
        return;
    }
    {
        base::MutexLock lock(mutex_);
        remote_.push_back(std::move(work));
    }
    if (sleeping_.exchange(false)) {
        std::uint64_t one = 1;
        // Cannot fail but by overflow, and a counter that is not zero has been an event already.
        [[maybe_unused]] auto written = ::write(wake_.get(), &one, sizeof(one));
    }
}

Result<void> Reactor::watch(int fd, std::uint32_t events, Pollable& target) {
    KAAS_ASSERT(on_thread());
    epoll_event event{.events = events, .data = {.ptr = &target}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
        return fail(ErrorCode::kSystem, fmt::format("epoll_ctl: {}", std::strerror(errno)));
    }
    return {};
}

void Reactor::run_and_wait(Work work) {
    KAAS_ASSERT(current() == nullptr);
    // Shared: the waiter may be gone before `set_value` has returned.
    auto done = std::make_shared<std::promise<void>>();
    auto future = done->get_future();
    post([done, &work] {
        work();
        done->set_value();
    });
    future.wait();
}

void Reactor::unwatch(int fd) {
    KAAS_ASSERT(on_thread());
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void Reactor::run() {
    current_reactor = this;
    timers_.arm(tick_timer_, clock_.now() + kTick, [this] { tick(); });
    while (!stopping_.load(std::memory_order_relaxed)) {
        wait_for_events();
        for (int round = 0; round < kRoundsPerTurn; ++round) {
            run_posted();
            if (round == 0) run_due_timers();
            run_touched();
            if (local_.empty() && touched_.empty()) break;
        }
        end_turn();
    }
    touched_.clear();
    retired_.clear();
    current_reactor = nullptr;
}

void Reactor::wait_for_events() {
    std::array<epoll_event, kEventsPerWait> events;
    int timeout = timeout_ms();
    int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout);
    sleeping_.store(false, std::memory_order_relaxed);
    now_ = clock_.now();
    KAAS_ASSERT(count >= 0 || errno == EINTR);
    for (int i = 0; i < count; ++i) {
        auto* target = static_cast<Pollable*>(events[static_cast<std::size_t>(i)].data.ptr);
        if (target == nullptr) continue;  // the wake-up of `post`
        guarded([&] { target->on_ready(events[static_cast<std::size_t>(i)].events); });
    }
}

int Reactor::timeout_ms() {
    if (!local_.empty() || !touched_.empty()) return 0;
    sleeping_.store(true);
    {
        base::MutexLock lock(mutex_);
        if (!remote_.empty()) return 0;
    }
    auto next = timers_.next_deadline();
    if (!next) return -1;
    // Rounded up: waking before the deadline would only mean to wait once more.
    auto wait = std::chrono::ceil<std::chrono::milliseconds>(*next - clock_.now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(wait, 0, std::numeric_limits<int>::max()));
}

void Reactor::run_posted() {
    running_.swap(local_);
    {
        base::MutexLock lock(mutex_);
        if (running_.empty()) {
            running_.swap(remote_);
        } else {
            running_.insert(running_.end(), std::make_move_iterator(remote_.begin()),
                            std::make_move_iterator(remote_.end()));
            remote_.clear();
        }
    }
    for (auto& work : running_) {
        guarded([&] { work(); });
        work = nullptr;
    }
    running_.clear();
}

void Reactor::run_due_timers() {
    // Bounded, because a callback may arm its timer for at once.
    for (std::size_t left = timers_.size(); left > 0; --left) {
        auto callback = timers_.take_due(now_);
        if (!callback) return;
        guarded([&] { callback(); });
    }
}

void Reactor::run_touched() {
    working_.swap(touched_);
    for (auto& target : working_) {
        guarded([&] { target->on_work(); });
        worked_.push_back(std::move(target));
    }
    working_.clear();
}

void Reactor::end_turn() {
    // Twice in the list is harmless: the second time there is nothing to send.
    for (auto& target : worked_) guarded([&] { target->on_turn_end(); });
    worked_.clear();
    retired_.clear();
}

void Reactor::tick() {
    ticks_.fetch_add(1, std::memory_order_relaxed);
    if (on_tick_) on_tick_();
    timers_.arm(tick_timer_, now_ + kTick, [this] { tick(); });
}

template <class Call>
void Reactor::guarded(Call&& call) {
    try {
        call();
    } catch (const std::exception& e) {
        base::log::error("net", "a task of a reactor threw: {}", e.what());
    } catch (...) {
        base::log::error("net", "a task of a reactor threw an unknown exception");
    }
}

void ReactorTimer::arm(std::chrono::milliseconds after, base::Executor::Work callback) {
    KAAS_ASSERT(reactor_.on_thread());
    reactor_.timers().arm(entry_, reactor_.now() + after, std::move(callback));
}

ReactorPool::ReactorPool(std::size_t count, base::Clock& clock) {
    for (std::size_t i = 0; i < count; ++i) {
        reactors_.push_back(std::make_unique<Reactor>("reactor-" + std::to_string(i), clock));
    }
}

ReactorPool::ReactorPool(std::string name, base::Clock& clock) {
    reactors_.push_back(std::make_unique<Reactor>(std::move(name), clock));
}

}  // namespace kaas::net
