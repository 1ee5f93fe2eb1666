// Goal: a bit that flips in a journal takes away nothing that was acknowledged without a word, and
// from nobody whom it does not concern. Method: each byte of a journal of two files is changed in
// turn, and the journal is read; then whole logs are opened, whose segments a power loss has taken
// so that the journal alone has their batches.

#include "storage/journal.h"
#include "storage/journal_reader.h"
#include "storage/journal_sweeper.h"
#include "storage/memory_volume.h"
#include "storage/partition_log_fixture.h"
#include "storage/testing_journal.h"
#include "storage/testing_session.h"
#include "storage/testing_volume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::key;
using testing::read_values;

void flip(Volume& volume, const std::string& path, std::uint64_t at) {
    auto file = volume.open(path, OpenMode::kReadWrite);
    ASSERT_TRUE(file) << file.error().context;
    std::byte byte{};
    const base::ByteView piece(&byte, 1);
    ASSERT_TRUE((*file)->read_at(at, {&byte, 1}));
    byte ^= std::byte{0x10};
    ASSERT_TRUE((*file)->write_at(at, {&piece, 1}));
}

class DamagedJournal : public testing::JournalFixture {
protected:
    struct Entry {
        std::int32_t partition;
        std::int64_t base;
        std::uint64_t file;
    };
    /// Each in a commit of its own; two to a file.
    static constexpr std::array<Entry, 6> kEntries{
        {{0, 0, 1}, {1, 0, 1}, {2, 0, 2}, {0, 1, 2}, {1, 1, 3}, {2, 1, 3}}};
    static constexpr std::uint64_t kBatchBytes = 100;
    static constexpr std::uint64_t kEntryBytes = kJournalEntryHeader + kBatchBytes;

    void SetUp() override {
        const auto journal = Journal::make({.volume = &volume_,
                                            .session = &session_,
                                            .io_pool = &inline_,
                                            .clock = &clock_,
                                            .owner = owner_,
                                            .file_bytes = 8 + 2 * kEntryBytes});
        for (const auto& wanted : kEntries) {
            const std::string batch(kBatchBytes, 'b');
            const JournalEntry entry{.key = key(wanted.partition),
                                     .base = base::Offset{wanted.base},
                                     .end = base::Offset{wanted.base + 1},
                                     .batches = {base::as_bytes(batch)}};
            while (!journal->reserve(Journal::size_of(entry))) {
            }
            const auto* one = &entry;
            ASSERT_TRUE(journal->commit({&one, 1}));
        }
        journal->close();
    }

    [[nodiscard]] auto read() { return JournalImage::read(volume_, path_.name); }
    [[nodiscard]] static std::vector<std::int64_t> whole(const JournalImage& image,
                                                         std::int32_t partition) {
        std::vector<std::int64_t> bases;
        for (const auto& piece : image.of(key(partition)))
            if (piece.extent.whole) bases.push_back(piece.extent.base.value());
        return bases;
    }
};

