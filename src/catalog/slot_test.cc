// Goal: an id falls on the slot that Apache gives it, whatever letters it has; slots are told from
// partitions. Method: a table; the hashes are those of Java's `String.hashCode`.

#include "catalog/slot.h"

#include "base/ids.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>

namespace kaas::catalog {
namespace {

TEST(Slot, IdsFallWhereApachePutsThem) {
    const struct {
        const char* fault;
        std::string id;
        std::size_t count;
        int slot;
    } rows[] = {
        {"nothing in it", "", 50, 0},
        {"one letter", "a", 50, 47},
        {"several letters", "group", 1'000'000, 629'247},
        {"a negative hash", "payments", 50, 13},
        {"the one hash without a positive", "polygenelubricants", 50, 0},
        {"two bytes are one unit",
         "gr\xc3\xbc\xc3\x9f"
         "e",
         1'000'000, 768'023},
        {"three bytes are one unit", "\xe6\x97\xa5\xe6\x9c\xac", 1'000'000, 835'047},
        {"four bytes are two units", "\xf0\x9f\x98\x80", 1'000'000, 772'899},
        {"one slot", "anything", 1, 0},
    };
    for (const auto& row : rows) {
        EXPECT_EQ(slot_of(row.id, row.count).value(), row.slot) << row.fault;
    }
}

TEST(Slot, OnlyTheTopicsOfCoordinatorsHaveSlots) {
    for (const auto kind : kSlotKinds) EXPECT_EQ(slot_kind(slot_topic(kind)), kind);
    EXPECT_EQ(slot_kind("orders"), std::nullopt);
    EXPECT_EQ(slot_kind("__share_group_state"), std::nullopt);
    EXPECT_EQ(slot_directory(SlotKind::kGroup, base::PartitionId(7)), "__cluster/groups/7");
    EXPECT_EQ(slot_directory(SlotKind::kTransaction, base::PartitionId(49)), "__cluster/txns/49");
}

}  // namespace
}  // namespace kaas::catalog
