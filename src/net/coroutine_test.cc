// Goal: coroutines run where they are told, wait without a hidden thread, end when their scope
// stops, and lose no exception.
#include "net/coroutine.h"

#include "base/task_scope.h"
#include "base/thread_pool.h"
#include "net/reactor.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

namespace kaas::net {
namespace {

using namespace std::chrono_literals;

class CoroutineTest : public testing::Test {
protected:
    void TearDown() override {
        scope_.stop();
        scope_.join();
    }

    Reactor reactor_{"test"};
    base::ThreadPool pool_{"pool", 1};
    base::TaskScope scope_;
};

asio::awaitable<void> compute(base::ThreadPool* pool, Reactor* reactor,
                              std::shared_ptr<std::promise<int>> result) {
    std::thread::id home = std::this_thread::get_id();
    auto value = co_await on(*pool, [home, kept = std::make_unique<int>(41)] {
        EXPECT_NE(std::this_thread::get_id(), home);
        return *kept + 1;
    });
    EXPECT_TRUE(reactor->on_thread());
    co_await on(*pool, [] {});
    EXPECT_TRUE(reactor->on_thread());
    result->set_value(value);
}

TEST_F(CoroutineTest, OnRunsElsewhereAndComesBack) {
    auto result = std::make_shared<std::promise<int>>();
    spawn(reactor_, scope_, "test", compute(&pool_, &reactor_, result));
    EXPECT_EQ(result->get_future().get(), 42);
}

asio::awaitable<void> rethrow(base::ThreadPool* pool) {
    co_await on(*pool, []() -> int { throw std::runtime_error("from the pool"); });
}

TEST_F(CoroutineTest, AnExceptionOfTheWorkReachesTheScope) {
    spawn(reactor_, scope_, "test", rethrow(&pool_));
    scope_.join();
    EXPECT_EQ(scope_.failures(), 1U);
}

asio::awaitable<void> wait_on_signal(std::shared_ptr<Signal>* shared,
                                     std::shared_ptr<std::promise<void>> waiting,
                                     std::shared_ptr<std::promise<bool>> woken,
                                     std::chrono::milliseconds limit) {
    auto signal = std::make_shared<Signal>();
    *shared = signal;
    waiting->set_value();
    woken->set_value(co_await signal->wait(limit));
}

TEST_F(CoroutineTest, ASignalWakesItsWaiter) {
    std::shared_ptr<Signal> signal;
    auto waiting = std::make_shared<std::promise<void>>();
    auto woken = std::make_shared<std::promise<bool>>();
    spawn(reactor_, scope_, "test", wait_on_signal(&signal, waiting, woken, 1h));
    waiting->get_future().wait();
    reactor_.post([&] { std::exchange(signal, nullptr)->notify(); });
    EXPECT_TRUE(woken->get_future().get());
}

TEST_F(CoroutineTest, ASignalThatDoesNotComeIsATimeout) {
    std::shared_ptr<Signal> signal;
    auto waiting = std::make_shared<std::promise<void>>();
    auto woken = std::make_shared<std::promise<bool>>();
    spawn(reactor_, scope_, "test", wait_on_signal(&signal, waiting, woken, 1ms));
    EXPECT_FALSE(woken->get_future().get());
    waiting->get_future().wait();
    reactor_.post([kept = std::move(signal)] {});
}

asio::awaitable<void> sleep_long(std::shared_ptr<std::promise<void>> begun) {
    begun->set_value();
    co_await sleep(1h);
    ADD_FAILURE() << "nobody waited an hour";
}

TEST_F(CoroutineTest, StoppingTheScopeCancelsAWait) {
    auto begun = std::make_shared<std::promise<void>>();
    spawn(reactor_, scope_, "test", sleep_long(begun));
    begun->get_future().wait();
    scope_.stop();
    scope_.join();
    EXPECT_EQ(scope_.failures(), 0U);
}

TEST_F(CoroutineTest, AStoppedScopeStartsNothing) {
    scope_.stop();
    spawn(reactor_, scope_, "test", rethrow(&pool_));
    scope_.join();
    EXPECT_EQ(scope_.failures(), 0U);
}

}  // namespace
}  // namespace kaas::net
