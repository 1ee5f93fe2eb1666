#pragma once

#include "base/executor.h"
#include "base/task_scope.h"
#include "net/reactor.h"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

/// Asio's coroutines on our executors.
namespace kaas::net {

namespace asio = boost::asio;

/// Lets Asio run things on any `base::Executor`, which must outlive what runs there. Always by
/// `post`.
///
/// Asio's own timers and sockets would work on it, but at the price of a hidden thread: use `sleep`
/// and `Signal`.
class CoroutineExecutor {
public:
    explicit CoroutineExecutor(base::Executor& target) : target_(&target) {}

    template <class Function>
    void execute(Function&& function) const {
        target_->post(std::forward<Function>(function));
    }
    [[nodiscard]] base::Executor& target() const { return *target_; }

    [[nodiscard]] static asio::execution_context& query(asio::execution::context_t);
    [[nodiscard]] static constexpr asio::execution::blocking_t query(asio::execution::blocking_t) {
        return asio::execution::blocking.never;
    }
    friend bool operator==(const CoroutineExecutor&, const CoroutineExecutor&) = default;

private:
    base::Executor* target_;
};

/// True for the exception by which a cancelled wait ends.
[[nodiscard]] bool is_cancellation(const std::exception_ptr& error);

/// What ends a spawned task. Has its cancellation slot by a member, not by
/// `bind_cancellation_slot`: Asio would then cancel by another post, which the task may not live to
/// see.
class SpawnedTask {
public:
    using cancellation_slot_type = asio::cancellation_slot;

    SpawnedTask(base::TaskScope& scope, base::TaskScope::Token token, std::string what,
                std::shared_ptr<asio::cancellation_signal> cancel)
        : scope_(&scope),
          token_(std::move(token)),
          what_(std::move(what)),
          cancel_(std::move(cancel)) {}

    [[nodiscard]] asio::cancellation_slot get_cancellation_slot() const noexcept {
        return cancel_->slot();
    }
    void operator()(const std::exception_ptr& error) {
        if (error && !is_cancellation(error)) scope_->failed(what_, error);
    }

private:
    base::TaskScope* scope_;
    base::TaskScope::Token token_;
    std::string what_;
    std::shared_ptr<asio::cancellation_signal> cancel_;
};

/// Runs `task`, an awaitable or a function that makes one, on `executor` as one of `scope`'s tasks.
/// When the scope stops, the task is cancelled (its waits end with operation_aborted); what it
/// throws otherwise is logged with `what` and counted. Does nothing if the scope is stopping
/// already. Thread: any. The scope outlives the task (`TaskScope::join`), the executor the scope.
template <class Task>
void spawn(base::Executor& executor, base::TaskScope& scope, std::string what, Task task) {
    auto cancel = std::make_shared<asio::cancellation_signal>();
    auto token = scope.enter([cancel, &executor] {
        executor.post([cancel] { cancel->emit(asio::cancellation_type::terminal); });
    });
    if (!token) return;
    asio::co_spawn(asio::any_io_executor(CoroutineExecutor(executor)), std::move(task),
                   SpawnedTask(scope, std::move(token), std::move(what), std::move(cancel)));
}

/// `on`, with a pointer: a coroutine's parameters are no references.
template <class Work>
asio::awaitable<std::invoke_result_t<Work&>> run_elsewhere(base::Executor* pool, Work work) {
    using Value = std::invoke_result_t<Work&>;
    // Asio wants a value even when there is an exception.
    using Box = std::conditional_t<std::is_void_v<Value>, std::monostate, std::optional<Value>>;
    auto start = [pool](auto handler, Work task) {
        pool->post([handler = std::move(handler), task = std::move(task)]() mutable {
            std::exception_ptr error;
            Box box;
            try {
                if constexpr (std::is_void_v<Value>) {
                    task();
                } else {
                    box.emplace(task());
                }
            } catch (...) {
                error = std::current_exception();
            }
            auto home = asio::get_associated_executor(handler);
            asio::post(home, [handler = std::move(handler), error = std::move(error),
                              box = std::move(box)]() mutable {
                std::move(handler)(std::move(error), std::move(box));
            });
        });
    };
    Box box =
        co_await asio::async_initiate<const asio::use_awaitable_t<>, void(std::exception_ptr, Box)>(
            start, asio::use_awaitable, std::move(work));
    if constexpr (!std::is_void_v<Value>) co_return std::move(*box);
}

/// Runs `work` on `pool` and comes back to the caller's executor with its result, or what it threw.
/// The work is not cancelled: a durable step finishes even if the waiter has gone.
template <class Work>
[[nodiscard]] asio::awaitable<std::invoke_result_t<Work&>> on(base::Executor& pool, Work work) {
    return run_elsewhere(&pool, std::move(work));
}

/// Something that one coroutine waits for, at most so long: a parked fetch, for its partitions to
/// grow. Thread: the reactor's that it was made on.
class Signal {
public:
    Signal();

    /// Wakes the waiter (by `post`, never from within), or lets the next `wait` go through at once.
    void notify();
    /// True when notified, false when `time` passed first. Throws operation_aborted when cancelled.
    [[nodiscard]] asio::awaitable<bool> wait(std::chrono::milliseconds time);

private:
    using Resume = std::move_only_function<void(boost::system::error_code, bool)>;

    void begin(Resume resume, asio::cancellation_slot slot, std::chrono::milliseconds time);
    void end(boost::system::error_code error, bool notified);

    Reactor& reactor_;
    ReactorTimer timer_;
    Resume waiter_;
    asio::cancellation_slot slot_;  ///< of the waiter
    bool notified_ = false;
};

/// Waits on the current reactor. Throws operation_aborted when cancelled.
[[nodiscard]] asio::awaitable<void> sleep(std::chrono::milliseconds time);

}  // namespace kaas::net
