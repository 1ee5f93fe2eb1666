// Goal: an owner can end its tasks and misses none of their failures.
#include "base/task_scope.h"

#include <gtest/gtest.h>

#include <exception>
#include <stdexcept>
#include <thread>
#include <utility>

namespace kaas::base {
namespace {

TEST(TaskScope, CancelsRunningTasksAndRefusesNewOnes) {
    TaskScope scope;
    bool cancelled = false;
    auto task = scope.enter([&] { cancelled = true; });
    ASSERT_TRUE(task);
    scope.stop();
    EXPECT_TRUE(cancelled);
    EXPECT_FALSE(scope.enter());
    task = {};
    scope.join();
}

TEST(TaskScope, JoinWaitsForTheLastTask) {
    TaskScope scope;
    auto task = scope.enter();
    bool ended = false;
    std::thread worker([&ended, moved = std::move(task)]() mutable {
        ended = true;
        moved = {};
    });
    scope.join();
    EXPECT_TRUE(ended);
    worker.join();
}

TEST(TaskScope, CountsFailures) {
    TaskScope scope;
    scope.failed("test task", std::make_exception_ptr(std::runtime_error("boom")));
    EXPECT_EQ(scope.failures(), 1U);
}

}  // namespace
}  // namespace kaas::base
