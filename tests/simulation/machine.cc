#include "machine.h"

#include "base/assert.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::simulation {
namespace {

constexpr std::size_t kStackBytes = std::size_t{512} << 10;
/// How late a thread may be that is woken.
constexpr Nanos kWakeLatency{20'000};

}  // namespace

Machine& Machine::get() {
    static Machine machine;
    return machine;
}

void Machine::begin(std::uint64_t seed) {
    random_.seed(seed);
    entropy_.seed(seed + 0x9E3779B97F4A7C15U);
    now_ = std::chrono::hours(1);
    running_ = true;
}

std::int64_t Machine::pick(std::int64_t low, std::int64_t high) {
    const auto range = static_cast<std::uint64_t>(high - low) + 1;
    return low + static_cast<std::int64_t>(random_() % range);
}

Nanos Machine::some_time(Nanos most) {
    // Each shift halves it: from all of it down to almost nothing, all sizes alike.
    return Nanos(pick(0, most.count() >> pick(0, 12)));
}

void* Machine::take_stack() {
    if (!free_stacks_.empty()) {
        auto* stack = free_stacks_.back();
        free_stacks_.pop_back();
        return stack;
    }
    void* stack = ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    KAAS_ASSERT(stack != MAP_FAILED);
    KAAS_ASSERT(::mprotect(stack, 4096, PROT_NONE) == 0);  // where it would run over
    return stack;
}

void Machine::enter(unsigned high, unsigned low) {
    // makecontext(3) passes integers only. NOLINTNEXTLINE(performance-no-int-to-ptr)
    auto* fiber = reinterpret_cast<Fiber*>((std::uintptr_t{high} << 32) | low);
    fiber->body();
    auto& machine = get();
    fiber->done = true;
    fiber->body = nullptr;
    machine.wake(fiber, true);
    machine.switch_away();
}

Fiber& Machine::spawn(Process& process, std::string name, std::function<void()> body) {
    auto fiber = std::make_unique<Fiber>();
    fiber->number = fibers_.size();
    fiber->name = std::move(name);
    fiber->process = &process;
    fiber->body = std::move(body);
    fiber->stack = take_stack();
    ::getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = kStackBytes;
    fiber->context.uc_link = nullptr;
    const auto address = reinterpret_cast<std::uintptr_t>(fiber.get());
    ::makecontext(&fiber->context, reinterpret_cast<void (*)()>(&Machine::enter), 2,
                  static_cast<unsigned>(address >> 32), static_cast<unsigned>(address));
    fibers_.push_back(std::move(fiber));
    auto& made = *fibers_.back();
    set_alarm(made, now_ + some_time(kWakeLatency));
    return made;
}

void Machine::set_alarm(Fiber& fiber, Nanos at) {
    alarms_.push({at, order_++, &fiber, fiber.wait_number});
}

void Machine::switch_away() {
    auto* self = std::exchange(current_, nullptr);
    KAAS_ASSERT(self != nullptr && undisturbed_ == 0);
    ::swapcontext(&self->context, &driver_);
}

void Machine::resume(Fiber& fiber) {
    mix(fiber.number);
    mix(static_cast<std::uint64_t>(now_.count()));
    ++switches_;
    ++fiber.wait_number;
    current_ = &fiber;
    ::swapcontext(&driver_, &fiber.context);
    current_ = nullptr;
    if (fiber.done && fiber.stack != nullptr) {
        free_stacks_.push_back(std::exchange(fiber.stack, nullptr));
    }
}

void Machine::sleep(Nanos time) {
    set_alarm(*current_, now_ + time);
    switch_away();
}

bool Machine::wait(const void* on, std::optional<Nanos> until) {
    auto& self = *current_;
    self.waits_on = on;
    self.timed_out = false;
    waiting_[on].push_back(&self);
    if (until) set_alarm(self, std::max(*until, now_));
    switch_away();
    return !self.timed_out;
}

void Machine::wake(const void* on, bool all) {
    auto found = waiting_.find(on);
    if (found == waiting_.end()) return;
    auto& queue = found->second;
    while (!queue.empty()) {
        auto* fiber = queue.front();
        queue.pop_front();
        fiber->waits_on = nullptr;
        // Its other alarm is late from now on: this one comes before it.
        ++fiber->wait_number;
        set_alarm(*fiber, now_ + some_time(kWakeLatency));
        if (!all) break;
    }
    if (queue.empty()) waiting_.erase(found);
}

void Machine::forget_waiting(Fiber& fiber) {
    const auto found = waiting_.find(fiber.waits_on);
    if (found == waiting_.end()) return;
    std::erase(found->second, &fiber);
    if (found->second.empty()) waiting_.erase(found);
    fiber.waits_on = nullptr;
}

void Machine::join(std::size_t fiber) {
    auto& other = *fibers_.at(fiber);
    while (!other.done) wait(&other);
}

void Machine::may_switch() {
    if (current_ == nullptr || undisturbed_ > 0 || current_->locks_held > 0 || !chance(64)) return;
    // Now and then a thread does not get its turn for long.
    sleep(
        some_time(chance(32) ? std::chrono::microseconds(50'000) : std::chrono::microseconds(100)));
}

void Machine::kill(Process& process) {
    process.alive = false;
    process.missed.clear();
    for (auto& fiber : fibers_) {
        if (fiber->process != &process || fiber->done) continue;
        if (fiber->waits_on != nullptr) forget_waiting(*fiber);
        ++fiber->wait_number;
        fiber->done = true;
        // What it has on its stack and on the heap is never given back: nobody may run it.
    }
    if (current_ != nullptr && current_->process == &process) switch_away();
}

void Machine::thaw(Process& process) {
    process.frozen = false;
    for (auto* fiber : std::exchange(process.missed, {})) {
        set_alarm(*fiber, now_ + some_time(kWakeLatency));
    }
}

void Machine::run(Nanos end, const std::function<bool()>& done) {
    while (!alarms_.empty() && !done()) {
        const auto alarm = alarms_.top();
        if (alarm.at > end) break;
        alarms_.pop();
        auto& fiber = *alarm.fiber;
        if (fiber.done || alarm.wait_number != fiber.wait_number) continue;
        now_ = std::max(now_, alarm.at);
        if (fiber.process->frozen) {
            ++fiber.wait_number;
            if (fiber.waits_on != nullptr) {
                forget_waiting(fiber);
                fiber.timed_out = true;
            }
            fiber.process->missed.push_back(&fiber);
            continue;
        }
        if (fiber.waits_on != nullptr) {
            forget_waiting(fiber);
            fiber.timed_out = true;
        }
        resume(fiber);
    }
    now_ = std::max(now_, std::min(end, now_));
}

}  // namespace kaas::simulation
