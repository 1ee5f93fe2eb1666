#include "net/coroutine.h"

#include "base/assert.h"
#include "net/reactor.h"

#include <boost/asio/error.hpp>

#include <chrono>
#include <exception>
#include <utility>

namespace kaas::net {
namespace {

Reactor& here() {
    Reactor* reactor = Reactor::current();
    KAAS_ASSERT(reactor != nullptr);
    return *reactor;
}

}  // namespace

asio::execution_context& CoroutineExecutor::query(asio::execution::context_t) {
    static asio::execution_context context;
    return context;
}

bool is_cancellation(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const boost::system::system_error& e) {
        return e.code() == asio::error::operation_aborted;
    } catch (...) {
        return false;
    }
}

Signal::Signal() : reactor_(here()), timer_(reactor_) {}

void Signal::notify() {
    notified_ = true;
    if (waiter_) end({}, true);
}

asio::awaitable<bool> Signal::wait(std::chrono::milliseconds time) {
    if (!notified_) {
        auto start = [this](auto handler, std::chrono::milliseconds limit) {
            auto slot = asio::get_associated_cancellation_slot(handler);
            begin(std::move(handler), slot, limit);
        };
        co_await asio::async_initiate<const asio::use_awaitable_t<>,
                                      void(boost::system::error_code, bool)>(
            start, asio::use_awaitable, time);
    }
    co_return std::exchange(notified_, false);
}

void Signal::begin(Resume resume, asio::cancellation_slot slot, std::chrono::milliseconds time) {
    KAAS_ASSERT(!waiter_ && reactor_.on_thread());
    waiter_ = std::move(resume);
    slot_ = slot;
    timer_.arm(time, [this] { end({}, false); });
    if (!slot_.is_connected()) return;
    slot_.assign([this](asio::cancellation_type) {
        if (waiter_) end(asio::error::operation_aborted, false);
    });
}

void Signal::end(boost::system::error_code error, bool notified) {
    timer_.cancel();
    slot_.clear();
    reactor_.post([resume = std::exchange(waiter_, nullptr), error, notified]() mutable {
        resume(error, notified);
    });
}

asio::awaitable<void> sleep(std::chrono::milliseconds time) {
    Signal never;
    co_await never.wait(time);
}

}  // namespace kaas::net
