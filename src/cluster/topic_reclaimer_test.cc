// Goal: a deleted topic leaves its name in one step and then goes whole, whatever crashes in
// between; nothing is removed under a session that is over. Method: a topic's tree on a volume in
// memory, with a crash at each step.

#include "cluster/topic_reclaimer.h"

#include "base/ids.h"
#include "base/uuid.h"
#include "catalog/topic_name.h"
#include "cluster/reign.h"
#include "storage/error.h"
#include "storage/memory_volume.h"
#include "storage/session_check.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace kaas::cluster {
namespace {

using storage::MemoryVolume;

class Check final : public storage::SessionCheck {
public:
    storage::Result<void> confirm() override {
        if (fenced) return storage::fail(storage::ErrorCode::kFenced, "over");
        return {};
    }
    bool fenced = false;
};

const base::TopicId kId{*base::Uuid::parse("AAAAAAAAAAAAAAAAAAAAAQ")};

void fill(MemoryVolume& volume) {
    EXPECT_TRUE(prepare_volume(volume));
    const auto topic = catalog::topic_directory("orders", kId);
    std::string path = topic;
    EXPECT_TRUE(volume.make_directory(path));
    EXPECT_TRUE(volume.sync_directory(""));
    for (const auto* level : {"/0", "/00000003", "/c1"}) {
        const auto parent = path;
        path += level;
        EXPECT_TRUE(volume.make_directory(path));
        EXPECT_TRUE(volume.create(path + "/file"));
        EXPECT_TRUE(volume.sync_directory(path));
        EXPECT_TRUE(volume.sync_directory(parent));
    }
}

/// Topic directories, in place and set aside.
std::size_t left(MemoryVolume& volume) {
    const auto at_root = volume.list(catalog::topic_directory("orders", kId)) ? 1 : 0;
    return at_root + volume.list(std::string(kDeletedDirectory))->size();
}

TEST(TopicReclaimer, WholeTreeGoes) {
    MemoryVolume volume;
    Check check;
    fill(volume);
    ASSERT_TRUE(set_aside(volume, check, "orders", kId));
    EXPECT_FALSE(volume.list(catalog::topic_directory("orders", kId)));
    ASSERT_TRUE(reclaim(volume, check, "orders", kId));
    EXPECT_EQ(left(volume), 0U);
    EXPECT_TRUE(set_aside(volume, check, "orders", kId)) << "nothing is left to do";
    EXPECT_TRUE(reclaim(volume, check, "orders", kId));
}

TEST(TopicReclaimer, BothNamesThatACrashHasLeftGo) {
    MemoryVolume volume;
    Check check;
    fill(volume);
    ASSERT_TRUE(set_aside(volume, check, "orders", kId));
    fill(volume);
    auto again = set_aside(volume, check, "orders", kId);
    ASSERT_TRUE(again) << again.error().context;
    EXPECT_FALSE(volume.list(catalog::topic_directory("orders", kId)));
    ASSERT_TRUE(reclaim(volume, check, "orders", kId));
    EXPECT_EQ(left(volume), 0U);
}

TEST(TopicReclaimer, FencedBrokerRemovesNothing) {
    MemoryVolume volume;
    Check check;
    fill(volume);
    check.fenced = true;
    EXPECT_FALSE(set_aside(volume, check, "orders", kId));
    EXPECT_FALSE(reclaim(volume, check, "orders", kId));
    EXPECT_EQ(left(volume), 1U);
}

TEST(TopicReclaimer, GoesOnAfterACrashAtAnyStep) {
    for (std::uint64_t at = 0;; ++at) {
        for (std::uint64_t seed = 1; seed <= 5; ++seed) {
            MemoryVolume volume;
            Check check;
            fill(volume);
            volume.halt_at(volume.steps() + at);
            if (set_aside(volume, check, "orders", kId) && reclaim(volume, check, "orders", kId)) {
                return;  // every step has had its turn
            }
            volume.crash({.seed = seed});
            ASSERT_TRUE(prepare_volume(volume));
            auto again = set_aside(volume, check, "orders", kId);
            ASSERT_TRUE(again) << "step " << at << ", seed " << seed << ": "
                               << again.error().context;
            again = reclaim(volume, check, "orders", kId);
            ASSERT_TRUE(again) << "step " << at << ", seed " << seed << ": "
                               << again.error().context;
            EXPECT_EQ(left(volume), 0U);
        }
    }
}

TEST(TopicReclaimer, FaultLeavesTheRestForTheNextCall) {
    for (const auto operation : {storage::Operation::kRename, storage::Operation::kUnlink,
                                 storage::Operation::kRemoveDirectory}) {
        MemoryVolume volume;
        Check check;
        fill(volume);
        volume.fail_nth(operation, 1, {});
        const bool done =
            set_aside(volume, check, "orders", kId) && reclaim(volume, check, "orders", kId);
        EXPECT_FALSE(done);
        EXPECT_TRUE(set_aside(volume, check, "orders", kId));
        EXPECT_TRUE(reclaim(volume, check, "orders", kId));
        EXPECT_EQ(left(volume), 0U);
    }
}

}  // namespace
}  // namespace kaas::cluster
