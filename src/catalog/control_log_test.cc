// Goal: what was committed is read back whole, through rolls and crashes; a log that was closed by
// a successor takes nothing any more. Method: logs on a volume in memory. Who may write when is
// tested with controllers (`cluster/`).

#include "catalog/control_log.h"

#include "base/ids.h"
#include "catalog/change.h"
#include "catalog/error.h"
#include "storage/memory_volume.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::catalog {
namespace {

using storage::MemoryVolume;

class ControlLogTest : public ::testing::Test {
protected:
    ControlLogTest() {
        EXPECT_TRUE(volume_.make_directory("__cluster"));
        EXPECT_TRUE(volume_.make_directory(std::string(kControlDirectory)));
        EXPECT_TRUE(volume_.sync_directory("__cluster"));
        EXPECT_TRUE(volume_.sync_directory(""));
    }
    ControlLog create(int epoch) {
        auto log = ControlLog::create(volume_, base::ControllerEpoch(epoch), *image_);
        EXPECT_TRUE(log) << log.error().context;
        return std::move(*log);
    }
    void commit(ControlLog& log, const std::string& key) {
        const std::vector<Change> changes = {ConfigsChanged{base::BrokerId(1), {{key, "1"}}}};
        ImageEditor editor(*image_);
        ASSERT_TRUE(editor.apply(changes.front()));
        image_ = std::move(editor).finish();
        ASSERT_TRUE(log.commit(changes));
        ASSERT_TRUE(log.compact(*image_));
    }
    std::optional<TakenControl> take_over(int epoch) {
        auto taken = take_over_control(volume_, base::ControllerEpoch(epoch));
        EXPECT_TRUE(taken) << taken.error().context;
        return std::move(*taken);
    }
    std::size_t keys_of(const TakenControl& taken) {
        return taken.image->broker_configs(base::BrokerId(1)).size();
    }

    MemoryVolume volume_;
    ImagePtr image_ = ImageEditor("c").finish();
};

TEST_F(ControlLogTest, NewClusterHasNothingToTakeOver) {
    EXPECT_FALSE(take_over(1));
    EXPECT_EQ(*newest_begun(volume_, base::ControllerEpoch(9)), base::ControllerEpoch(0));
}

TEST_F(ControlLogTest, CommittedChangesSurviveACrashAndManyRolls) {
    auto log = create(1);
    for (int i = 0; i < 1'200; ++i) commit(log, "a-rather-long-config-key-" + std::to_string(i));
    EXPECT_GT(volume_.list("__cluster/control/00000001")->size(), 1U) << "it was to roll";
    volume_.crash();
    auto taken = take_over(2);
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->epoch, base::ControllerEpoch(1));
    EXPECT_EQ(keys_of(*taken), 1'200U);
    EXPECT_EQ(taken->image->version(), image_->version());
}

TEST_F(ControlLogTest, ClosedEpochIsLostToItsOwner) {
    create(1);
    ASSERT_TRUE(take_over(3));  // closes epoch 2, whose owner has not come to write yet
    auto late = ControlLog::create(volume_, base::ControllerEpoch(2), *image_);
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, ErrorCode::kSuperseded);
    EXPECT_EQ(*newest_begun(volume_, base::ControllerEpoch(2)), base::ControllerEpoch(1))
        << "a void was begun by nobody";
}

TEST_F(ControlLogTest, FailedCommitEndsTheLog) {
    auto log = create(1);
    volume_.fail_nth(storage::Operation::kSync, 1, {});
    const std::vector<Change> changes = {ConfigsChanged{base::BrokerId(1), {{"a", "1"}}}};
    EXPECT_FALSE(log.commit(changes));
    auto again = log.commit(changes);
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, ErrorCode::kStorage);
}

TEST_F(ControlLogTest, ReleasedLogIsReadAndTakesNothing) {
    auto log = create(1);
    commit(log, "a");
    ASSERT_TRUE(log.settle());
    ASSERT_TRUE(log.release());
    const std::vector<Change> changes = {ConfigsChanged{base::BrokerId(1), {{"b", "1"}}}};
    EXPECT_FALSE(log.commit(changes));
    auto taken = take_over(2);
    ASSERT_TRUE(taken);
    EXPECT_EQ(keys_of(*taken), 1U);
}

}  // namespace
}  // namespace kaas::catalog