TEST_F(DamagedJournal, EveryFlipBeforeASyncedEndIsSeenAndConcernsOneEntry) {
    for (std::size_t i = 0; i + 1 < kEntries.size(); ++i) {
        const auto& hit = kEntries[i];
        const auto begin = kJournalMagic.size() + (i % 2) * kEntryBytes;
        for (auto at = begin; at < begin + kEntryBytes; ++at) {
            SCOPED_TRACE("entry " + std::to_string(i) + " at " + std::to_string(at - begin));
            flip(volume_, path_.file(hit.file), at);
            const auto image = read();
            ASSERT_TRUE(image) << image.error().context;
            for (const auto& entry : kEntries) {
                const auto found = whole(**image, entry.partition);
                const auto there = static_cast<bool>(std::ranges::count(found, entry.base));
                ASSERT_EQ(there, &entry != &hit && true) << entry.partition << " " << entry.base;
            }
            const bool in_batches = at >= begin + kJournalEntryHeader;
            if (in_batches) {
                ASSERT_TRUE((*image)->gaps().empty());
                ASSERT_EQ((*image)->of(key(hit.partition)).size(), 2U) << "known, and not whole";
            } else {
                ASSERT_EQ((*image)->gaps().size(), 1U);
                ASSERT_EQ((*image)->gaps()[0].position, begin);
                ASSERT_EQ(*(*image)->gaps()[0].path, path_.file(hit.file));
                for (const auto partition : {0, 1, 2}) {
                    // Those with an entry behind it can tell by their offsets.
                    const bool ends_before = i > (partition == 0 ? 3 : partition == 1 ? 4 : 5);
                    const bool is_last = hit.partition == partition && hit.base == 1;
                    ASSERT_EQ((*image)->gap_behind(key(partition)) != nullptr,
                              ends_before || is_last)
                        << partition;
                }
            }
            flip(volume_, path_.file(hit.file), at);
        }
    }
}

TEST_F(DamagedJournal, TheLastCommitThatNothingProvesIsATornEnd) {
    flip(volume_, path_.file(3), kJournalMagic.size() + kEntryBytes + 1);
    const auto image = read();
    ASSERT_TRUE(image) << image.error().context;
    EXPECT_TRUE((*image)->gaps().empty());
    EXPECT_EQ(whole(**image, 2), std::vector<std::int64_t>{0});
}

TEST_F(DamagedJournal, AFileCutShortIsSeenByTheNextOne) {
    const auto name = path_.file(1);
    const auto text = testing::read_text(volume_, name);
    ASSERT_TRUE(volume_.unlink(name));
    testing::make_file(volume_, name, text.substr(0, text.size() - 1));
    const auto image = read();
    ASSERT_TRUE(image) << image.error().context;
    ASSERT_EQ((*image)->gaps().size(), 1U);
    EXPECT_EQ((*image)->gaps()[0].position, kJournalMagic.size() + kEntryBytes);
}

