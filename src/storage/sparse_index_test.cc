// Goal: an index gives the same answers from memory and from its file, in Apache's format, and a
// reader on a reactor is sent away rather than blocked. Method: one index, both homes, every key;
// bytes against Apache's layout (its own tools were shown to read them).

#include "storage/sparse_index.h"

#include "storage/memory_volume.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kaas::storage {
namespace {

const std::string kALog = "a.log";
const std::string kTornLog = "torn.log";
const std::string kAbsentLog = "absent.log";

[[nodiscard]] std::optional<std::int32_t> find(const OffsetIndex& index, std::int32_t offset,
                                               Patience patience = Patience::kMayBlock) {
    const auto found = index.last_where(
        [&](const OffsetEntry& e) { return e.relative_offset <= offset; }, patience);
    EXPECT_TRUE(found) << found.error().context;
    return found && *found ? std::optional((*found)->position) : std::nullopt;
}

TEST(SparseIndexTest, AnswersAlikeFromMemoryAndFile) {
    MemoryVolume volume;
    for (const int entries : {0, 1, 2, 3, 17, 100}) {
        const auto path = std::to_string(entries);
        OffsetIndex index(path, IndexOrigin::kNew);
        for (int i = 0; i < entries; ++i)
            index.append({.relative_offset = 10 * i + 5, .position = 1000 * i});
        ASSERT_TRUE(index.finish(volume));
        OffsetIndex existing(path, IndexOrigin::kExisting);
        ASSERT_TRUE(existing.open(volume));
        std::vector<std::optional<std::int32_t>> from_memory;
        for (int key = 0; key < 10 * entries + 20; ++key) from_memory.push_back(find(index, key));
        index.drop_memory();
        EXPECT_EQ(index.size_in_memory(), 0);
        for (int key = 0; key < 10 * entries + 20; ++key) {
            const auto expected = key < 5 || entries == 0
                                      ? std::nullopt
                                      : std::optional(1000 * std::min((key - 5) / 10, entries - 1));
            EXPECT_EQ(from_memory[static_cast<std::size_t>(key)], expected);
            EXPECT_EQ(find(index, key), expected);
            EXPECT_EQ(find(existing, key, Patience::kNever), expected);
        }
    }
}

TEST(SparseIndexTest, FilesAreApachesAndGrowByWhatIsNew) {
    MemoryVolume volume;
    OffsetIndex offsets(kALog, IndexOrigin::kNew);
    TimeIndex times(kALog, IndexOrigin::kNew);
    offsets.append({.relative_offset = 258, .position = 70000});
    times.append({.timestamp_ms = 1'700'000'000'000, .relative_offset = 258});
    ASSERT_TRUE(offsets.flush(volume));
    ASSERT_TRUE(times.flush(volume));
    const auto text = [](const char* bytes, std::size_t n) { return std::string(bytes, n); };
    // NOLINTBEGIN(bugprone-string-literal-with-embedded-nul): with their length beside them
    EXPECT_EQ(*read_whole(volume, "a.index", 100), text("\0\0\1\2\0\1\21\160", 8));
    EXPECT_EQ(*read_whole(volume, "a.timeindex", 100),
              text("\0\0\1\213\317\345\150\0\0\0\1\2", 12));
    offsets.append({.relative_offset = 259, .position = 70001});
    ASSERT_TRUE(offsets.flush(volume));
    EXPECT_EQ(*read_whole(volume, "a.index", 100),
              text("\0\0\1\2\0\1\21\160\0\0\1\3\0\1\21\161", 16));
    // NOLINTEND(bugprone-string-literal-with-embedded-nul)
}

TEST(SparseIndexTest, NoFileBeforeThereIsAnEntryButOneAtTheEnd) {
    MemoryVolume volume;
    OffsetIndex index(kALog, IndexOrigin::kNew);
    ASSERT_TRUE(index.flush(volume));
    EXPECT_EQ(volume.open("a.index", OpenMode::kRead).error().code, ErrorCode::kNotFound);
    ASSERT_TRUE(index.finish(volume));
    EXPECT_TRUE(volume.open("a.index", OpenMode::kRead));
}

TEST(SparseIndexTest, AnAbsentFileIsAnEmptyIndexAndATornEntryIsNone) {
    MemoryVolume volume;
    OffsetIndex absent(kAbsentLog, IndexOrigin::kExisting);
    ASSERT_TRUE(absent.open(volume));
    EXPECT_EQ(find(absent, 5), std::nullopt);
    OffsetIndex index(kTornLog, IndexOrigin::kNew);
    index.append({.relative_offset = 1, .position = 2});
    ASSERT_TRUE(index.flush(volume));
    const auto piece = base::as_bytes("torn");
    ASSERT_TRUE((*volume.open("torn.index", OpenMode::kReadWrite))->write_at(8, {&piece, 1}));
    OffsetIndex torn(kTornLog, IndexOrigin::kExisting);
    ASSERT_TRUE(torn.open(volume));
    EXPECT_EQ(find(torn, 1 << 30), 2);
}

TEST(SparseIndexTest, AReactorNeverWaits) {
    MemoryVolume volume;
    OffsetIndex index(kALog, IndexOrigin::kNew);
    index.append({.relative_offset = 1, .position = 2});
    ASSERT_TRUE(index.finish(volume));
    OffsetIndex existing(kALog, IndexOrigin::kExisting);
    const auto all = [](const OffsetEntry&) { return true; };
    EXPECT_EQ(existing.last_where(all, Patience::kNever).error().code, ErrorCode::kWouldBlock);
    ASSERT_TRUE(existing.open(volume));
    EXPECT_TRUE(existing.last_where(all, Patience::kNever));
    EXPECT_EQ(existing.last_where(all, Patience::kMemoryOnly).error().code, ErrorCode::kWouldBlock);
    volume.set_cached(false);
    EXPECT_EQ(existing.last_where(all, Patience::kNever).error().code, ErrorCode::kWouldBlock);
    EXPECT_TRUE(existing.last_where(all, Patience::kMayBlock));
}

TEST(SparseIndexTest, WhatCouldNotBeWrittenStaysInMemory) {
    MemoryVolume volume;
    OffsetIndex index(kALog, IndexOrigin::kNew);
    index.append({.relative_offset = 1, .position = 2});
    volume.fail_nth(Operation::kWrite, 1, {.code = ErrorCode::kNoSpace});
    EXPECT_FALSE(index.finish(volume));
    index.drop_memory();
    EXPECT_EQ(find(index, 5), 2);
}

TEST(SparseIndexTest, WhatCouldNotBeWrittenIsWrittenLater) {
    for (const auto failing : {Operation::kCreate, Operation::kWrite, Operation::kSync}) {
        SCOPED_TRACE(name_of(failing));
        MemoryVolume volume;
        OffsetIndex index(kALog, IndexOrigin::kNew);
        for (int i = 0; i < 5; ++i) index.append({.relative_offset = i, .position = 2 * i});
        volume.fail_nth(failing, 1, {.code = ErrorCode::kNoSpace, .effect = Fault::Effect::kHalf});
        EXPECT_FALSE(index.flush(volume));
        ASSERT_TRUE(index.flush(volume));
        index.append({.relative_offset = 5, .position = 10});
        ASSERT_TRUE(index.finish(volume));
        OffsetIndex existing(kALog, IndexOrigin::kExisting);
        ASSERT_TRUE(existing.open(volume));
        EXPECT_EQ(existing.bytes(), 6 * OffsetEntry::kBytes);
        for (int i = 0; i < 6; ++i) EXPECT_EQ(find(existing, i), 2 * i);
    }
}

}  // namespace
}  // namespace kaas::storage
