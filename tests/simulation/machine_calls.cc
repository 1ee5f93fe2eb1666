// The calls of the C library through which the program starts threads, locks, waits, tells the time
// and asks for chance: here they are the machine's. The linker takes these, also for the libraries,
// because a program's own definitions come first. There is only one real thread.

#include "base/assert.h"
#include "machine.h"

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <future>  // NOLINT(misc-include-cleaner): __atomic_futex_unsigned_base
#include <optional>

namespace {

using kaas::simulation::Machine;
using kaas::simulation::Nanos;

/// What the wall clock shows when the machine's own shows nothing.
constexpr std::int64_t kWallSeconds = 1'700'000'000;

bool is_recursive(const pthread_mutex_t* mutex) {
    return (mutex->__data.__kind & 3) == PTHREAD_MUTEX_RECURSIVE;
}

int self() {
    const auto* fiber = Machine::get().current();
    return fiber == nullptr ? -1 : static_cast<int>(fiber->number) + 1;
}

bool try_lock(pthread_mutex_t* mutex) {
    auto& state = mutex->__data;
    if (state.__lock != 0 && !(is_recursive(mutex) && state.__owner == self())) return false;
    if (state.__lock++ == 0) {
        state.__owner = self();
        if (auto* fiber = Machine::get().current()) ++fiber->locks_held;
    }
    return true;
}

Nanos until(clockid_t clock, const timespec& when) {
    auto at = std::chrono::seconds(when.tv_sec) + Nanos(when.tv_nsec);
    if (clock == CLOCK_REALTIME) at -= std::chrono::seconds(kWallSeconds);
    return at;
}

int wait_for(pthread_cond_t* condition, pthread_mutex_t* mutex, std::optional<Nanos> end) {
    // Nobody else runs between the two: no wake-up is missed.
    auto& machine = Machine::get();
    {
        const Machine::Undisturbed undisturbed;
        pthread_mutex_unlock(mutex);
    }
    const bool woken = machine.wait(condition, end);
    pthread_mutex_lock(mutex);
    return woken ? 0 : ETIMEDOUT;
}

}  // namespace

extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
    while (!try_lock(mutex)) {
        KAAS_ASSERT(Machine::get().current() != nullptr);
        Machine::get().wait(mutex);
    }
    return 0;
}

int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept { return try_lock(mutex) ? 0 : EBUSY; }

int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
    auto& machine = Machine::get();
    if (--mutex->__data.__lock > 0) return 0;
    mutex->__data.__owner = 0;
    if (!machine.running()) return 0;
    auto* fiber = machine.current();
    if (fiber != nullptr) --fiber->locks_held;
    machine.wake(mutex, false);
    machine.may_switch();
    return 0;
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
    return wait_for(condition, mutex, std::nullopt);
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           const timespec* when) {
    return wait_for(condition, mutex, until(CLOCK_REALTIME, *when));
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* when) {
    return wait_for(condition, mutex, until(clock, *when));
}

int pthread_cond_signal(pthread_cond_t* condition) noexcept {
    if (Machine::get().running()) Machine::get().wake(condition, false);
    return 0;
}

int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
    if (Machine::get().running()) Machine::get().wake(condition, true);
    return 0;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* /*attributes*/, void* (*body)(void*),
                   void* argument) noexcept {
    auto& machine = Machine::get();
    KAAS_ASSERT(machine.current() != nullptr);
    auto& fiber =
        machine.spawn(*machine.current()->process, "thread", [body, argument] { body(argument); });
    *thread = fiber.number + 1;  // 0 is no thread
    return 0;
}

int pthread_join(pthread_t thread, void** /*result*/) {
    Machine::get().join(thread - 1);
    return 0;
}

int pthread_detach(pthread_t /*thread*/) noexcept { return 0; }

int sched_yield() noexcept {
    Machine::get().sleep(Nanos(1'000));
    return 0;
}

int clock_gettime(clockid_t clock, timespec* time) noexcept {
    auto& machine = Machine::get();
    if (!machine.running()) return static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
    auto now = machine.now();
    if (clock == CLOCK_REALTIME) now += std::chrono::seconds(kWallSeconds);
    time->tv_sec = now / std::chrono::seconds(1);
    time->tv_nsec = (now % std::chrono::seconds(1)).count();
    return 0;
}

ssize_t getrandom(void* into, size_t bytes, unsigned /*flags*/) {
    auto* at = static_cast<std::byte*>(into);
    for (size_t i = 0; i < bytes; i += sizeof(std::uint64_t)) {
        const auto word = Machine::get().entropy();
        std::memcpy(at + i, &word, std::min(bytes - i, sizeof word));
    }
    return static_cast<ssize_t>(bytes);
}

/// A thread says its name, for traces.
int prctl(int what, ...) noexcept {
    va_list arguments;
    va_start(arguments, what);
    if (what == PR_SET_NAME && Machine::get().current() != nullptr) {
        Machine::get().current()->name = va_arg(arguments, const char*);
    }
    va_end(arguments);
    return 0;
}

/// Takes real time for no simulated memory.
int malloc_trim(size_t /*keep*/) noexcept { return 0; }

}  // extern "C"

// What std::future waits by, which goes past the C library.
namespace std {

bool __atomic_futex_unsigned_base::_M_futex_wait_until(unsigned* address, unsigned value,
                                                       bool has_end, chrono::seconds seconds,
                                                       chrono::nanoseconds rest) {
    if (*address != value) return true;
    const auto end = seconds + rest - chrono::seconds(kWallSeconds);
    return Machine::get().wait(address, has_end ? optional<Nanos>(end) : nullopt);
}

bool __atomic_futex_unsigned_base::_M_futex_wait_until_steady(unsigned* address, unsigned value,
                                                              bool has_end, chrono::seconds seconds,
                                                              chrono::nanoseconds rest) {
    if (*address != value) return true;
    return Machine::get().wait(address, has_end ? optional<Nanos>(seconds + rest) : nullopt);
}

void __atomic_futex_unsigned_base::_M_futex_notify_all(unsigned* address) {
    Machine::get().wake(address, true);
}

}  // namespace std
