// Goal: memory of requests is counted once and given back with the last reference.
#include "base/buffer.h"

#include <gtest/gtest.h>

#include <vector>

namespace kaas::base {
namespace {

TEST(MemoryBudget, RefusesWhatDoesNotFit) {
    MemoryBudget budget(100);
    EXPECT_TRUE(budget.try_reserve(60));
    EXPECT_FALSE(budget.try_reserve(41));
    EXPECT_TRUE(budget.try_reserve(40));
    EXPECT_EQ(budget.used(), 100U);
}

TEST(MemoryBudget, OneOversizeRequestFitsWhenNothingIsHeld) {
    MemoryBudget budget(100);
    EXPECT_TRUE(budget.try_reserve(1000));
    EXPECT_FALSE(budget.try_reserve(1));
    budget.release(1000);
    EXPECT_TRUE(budget.try_reserve(1));
}

TEST(Block, GivesItsBudgetBackWithTheLastReference) {
    MemoryBudget budget(100);
    ASSERT_TRUE(budget.try_reserve(64));
    BlockRef first = Block::allocate(64, &budget);
    FrameRef frame{first, {first->data(), 10}};
    EXPECT_FALSE(first.unique());
    first = {};
    EXPECT_EQ(budget.used(), 64U);
    frame = {};
    EXPECT_EQ(budget.used(), 0U);
}

TEST(Block, IsUniqueAfterACopyIsGone) {
    BlockRef block = Block::allocate(8);
    {
        std::vector<BlockRef> copies(2, block);
        EXPECT_FALSE(block.unique());
    }
    EXPECT_TRUE(block.unique());
}

}  // namespace
}  // namespace kaas::base
