// Goal: with several volumes, one that fails takes only its own partitions along, at work and at a
// start. Method: real nodes on two volumes in memory, with faults on one of them.

#include "base/ids.h"
#include "cluster/admin.h"
#include "cluster/error.h"
#include "cluster/log_dirs_fixture.h"
#include "cluster/node.h"
#include "cluster/partition_table.h"
#include "storage/memory_volume.h"
#include "storage/partition_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace kaas::cluster {
namespace {

using storage::Fault;
using storage::MemoryVolume;
using storage::Operation;

class StartWithoutB : public LogDirsTest {
protected:
    /// What lies on /a is served, what lies on /b is known to be missing.
    void start_and_miss_b() {
        start();
        await([&] { return node_->partitions().opening() == 0; });
        EXPECT_TRUE(append(0, "y"));
        EXPECT_EQ(find(1).state, Hosting::kOffline);
        ASSERT_EQ(node_->missing_volumes().size(), 1U);
        EXPECT_EQ(node_->missing_volumes()[0].name, "b");
        EXPECT_EQ(node_->missing_volumes()[0].partitions, 1U);
    }
};

TEST_F(LogDirsTest, VolumeThatFailsUnderLoadTakesOnlyItsOwnAlong) {
    start();
    create();
    ASSERT_TRUE(append(0, "x") && append(1, "y"));
    const auto before = content(1);
    b_->set_hook([](const MemoryVolume::Step& step) -> std::optional<Fault> {
        if (step.operation == Operation::kSync || step.operation == Operation::kWrite)
            return Fault{storage::ErrorCode::kIo, Fault::Effect::kNone};
        return std::nullopt;
    });
    EXPECT_FALSE(append(1, "lost"));
    node_->partitions().tick();
    EXPECT_EQ(find(1).state, Hosting::kOffline);
    EXPECT_EQ(node_->partitions().offline(), 1U);
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(append(0, "served")) << i;

    b_->set_hook(nullptr);  // mended: it comes back by itself
    await([&] {
        node_->partitions().tick();
        return find(1).state == Hosting::kServing;
    });
    EXPECT_EQ(content(1), before) << "nothing of what failed, all of what was acknowledged";
    EXPECT_TRUE(append(1, "z"));
}

TEST_F(LogDirsTest, CordonedVolumeGetsNoNewPartition) {
    start();
    AlterConfigs request{.resource = base::BrokerId(1), .values = {{"cordoned.log.dirs", "/b"}}};
    std::promise<bool> done;
    node_->controller().alter_configs(request, {&here_, [&](Result<std::monostate> result) {
                                                    done.set_value(result.has_value());
                                                }});
    ASSERT_TRUE(done.get_future().get());
    CreateTopics more;
    more.topics = {{.name = "orders", .partitions = 4}};
    std::promise<void> made;
    node_->controller().create_topics(
        more, {&here_, [&](const Result<std::vector<CreatedTopic>>&) { made.set_value(); }});
    made.get_future().get();
    for (int i = 0; i < 4; ++i) EXPECT_EQ(partition(i).volume(), "a");
    const auto dirs = node_->log_dirs();
    ASSERT_EQ(dirs.size(), 2U);
    EXPECT_FALSE(dirs[0].cordoned);
    EXPECT_TRUE(dirs[1].cordoned);
}

TEST_F(StartWithoutB, VolumeThatCannotBeReadIsDoneWithout) {
    start();
    create();
    ASSERT_TRUE(append(0, "x"));
    node_.reset();
    b_->set_hook([](const MemoryVolume::Step&) -> std::optional<Fault> {
        return Fault{storage::ErrorCode::kIo, Fault::Effect::kNone};
    });
    start_and_miss_b();
    EXPECT_THAT(node_->missing_volumes()[0].why, ::testing::HasSubstr("mend it"));
}

TEST_F(StartWithoutB, VolumeThatTakesNoWritesIsDoneWithout) {
    start();
    create();
    ASSERT_TRUE(append(0, "x"));
    node_.reset();
    for (const auto refused : {Operation::kLock, Operation::kMakeDirectory}) {
        b_->set_hook([=](const MemoryVolume::Step& step) -> std::optional<Fault> {
            if (step.operation != refused) return std::nullopt;
            return Fault{storage::ErrorCode::kIo, Fault::Effect::kNone};
        });
        start_and_miss_b();
        node_.reset();
    }
    b_->set_hook({});
    start();
    await([&] { return node_->partitions().opening() == 0; });
    EXPECT_TRUE(append(1, "z"));
}

TEST_F(LogDirsTest, LostControlLogIsNoNewCluster) {
    start();
    create();
    node_.reset();
    const auto file = "__cluster/control/00000001/control-1.jsonl";
    for (const bool empty : {true, false}) {
        ASSERT_TRUE(a_->unlink(file));
        if (empty) ASSERT_TRUE(a_->create(file));
        auto refused = Node::start(options());
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, ErrorCode::kWrongCluster);
        EXPECT_THAT(refused.error().context, ::testing::HasSubstr("holds no control log"));
    }
}

}  // namespace
}  // namespace kaas::cluster
