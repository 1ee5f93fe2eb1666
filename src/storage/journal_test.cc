// Goal: the journal keeps what somebody needs, forgets the rest in the right order, and steps aside
// when it cannot go on. Method: one journal on a volume in memory, its work done inline; a reader
// as takers have it looks at what is there.

#include "storage/journal.h"

#include "storage/journal_reader.h"
#include "storage/journal_sweeper.h"
#include "storage/memory_volume.h"
#include "storage/testing_journal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace kaas::storage {
namespace {

using namespace std::chrono_literals;
using testing::key;

class JournalTest : public testing::JournalFixture {
protected:
    [[nodiscard]] std::shared_ptr<Journal> make() { return make(volume_); }
    [[nodiscard]] std::shared_ptr<Journal> make(Volume& volume) {
        return Journal::make({.volume = &volume,
                              .session = &session_,
                              .io_pool = &inline_,
                              .clock = &clock_,
                              .owner = owner_,
                              .file_bytes = 1000,
                              .most_files = 3});
    }
    /// False when there was no room.
    bool put(Journal& journal, const JournalKey& to, std::int64_t base, std::size_t bytes) {
        const std::string batch(bytes, 'b');
        const JournalEntry entry{.key = to,
                                 .base = base::Offset{base},
                                 .end = base::Offset{base + 1},
                                 .batches = {base::as_bytes(batch)}};
        // The first time asks for a file, which comes for the second.
        if (!journal.reserve(Journal::size_of(entry)) && !journal.reserve(Journal::size_of(entry)))
            return false;
        const auto* one = &entry;
        const auto done = journal.commit({&one, 1});
        if (!done) error_ = done.error();
        return done.has_value();
    }
    [[nodiscard]] std::vector<std::int64_t> offsets(const JournalKey& of) {
        const auto image = JournalImage::read(volume_, JournalPath::of(owner_).name);
        EXPECT_TRUE(image) << image.error().context;
        std::vector<std::int64_t> found;
        if (!image) return found;
        for (const auto& piece : (*image)->of(of)) found.push_back(piece.extent.base.value());
        return found;
    }
    /// As many files as there may be, each with an entry of partition 0 and 1.
    void fill(Journal& journal) {
        for (int i = 0; i < 3; ++i) {
            ASSERT_TRUE(put(journal, key(0), i, 300));
            ASSERT_TRUE(put(journal, key(1), i, 500));
        }
        ASSERT_EQ(journal.files(), 3U);
    }

    /// Used or not.
    [[nodiscard]] std::ptrdiff_t files_on_disk() {
        const auto names = volume_.list(path_.epoch_log().epoch_directory(0));
        EXPECT_TRUE(names) << names.error().context;
        return std::ranges::count_if(*names,
                                     [](const auto& name) { return name.ends_with(".journal"); });
    }

    using Offsets = std::vector<std::int64_t>;

