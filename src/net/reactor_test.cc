// Goal: what is posted runs, on the reactor and in order, whatever else goes wrong there; time is
// the clock's.
#include "net/reactor.h"

#include "base/clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace kaas::net {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

void settle(Reactor& reactor) {
    auto done = std::make_shared<std::promise<void>>();
    auto future = done->get_future();
    reactor.post([done] { done->set_value(); });
    future.wait();
}

TEST(Reactor, RunsWhatOneThreadPostsInOrder) {
    Reactor reactor("test");
    std::vector<int> ran;
    for (int i = 0; i < 1000; ++i) reactor.post([&ran, i] { ran.push_back(i); });
    settle(reactor);
    ASSERT_EQ(ran.size(), 1000U);
    EXPECT_TRUE(std::is_sorted(ran.begin(), ran.end()));
}

TEST(Reactor, RunsWhatItPostsToItselfLater) {
    Reactor reactor("test");
    std::vector<int> ran;
    reactor.post([&] {
        EXPECT_TRUE(reactor.on_thread());
        EXPECT_EQ(Reactor::current(), &reactor);
        reactor.post([&] { ran.push_back(2); });
        ran.push_back(1);
    });
    settle(reactor);
    settle(reactor);
    EXPECT_THAT(ran, ElementsAre(1, 2));
    EXPECT_FALSE(reactor.on_thread());
}

TEST(Reactor, LosesNoPostOfManyThreads) {
    Reactor reactor("test");
    std::atomic<int> ran = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < 5000; ++i) reactor.post([&] { ++ran; });
        });
    }
    for (auto& thread : threads) thread.join();
    settle(reactor);
    EXPECT_EQ(ran, 20'000);
}

TEST(Reactor, ATaskThatThrowsHurtsNoOther) {
    Reactor reactor("test");
    reactor.post([] { throw std::runtime_error("from the test"); });
    settle(reactor);
}

TEST(Reactor, DroppingWorkAtTheEndMayPostAgain) {
    bool dropped = false;
    {
        std::unique_ptr<Reactor> reactor = std::make_unique<Reactor>("test");
        // The last thing that runs is the reactor's own end; what it posts to itself before is
        // dropped.
        auto last = std::shared_ptr<int>(new int, [&](int* value) {
            delete value;
            dropped = true;
        });
        Reactor& it = *reactor;
        reactor->post([&it, last = std::move(last)]() mutable {
            it.post([&it, last = std::move(last)]() mutable {
                for (int i = 0; i < 20; ++i) it.post([last] {});
            });
        });
    }
    EXPECT_TRUE(dropped);
}

TEST(Reactor, TicksOnceASecondOfItsClock) {
    base::ManualClock clock;
    Reactor reactor("test", clock);
    settle(reactor);
    EXPECT_EQ(reactor.ticks(), 0U);
    for (std::uint64_t second = 1; second <= 3; ++second) {
        clock.advance(1s);
        settle(reactor);
        settle(reactor);
        EXPECT_EQ(reactor.ticks(), second);
    }
}

TEST(Reactor, TimersFireWhenTheClockSaysSo) {
    base::ManualClock clock;
    Reactor reactor("test", clock);
    std::vector<int> fired;
    std::unique_ptr<ReactorTimer> early;
    std::unique_ptr<ReactorTimer> late;
    std::unique_ptr<ReactorTimer> cancelled;
    reactor.post([&] {
        early = std::make_unique<ReactorTimer>(reactor);
        late = std::make_unique<ReactorTimer>(reactor);
        cancelled = std::make_unique<ReactorTimer>(reactor);
        late->arm(200ms, [&] { fired.push_back(200); });
        early->arm(100ms, [&] { fired.push_back(100); });
        cancelled->arm(150ms, [&] { fired.push_back(150); });
        cancelled->cancel();
    });
    settle(reactor);
    clock.advance(99ms);
    settle(reactor);
    EXPECT_TRUE(fired.empty());
    clock.advance(500ms);
    settle(reactor);
    settle(reactor);
    EXPECT_THAT(fired, ElementsAre(100, 200));
    reactor.post([&] {
        early.reset();
        late.reset();
        cancelled.reset();
    });
    settle(reactor);
}

TEST(Reactor, ATimerMayDestroyOrRearmItself) {
    Reactor reactor("test");
    auto done = std::make_shared<std::promise<void>>();
    reactor.post([&reactor, done] {
        auto timer = std::make_shared<ReactorTimer>(reactor);
        timer->arm(0ms, [timer, done]() mutable {
            timer->arm(0ms, [timer = std::move(timer), done]() mutable {
                timer.reset();
                done->set_value();
            });
        });
    });
    done->get_future().wait();
}

}  // namespace
}  // namespace kaas::net