TEST_F(DamagedJournal, AFileWithoutItsBeginningIsRefused) {
    flip(volume_, path_.file(2), 3);
    const auto image = read();
    ASSERT_FALSE(image);
    EXPECT_EQ(image.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(image.error().context, HasSubstr(path_.file(2)));
}

TEST_F(DamagedJournal, WhatNobodyCanSayWhoseItIsIsNeverSwept) {
    flip(volume_, path_.file(1), kJournalMagic.size());
    JournalSweeper sweeper(volume_, {.broker = base::BrokerId{1}, .incarnation = {}});
    JournalReaders readers(volume_, {.broker = base::BrokerId{1}, .incarnation = {}});
    ASSERT_TRUE(readers.open(path_.name, owner_));
    for (const auto partition : {0, 1, 2})
        readers.superseded(key(partition).partition, base::LeaderEpoch{1}, session_);
    ASSERT_TRUE(sweeper.sweep([](const JournalKey&) { return false; }, session_));
    EXPECT_EQ(volume_.list(std::string(JournalPath::kParent))->size(), 1U);
}

/// Three logs whose last batches are in the journal alone.
class LogsOfADamagedJournal : public testing::PartitionLogTest {
protected:
    static constexpr std::int32_t kLogs = 3;

    [[nodiscard]] static std::string directory(std::int32_t log) {
        return "topic.AAAAAAAAAAAAAAAAAAAAAA/" + std::to_string(log);
    }
    [[nodiscard]] static Result<LogPtr> open(LogDir& log_dir, std::int32_t log,
                                             std::int32_t epoch) {
        return PartitionLog::open({.log_dir = &log_dir,
                                   .directory = directory(log),
                                   .epoch = base::LeaderEpoch{epoch},
                                   .earlier = candidates_below(log_dir.volume(), epoch, 0, false),
                                   .config = {}});
    }

    void SetUp() override {
        std::vector<LogPtr> logs;
        for (std::int32_t i = 0; i < kLogs; ++i) logs.push_back(*open(log_dir_, i, 0));
        for (const auto* value : {"first", "second", "third"}) {
            for (auto& log : logs) {
                testing::Answer answer;
                ASSERT_TRUE(append(*log, {.value = value}, answer));
                while (log_dir_.run_cycle()) {
                }
                ASSERT_TRUE(answer.good());
            }
        }
        for (auto& log : logs) log->abandon(ErrorCode::kClosed);
        log_dir_.stop();
    }

    /// Where the header of a log's entry stands.
    [[nodiscard]] std::pair<std::string, std::uint64_t> place(std::int32_t log, std::int64_t base) {
        const auto image = JournalImage::read(volume_, path_.name);
        EXPECT_TRUE(image);
        for (const auto& piece : (*image)->of(*journal_key(directory(log), base::LeaderEpoch{0}))) {
            if (piece.extent.base == base::Offset{base})
                return {*piece.path, piece.extent.position - kJournalEntryHeader};
        }
        ADD_FAILURE() << "no such entry";
        return {};
    }
    void expect_whole(std::int32_t log) {
        const auto opened = open(broker_->log_dir, log, 1);
        ASSERT_TRUE(opened) << opened.error().context;
        EXPECT_EQ(*read_values(**opened), (std::vector<std::string>{"first", "second", "third"}));
    }
    void expect_refused(std::int32_t log, const std::string& file, std::uint64_t position) {
        const auto opened = open(broker_->log_dir, log, 1);
        ASSERT_FALSE(opened);
        EXPECT_EQ(opened.error().code, ErrorCode::kCorrupt);
        EXPECT_THAT(opened.error().context, HasSubstr(file + " at " + std::to_string(position)));
    }

    TestingSession session_;
    base::InlineExecutor pool_;
    const Owner owner_{.broker = base::BrokerId{1}, .incarnation = {base::Uuid::random()}};
    const JournalPath path_ = JournalPath::of(owner_);
    LogDir log_dir_{{.volume = &volume_,
                     .session = &session_,
                     .io_pool = &pool_,
                     .clock = &clock_,
                     .owner = owner_,
                     .journal = true,
                     .journal_file_bytes = 64 * 1024}};
};

TEST_F(LogsOfADamagedJournal, TheLogWhoseBatchIsDamagedIsRefusedAndTheOthersOpen) {
    const auto [file, at] = place(1, 2);
    volume_.crash();
    flip(volume_, file, at + kJournalEntryHeader + 70);
    expect_whole(0);
    expect_refused(1, file, at + kJournalEntryHeader);
    expect_whole(2);
}

TEST_F(LogsOfADamagedJournal, ABatchThatItsSegmentHasIsNotMissed) {
    const auto [file, at] = place(1, 2);
    flip(volume_, file, at + kJournalEntryHeader + 70);
    for (std::int32_t i = 0; i < kLogs; ++i) expect_whole(i);
}

TEST_F(LogsOfADamagedJournal, WhereNobodyCanSayWhoseOnlyThoseWithALaterEntryOpen) {
    const auto [file, at] = place(1, 2);
    volume_.crash();
    flip(volume_, file, at + 20);
    expect_refused(0, file, at);
    expect_refused(1, file, at);
    expect_whole(2);
}

TEST_F(LogsOfADamagedJournal, AHoleInTheOffsetsIsRefused) {
    const auto [file, at] = place(0, 1);
    volume_.crash();
    flip(volume_, file, at + 20);
    const auto opened = open(broker_->log_dir, 0, 1);
    ASSERT_FALSE(opened);
    EXPECT_THAT(opened.error().context, AllOf(HasSubstr("good up to offset 1"), HasSubstr(file)));
    expect_whole(1);
    expect_whole(2);
}

}  // namespace
}  // namespace kaas::storage
