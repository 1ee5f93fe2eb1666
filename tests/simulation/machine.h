#pragma once

#include <ucontext.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

/// A machine that is made up: its threads are fibers that take turns, its clock moves when all of
/// them wait, its chance comes from a seed. What the program is made of does not know: the calls of
/// the C library that start threads, lock, wait and tell the time are those of machine_calls.cc.
namespace kaas::simulation {

using Nanos = std::chrono::nanoseconds;

class Machine;
struct Fiber;

/// Says what happens, with when and whose, if anybody reads it.
void note(const std::string& what);
extern bool tracing;

/// Some threads that live, stop and die together.
struct Process {
    explicit Process(std::string of_name) : name(std::move(of_name)) {}
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    const std::string name;
    bool alive = true;
    bool frozen = false;
    std::vector<Fiber*> missed{};  ///< whose time came while it was frozen
};

/// One thread.
struct Fiber {
    std::size_t number = 0;
    std::string name;
    Process* process = nullptr;
    std::function<void()> body;
    ucontext_t context{};
    void* stack = nullptr;
    bool done = false;
    bool timed_out = false;
    const void* waits_on = nullptr;
    std::uint64_t wait_number = 0;  ///< an alarm of an earlier wait is late
    int locks_held = 0;
};

/// There is one in a program. Thread: the only one that there is.
class Machine {
public:
    static Machine& get();

    /// Fixes all that follows.
    void begin(std::uint64_t seed);
    [[nodiscard]] bool running() const { return running_; }

    // Chance.
    [[nodiscard]] std::int64_t pick(std::int64_t low, std::int64_t high);
    [[nodiscard]] bool chance(std::int64_t one_in) { return pick(1, one_in) == 1; }
    /// Between nothing and `most`, mostly small.
    [[nodiscard]] Nanos some_time(Nanos most);
    [[nodiscard]] std::uint64_t entropy() { return entropy_(); }

    // Time.
    [[nodiscard]] Nanos now() const { return now_; }

    // Threads.
    Fiber& spawn(Process& process, std::string name, std::function<void()> body);
    /// Null on the thread that drives.
    [[nodiscard]] Fiber* current() const { return current_; }
    void sleep(Nanos time);
    /// Waits until somebody calls `wake`; false when `until` comes before.
    bool wait(const void* on, std::optional<Nanos> until = std::nullopt);
    void wake(const void* on, bool all);
    void join(std::size_t fiber);
    /// Another thread may get its turn here.
    void may_switch();
    /// Nothing of it ever runs again.
    void kill(Process& process);
    void freeze(Process& process) { process.frozen = true; }
    void thaw(Process& process);

    /// Lets threads take turns until `end` or `done`.
    void run(Nanos end, const std::function<bool()>& done);

    /// Between these nobody else gets a turn.
    class Undisturbed {
    public:
        Undisturbed() { ++get().undisturbed_; }
        ~Undisturbed() { --get().undisturbed_; }
        Undisturbed(const Undisturbed&) = delete;
        Undisturbed& operator=(const Undisturbed&) = delete;
    };

    /// Differs when anything has happened in another order, or at another time.
    [[nodiscard]] std::uint64_t fingerprint() const { return fingerprint_; }
    void mix(std::uint64_t value) { fingerprint_ = (fingerprint_ ^ value) * 0x100000001B3U; }
    [[nodiscard]] std::uint64_t switches() const { return switches_; }

private:
    struct Alarm {
        Nanos at;
        std::uint64_t order;
        Fiber* fiber;
        std::uint64_t wait_number;
        bool operator<(const Alarm& other) const {
            return std::pair(at, order) > std::pair(other.at, other.order);
        }
    };
    static void enter(unsigned high, unsigned low);
    void set_alarm(Fiber& fiber, Nanos at);
    void switch_away();
    void resume(Fiber& fiber);
    void forget_waiting(Fiber& fiber);
    void* take_stack();

    bool running_ = false;
    std::mt19937_64 random_;
    std::mt19937_64 entropy_;
    Nanos now_{0};
    std::uint64_t order_ = 0;
    std::priority_queue<Alarm> alarms_;
    std::vector<std::unique_ptr<Fiber>> fibers_;
    std::unordered_map<const void*, std::deque<Fiber*>> waiting_;
    std::vector<void*> free_stacks_;
    Fiber* current_ = nullptr;
    ucontext_t driver_{};
    int undisturbed_ = 0;
    std::uint64_t fingerprint_ = 0xCBF29CE484222325U;
    std::uint64_t switches_ = 0;
};

}  // namespace kaas::simulation
