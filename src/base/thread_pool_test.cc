// Goal: the pool runs all that was posted, finishes before it dies, and loses no exception.
#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

namespace kaas::base {
namespace {

TEST(ThreadPool, FinishesWhatWasPostedBeforeItDies) {
    std::atomic<int> ran = 0;
    {
        ThreadPool pool("test", 3);
        for (int i = 0; i < 100; ++i) pool.post([&] { ++ran; });
    }
    EXPECT_EQ(ran, 100);
}

TEST(ThreadPool, DropsWhatIsPostedAfterItsStop) {
    std::atomic<int> ran = 0;
    ThreadPool pool("test", 2);
    pool.post([&] { ++ran; });
    pool.stop();
    EXPECT_EQ(ran, 1);
    pool.post([&] { ++ran; });
    pool.stop();
    EXPECT_EQ(ran, 1);
}

TEST(ThreadPool, ExceptionEndsTheProcessInsteadOfLeavingItsWaitersToWait) {
    EXPECT_DEATH(
        {
            ThreadPool pool("test", 1);
            pool.post([] { throw std::runtime_error("no memory for a list"); });
        },
        "thread test-0 cannot go on.*no memory for a list");
}

TEST(RunThread, ExceptionEndsTheProcessAndSaysWhy) {
    EXPECT_DEATH(run_thread("commit", [] { throw std::runtime_error("no memory for a list"); }),
                 "thread commit cannot go on.*no memory for a list");
}

}  // namespace
}  // namespace kaas::base
