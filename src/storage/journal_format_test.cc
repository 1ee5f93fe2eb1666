// Goal: a journal's file gives back what was put in, and ends where it is no good any more,
// whatever stands there. Method: a file made by hand, then each of its bytes damaged, and each of
// its lengths.

#include "storage/journal_format.h"

#include "storage/memory_volume.h"
#include "storage/testing_volume.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kaas::storage {
namespace {

constexpr std::uint64_t kNumber = 7;

[[nodiscard]] JournalEntry entry(std::int32_t partition, std::int64_t base,
                                 std::vector<std::string_view> batches) {
    JournalEntry made{
        .key = *journal_key("topic.AAAAAAAAAAAAAAAAAAAAAQ/" + std::to_string(partition),
                            base::LeaderEpoch{4}),
        .base = base::Offset{base},
        .end = base::Offset{base} + static_cast<std::int64_t>(batches.size()),
        .batches = {}};
    for (const auto batch : batches) made.batches.push_back(base::as_bytes(batch));
    return made;
}

[[nodiscard]] std::string text_of(std::uint64_t number, const JournalEntry& entry) {
    const auto header = encode_journal_header({.number = number}, entry);
    std::string text(base::as_text(header));
    for (const auto& batch : entry.batches) text += base::as_text(batch);
    return text;
}

[[nodiscard]] std::vector<JournalExtent> read(const std::string& text) {
    MemoryVolume volume;
    const auto file = testing::make_file(volume, "journal", text);
    JournalFileReader reader(*file, kNumber);
    std::vector<JournalExtent> extents;
    for (;;) {
        const auto extent = reader.next();
        EXPECT_TRUE(extent);
        if (!extent || !*extent) return extents;
        extents.push_back(**extent);
    }
}

class JournalFormatTest : public ::testing::Test {
protected:
    const std::string magic_{kJournalMagic};
    const std::string first_ = text_of(kNumber, entry(0, 100, {"one", "two"}));
    const std::string second_ = text_of(kNumber, entry(3, 5, {std::string_view("three")}));
    const std::string zeros_ = std::string(200, '\0');
};

TEST_F(JournalFormatTest, WhatWasPutInComesBack) {
    const auto text = magic_ + first_ + second_ + zeros_;
    const auto extents = read(text);
    ASSERT_EQ(extents.size(), 2U);
    EXPECT_EQ(extents[0].key, entry(0, 0, {}).key);
    EXPECT_EQ(extents[0].base, base::Offset{100});
    EXPECT_EQ(extents[0].end, base::Offset{102});
    EXPECT_EQ(text.substr(extents[0].position, extents[0].bytes), "onetwo");
    EXPECT_EQ(extents[1].key, entry(3, 0, {}).key);
    EXPECT_EQ(text.substr(extents[1].position, extents[1].bytes), "three");
}

TEST_F(JournalFormatTest, AnEntryLargerThanTheBufferIsReadWhole) {
    const std::string large(1 << 20, 'x');
    const auto text = magic_ + first_ + text_of(kNumber, entry(1, 0, {large})) + second_;
    const auto extents = read(text);
    ASSERT_EQ(extents.size(), 3U);
    EXPECT_EQ(extents[1].bytes, large.size());
    EXPECT_EQ(text.substr(extents[2].position, extents[2].bytes), "three");
}

TEST_F(JournalFormatTest, EveryDamagedByteEndsTheFileThere) {
    for (std::size_t at = 0; at < (first_ + second_).size(); ++at) {
        auto text = magic_ + first_ + second_ + zeros_;
        text[magic_.size() + at] ^= 0x10;
        EXPECT_EQ(read(text).size(), at < first_.size() ? 0U : 1U) << "byte " << at;
    }
}

TEST_F(JournalFormatTest, ATornEndIsNoEntry) {
    const auto whole = magic_ + first_ + second_;
    for (auto length = whole.size() - 1; length > magic_.size() + first_.size(); --length) {
        EXPECT_EQ(read(whole.substr(0, length)).size(), 1U) << length;
        EXPECT_EQ(read(whole.substr(0, length) + zeros_).size(), 1U) << length << " and zeros";
    }
}

TEST_F(JournalFormatTest, WhatStoodInTheFileUnderAnotherNumberIsNoEntry) {
    const auto old = text_of(kNumber - 1, entry(3, 5, {std::string_view("three")}));
    EXPECT_EQ(read(magic_ + first_ + old).size(), 1U);
}

TEST_F(JournalFormatTest, WithoutItsBeginningAFileIsRefused) {
    for (const auto& text : {std::string(), zeros_, first_ + second_}) {
        MemoryVolume volume;
        const auto file = testing::make_file(volume, "journal", text);
        const auto extent = JournalFileReader(*file, kNumber).next();
        ASSERT_FALSE(extent);
        EXPECT_EQ(extent.error().code, ErrorCode::kCorrupt);
    }
}

TEST(JournalKeyTest, ComesFromTheDirectoryOfAPartition) {
    const auto key = journal_key("a.b-c.AAAAAAAAAAAAAAAAAAAAAQ/12", base::LeaderEpoch{3});
    ASSERT_TRUE(key);
    EXPECT_EQ(key->partition.topic.uuid.to_string(), "AAAAAAAAAAAAAAAAAAAAAQ");
    EXPECT_EQ(key->partition.partition, base::PartitionId{12});
    for (const auto* other : {"", "topic", "topic/1", "topic.AAAA/1", "t.AAAAAAAAAAAAAAAAAAAAAQ/",
                              "t.AAAAAAAAAAAAAAAAAAAAAQ/1x", "t.AAAAAAAAAAAAAAAAAAAAAQ/x"}) {
        EXPECT_FALSE(journal_key(other, base::LeaderEpoch{3})) << other;
    }
}

}  // namespace
}  // namespace kaas::storage