    Error error_{};
};

TEST_F(JournalTest, EntriesAreThereAfterACrashOfTheMachine) {
    const auto journal = make();
    fill(*journal);
    volume_.crash();
    EXPECT_EQ(offsets(key(0)), (Offsets{0, 1, 2}));
    EXPECT_EQ(offsets(key(1)), (Offsets{0, 1, 2}));
    EXPECT_EQ(offsets(key(1, 1)), Offsets{}) << "of another epoch";
}

TEST_F(JournalTest, WithoutRoomItSaysSoAndGoesOnOnceThereIsSome) {
    const auto journal = make();
    fill(*journal);
    EXPECT_FALSE(put(*journal, key(0), 3, 300)) << "all files are needed";
    EXPECT_FALSE(put(*journal, key(0), 3, 2000)) << "more than a file holds";
    journal->recorded(key(0), base::Offset{1});
    journal->recorded(key(1), base::Offset{1});
    EXPECT_TRUE(put(*journal, key(0), 3, 300));
    EXPECT_EQ(offsets(key(0)), (Offsets{1, 2, 3}));
}

TEST_F(JournalTest, AFileStaysAsLongAsOneLogNeedsIt) {
    const auto journal = make();
    fill(*journal);
    journal->recorded(key(0), base::Offset{3});
    EXPECT_EQ(journal->files(), 3U) << "partition 1 has recorded nothing";
    journal->recorded(key(1), base::Offset{1});
    EXPECT_EQ(journal->files(), 2U);
    EXPECT_EQ(offsets(key(1)), (Offsets{1, 2}));
    journal->superseded(key(1).partition, base::LeaderEpoch{0});
    EXPECT_EQ(journal->files(), 2U) << "the epoch itself is not sealed";
    journal->superseded(key(1).partition, base::LeaderEpoch{1});
    EXPECT_EQ(journal->files(), 1U) << "the last one takes more";
}

TEST_F(JournalTest, NothingIsTrimmedByAnOwnerWhoseSessionIsOver) {
    const auto journal = make();
    fill(*journal);
    session_.fenced = true;
    journal->recorded(key(0), base::Offset{3});
    journal->recorded(key(1), base::Offset{3});
    EXPECT_EQ(offsets(key(0)), (Offsets{0, 1, 2})) << "whoever takes over may need it";
}

TEST_F(JournalTest, ATrimIsTornlessWhereverTheMachineHalts) {
    for (std::uint64_t step = 0; step < 12; ++step) {
        MemoryVolume volume;
        auto journal = Journal::make({.volume = &volume,
                                      .session = &session_,
                                      .io_pool = &inline_,
                                      .clock = &clock_,
                                      .owner = owner_,
                                      .file_bytes = 1000});
        const std::string batch(600, 'b');
        for (int i = 0; i < 4; ++i) {
            const JournalEntry entry{.key = key(0),
                                     .base = base::Offset{i},
                                     .end = base::Offset{i + 1},
                                     .batches = {base::as_bytes(batch)}};
            const auto* one = &entry;
            (void)journal->reserve(Journal::size_of(entry));
            if (i == 3) volume.halt_at(volume.steps() + step);
            if (i == 2) journal->recorded(key(0), base::Offset{2});  // the spare comes back as 4
            if (!journal->reserve(Journal::size_of(entry))) break;
            std::ignore = journal->commit({&one, 1});
        }
        volume.crash();
        const auto image = JournalImage::read(volume, path_.name);
        ASSERT_TRUE(image) << "step " << step << ": " << image.error().context;
        const auto pieces = (*image)->of(key(0));
        ASSERT_FALSE(pieces.empty()) << "step " << step;
        EXPECT_LE(pieces.front().extent.base, base::Offset{2}) << "step " << step;
    }
}

TEST_F(JournalTest, AfterAFailedSyncItTakesNothingAndKeepsWhatItHas) {
    const auto journal = make();
    ASSERT_TRUE(put(*journal, key(0), 0, 100));
    volume_.fail_nth(Operation::kSync, 1, {.code = ErrorCode::kIo});
    EXPECT_FALSE(put(*journal, key(1), 0, 100));
    EXPECT_EQ(error_.code, ErrorCode::kIo);
    EXPECT_FALSE(put(*journal, key(0), 1, 100));
    journal->close();
    EXPECT_EQ(offsets(key(0)), Offsets{0});
}

TEST_F(JournalTest, AFileThatCouldNotBeFilledDoesNotStay) {
    volume_.set_hook([](const MemoryVolume::Step& step) -> std::optional<Fault> {
        const bool fills = step.operation == Operation::kWrite && step.path.ends_with(".journal");
        if (!fills) return std::nullopt;
        return Fault{.code = ErrorCode::kNoSpace, .effect = Fault::Effect::kHalf};
    });
    const auto journal = make();
    for (int i = 0; i < 3; ++i) {
        EXPECT_FALSE(put(*journal, key(0), 0, 300));
        EXPECT_EQ(files_on_disk(), 0);
        clock_.advance(6s);
    }
    volume_.set_hook({});
    EXPECT_TRUE(put(*journal, key(0), 0, 300));
}

TEST_F(JournalTest, ASpareThatCannotBeUsedDoesNotStay) {
    for (const auto failing : {Operation::kRename, Operation::kSyncDirectory}) {
        SCOPED_TRACE(name_of(failing));
        const auto journal = make();
        fill(*journal);
        volume_.fail_nth(failing, 1, {.code = ErrorCode::kNoSpace});
        for (int i : {0, 1}) journal->recorded(key(i), base::Offset{2});
        EXPECT_EQ(journal->files(), 1U);
        EXPECT_EQ(files_on_disk(), 2) << "of two spares one is left";
        clock_.advance(6s);
        EXPECT_TRUE(put(*journal, key(0), 3, 300));
        EXPECT_EQ(offsets(key(0)), (Offsets{2, 3}));
        for (int i : {0, 1}) journal->recorded(key(i), base::Offset{4});
        journal->close();
    }
}

TEST_F(JournalTest, ATrimWithoutAnAnswerIsTriedAgain) {
    const auto journal = make();
    fill(*journal);
    session_.silent = true;
    for (int i : {0, 1}) journal->recorded(key(i), base::Offset{2});
    EXPECT_EQ(journal->files(), 3U);
    EXPECT_EQ(offsets(key(0)), (Offsets{0, 1, 2}));
    session_.silent = false;
    clock_.advance(6s);
    journal->recorded(key(0), base::Offset{2});
    EXPECT_EQ(journal->files(), 1U);
    EXPECT_EQ(offsets(key(0)), Offsets{2});
}

TEST_F(JournalTest, ATrimmedFileThatCouldNotBeUnlinkedIsTriedAgain) {
    volume_.set_local(false);  // where nothing is used again
    const auto journal = make();
    fill(*journal);
    volume_.fail_nth(Operation::kUnlink, 1, {.code = ErrorCode::kIo});
    for (int i : {0, 1}) journal->recorded(key(i), base::Offset{1});
    EXPECT_EQ(journal->files(), 3U);
    EXPECT_EQ(offsets(key(0)), (Offsets{1, 2})) << "its line stands";
    clock_.advance(6s);
    journal->recorded(key(0), base::Offset{1});
    EXPECT_EQ(journal->files(), 2U);
    EXPECT_FALSE(volume_.open(path_.file(1), OpenMode::kRead));
}

TEST_F(JournalTest, AFailureAtItsBeginningIsNotTheEnd) {
    // Three directories; then the probe, its own log, the first file.
    for (const auto failing : {Operation::kMakeDirectory, Operation::kCreate}) {
        for (std::uint64_t nth = 1; nth <= 3; ++nth) {
            SCOPED_TRACE(std::string(name_of(failing)) + " " + std::to_string(nth));
            MemoryVolume volume;
            const auto journal = make(volume);
            volume.fail_nth(failing, nth, {.code = ErrorCode::kTooManyOpen});
            EXPECT_FALSE(put(*journal, key(0), 0, 100));
            clock_.advance(6s);
            EXPECT_TRUE(put(*journal, key(0), 0, 100));
        }
    }
}

TEST_F(JournalTest, AJournalThatNobodyNeedsIsGoneAfterItsClose) {
    const auto journal = make();
    fill(*journal);
    journal->recorded(key(0), base::Offset{3});
    journal->recorded(key(1), base::Offset{3});
    journal->close();
    EXPECT_EQ(volume_.list("__journals"), std::vector<std::string>{});
    EXPECT_EQ(offsets(key(0)), Offsets{});
}

TEST_F(JournalTest, AJournalThatSomebodyNeedsStaysAfterItsClose) {
    const auto journal = make();
    fill(*journal);
    journal->recorded(key(0), base::Offset{3});
    journal->close();
    EXPECT_EQ(offsets(key(1)), (Offsets{0, 1, 2}));
}

TEST_F(JournalTest, ManyTrimsRollItsOwnLogAndLoseNothing) {
    const auto journal = make();
    for (int i = 0; i < 6000; ++i) {
        ASSERT_TRUE(put(*journal, key(0), i, 700)) << i;
        journal->recorded(key(0), base::Offset{i});
    }
    const auto names = volume_.list(path_.epoch_log().epoch_directory(0));
    ASSERT_TRUE(names);
    EXPECT_EQ(std::ranges::count_if(*names,
                                    [](const auto& name) { return name.starts_with("journal-"); }),
              2)
        << "it never rolled: a test of nothing";
    volume_.crash();
    EXPECT_EQ(offsets(key(0)).back(), 5999);
}

TEST_F(JournalTest, ElsewhereATakerClosesAJournalThatIsNotThere) {
    volume_.set_local(false);
    EXPECT_EQ(offsets(key(0)), Offsets{});
    const auto journal = make();
    EXPECT_FALSE(put(*journal, key(0), 0, 100)) << "entries that a taker would never see";
}

TEST_F(JournalTest, AFileThatIsListedAndLostIsAnError) {
    const auto journal = make();
    fill(*journal);
    ASSERT_TRUE(volume_.unlink(path_.file(2)));
    const auto image = JournalImage::read(volume_, path_.name);
    ASSERT_FALSE(image);
    EXPECT_EQ(image.error().code, ErrorCode::kCorrupt);
    EXPECT_NE(image.error().context.find(path_.file(2)), std::string::npos);
}

TEST_F(JournalTest, WhatAnEarlierIncarnationLeftGoesWhenAllOfItIsTakenOver) {
    const auto journal = make();
    fill(*journal);
    JournalReaders readers(volume_,
                           {.broker = owner_.broker, .incarnation = {base::Uuid::random()}});
    ASSERT_TRUE(readers.open(path_.name, owner_));
    readers.superseded(key(0).partition, base::LeaderEpoch{1}, session_);
    readers.superseded(key(1).partition, base::LeaderEpoch{0}, session_);
    EXPECT_EQ(offsets(key(1)), (Offsets{0, 1, 2})) << "its epoch is not sealed";
    readers.superseded(key(1).partition, base::LeaderEpoch{1}, session_);
    EXPECT_EQ(volume_.list("__journals"), std::vector<std::string>{});
    EXPECT_EQ(offsets(key(1)), Offsets{});
}

TEST_F(JournalTest, WhatNoRecoveryComesForIsSweptOnceNobodyNeedsIt) {
    const auto journal = make();
    fill(*journal);
    JournalSweeper other(volume_, {.broker = base::BrokerId{11}, .incarnation = {}});
    const auto nobody = [](const JournalKey&) { return false; };
    EXPECT_TRUE(other.sweep(nobody, session_));
    JournalSweeper own(volume_, owner_);
    EXPECT_TRUE(own.sweep(nobody, session_));
    EXPECT_EQ(offsets(key(1)), (Offsets{0, 1, 2})) << "of another broker, or of this very life";

    JournalSweeper next(volume_, {.broker = owner_.broker, .incarnation = {base::Uuid::random()}});
    EXPECT_TRUE(next.sweep([](const JournalKey& log) { return log == key(1); }, session_));
    EXPECT_EQ(offsets(key(1)), (Offsets{0, 1, 2})) << "one log is not taken over";
    const auto steps = volume_.steps();
    EXPECT_TRUE(next.sweep([](const JournalKey&) { return true; }, session_));
    EXPECT_EQ(volume_.steps(), steps + 1) << "listed again, not read again";
    session_.fenced = true;
    EXPECT_FALSE(next.sweep(nobody, session_));
    EXPECT_EQ(offsets(key(1)), (Offsets{0, 1, 2}));
    session_.fenced = false;
    EXPECT_TRUE(next.sweep(nobody, session_));
    EXPECT_EQ(volume_.list("__journals"), std::vector<std::string>{});
}

TEST_F(JournalTest, AHalfRemovedJournalIsNoDamage) {
    for (std::uint64_t step = 1; step < 9; ++step) {
        const auto journal = make();
        fill(*journal);
        volume_.halt_at(volume_.steps() + step);
        EXPECT_FALSE(remove_journal(volume_, path_, session_)) << step;
        volume_.crash({.seed = step});
        EXPECT_TRUE(JournalImage::read(volume_, path_.name)) << "step " << step;
        EXPECT_TRUE(remove_journal(volume_, path_, session_)) << step;
        std::ignore = volume_.remove_directory(path_.directory());  // may be all that was left
    }
}

TEST_F(JournalTest, WhatAnEarlierIncarnationLeftIsReadOnce) {
    const auto journal = make();
    fill(*journal);
    JournalReaders readers(volume_,
                           {.broker = owner_.broker, .incarnation = {base::Uuid::random()}});
    const auto first = readers.open(path_.name, owner_);
    ASSERT_TRUE(first);
    const auto steps = volume_.steps();
    EXPECT_EQ(*readers.open(path_.name, owner_), *first);
    EXPECT_EQ(volume_.steps(), steps);
    JournalReaders elsewhere(volume_, {.broker = base::BrokerId{2}, .incarnation = {}});
    EXPECT_NE(*elsewhere.open(path_.name, owner_), *elsewhere.open(path_.name, owner_))
        << "of a broker that may still write";
}

}  // namespace
}  // namespace kaas::storage
