// Goal: the lag of each group is shown while it has offsets, and a client that makes up groups does
// not make up series without end. Method: a group slot with a journal in memory.

#include "broker/coordination/group_lag.h"

#include "base/ids.h"
#include "base/metrics.h"
#include "coordinator/group_slot.h"
#include "coordinator/testing_members.h"
#include "coordinator/testing_slot.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kaas::broker {
namespace {

using coordinator::testing::commit_simple;
using coordinator::testing::TestSlot;
using Lags = std::map<std::string, std::int64_t>;

Lags lags(const base::metrics::Registry& registry) {
    Lags found;
    registry.visit([&](const std::string& name, const base::metrics::Registry::Family& family) {
        if (name != "kaas_group_lag") return;
        for (const auto& [labels, series] : family.series) {
            std::string key;
            for (const auto& [label, value] : labels) key += label + "=" + value + " ";
            found[key] = series.gauge->value();
        }
    });
    return found;
}

/// Partition 0 ends at 10, partition 1 is led elsewhere, the others end at 3.
std::optional<base::Offset> end_of(const coordinator::GroupSlot::CommittedOffset& committed) {
    if (committed.partition == base::PartitionId{1}) return std::nullopt;
    return base::Offset{committed.partition == base::PartitionId{0} ? 10 : 3};
}

TEST(GroupLag, IsWhatIsLeftToRead) {
    TestSlot slot;
    base::metrics::Registry registry;
    GroupLag lag(registry);
    EXPECT_EQ(commit_simple(slot, {4, 0, 9}), coordinator::ErrorCode::kNone);
    const std::vector slots = {&*slot};
    lag.update(slots, end_of);
    const Lags expected = {{"group=g partition=0 topic=t ", 6},
                           {"group=g partition=2 topic=t ", 0}};
    EXPECT_EQ(lags(registry), expected) << "an offset behind the end is no negative lag";
}

TEST(GroupLag, EndsWithTheGroup) {
    TestSlot slot;
    base::metrics::Registry registry;
    GroupLag lag(registry);
    EXPECT_EQ(commit_simple(slot, {4}, "h"), coordinator::ErrorCode::kNone);
    EXPECT_EQ(commit_simple(slot, {4}), coordinator::ErrorCode::kNone);
    const std::vector slots = {&*slot};
    lag.update(slots, end_of);
    EXPECT_EQ(lags(registry).size(), 2U);
    slot->delete_groups({"h"}, [](const coordinator::DeleteGroupsAnswer& /*answer*/) {});
    lag.update(slots, end_of);
    EXPECT_EQ(lags(registry), (Lags{{"group=g partition=0 topic=t ", 6}}));
    lag.update({}, end_of);
    EXPECT_TRUE(lags(registry).empty()) << "the slot has moved away";
}

TEST(GroupLag, IsBounded) {
    TestSlot slot;
    base::metrics::Registry registry;
    GroupLag lag(registry, 2);
    for (const auto* group : {"a", "b", "c"}) {
        EXPECT_EQ(commit_simple(slot, {4}, group), coordinator::ErrorCode::kNone);
    }
    const std::vector slots = {&*slot};
    lag.update(slots, end_of);
    EXPECT_EQ(lags(registry).size(), 2U);
    const auto& truncated = registry.gauge("kaas_group_lag_truncated", "");
    EXPECT_EQ(truncated.value(), 1);
    slot->delete_groups({"a"}, [](const coordinator::DeleteGroupsAnswer& /*answer*/) {});
    lag.update(slots, end_of);
    EXPECT_EQ(truncated.value(), 0);
}

TEST(GroupLag, IsNotTruncatedByAnOffsetOfAPartitionThatIsLedElsewhere) {
    TestSlot slot;
    base::metrics::Registry registry;
    GroupLag lag(registry, 1);
    EXPECT_EQ(commit_simple(slot, {4, 0}), coordinator::ErrorCode::kNone);
    const std::vector slots = {&*slot};
    lag.update(slots, end_of);
    EXPECT_EQ(lags(registry), (Lags{{"group=g partition=0 topic=t ", 6}}));
    EXPECT_EQ(registry.gauge("kaas_group_lag_truncated", "").value(), 0);
}

}  // namespace
}  // namespace kaas::broker
