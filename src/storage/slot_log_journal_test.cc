// Goal: with a broker journal, many slots settle by one sync; what only the journal has comes back
// to where it belongs; it is kept until the slot's file has it, and no longer; and what is damaged
// there is never left out in silence. Method: single steps of a log dir, a volume in memory whose
// machine dies, bytes flipped.

#include "base/clock.h"
#include "storage/journal.h"
#include "storage/journal_sweeper.h"
#include "storage/memory_volume.h"
#include "storage/testing_slot.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

using namespace std::chrono_literals;
using testing::SlotLife;
using testing::TestingSlot;
using Values = TestingSlot::Values;

class SlotLogJournalTest : public ::testing::Test {
public:
    ~SlotLogJournalTest() override { kill(); }

protected:
    SlotLogJournalTest() {
        testing::make_slots_parent(volume_);
        restart();
    }

    /// Its destructor would close the journal, as an orderly end does; a dead process does not.
    void kill() {
        if (life_) life_->session.fenced = true;
        life_.reset();
    }
    void restart() {
        kill();
        life_ = std::make_unique<SlotLife>(volume_, clock_, true);
    }
    void power_cut() {
        kill();
        volume_.crash();
        restart();
    }
    TestingSlot open(std::int32_t slot, std::int32_t epoch, std::int32_t lowest = 0) {
        auto opened = life_->open(slot, epoch, lowest);
        EXPECT_TRUE(opened) << opened.error().context;
        return opened ? std::move(*opened) : TestingSlot{};
    }
    /// A slot whose picture is durable, so that what comes next goes to the journal.
    TestingSlot begun(std::int32_t slot) {
        auto opened = open(slot, 0);
        opened.add("first");
        EXPECT_TRUE(life_->settles(opened));
        opened.add("second");  // of the first slot: finds no room yet, and asks for it
        EXPECT_TRUE(life_->settles(opened));
        return opened;
    }
    /// How often `operation` is called while `work` runs.
    template <class Work>
    int count(Operation operation, const Work& work) {
        int calls = 0;
        volume_.set_hook([&](const MemoryVolume::Step& step) {
            calls += step.operation == operation ? 1 : 0;
            return std::nullopt;
        });
        work();
        volume_.set_hook({});
        return calls;
    }
    [[nodiscard]] Journal& journal() const { return *life_->log_dir.journal(); }
    [[nodiscard]] std::string journal_file() const {
        return JournalPath::of(life_->log_dir.options().owner).file(1);
    }

    MemoryVolume volume_;
    base::ManualClock clock_;
    std::unique_ptr<SlotLife> life_;
};

TEST_F(SlotLogJournalTest, ManySlotsSettleByOneSync) {
    std::vector<TestingSlot> slots;
    for (std::int32_t i = 0; i < 50; ++i) slots.push_back(begun(i));
    int answers = 0;
    const auto syncs = count(Operation::kSync, [&] {
        for (auto& slot : slots) {
            slot.add("third");
            slot.log->settle(life_->executor,
                             [&](const Result<void>& outcome) { answers += outcome ? 1 : 0; });
        }
        life_->run();
    });
    EXPECT_EQ(answers, 50);
    EXPECT_EQ(syncs, 1);
    power_cut();
    for (std::int32_t i = 0; i < 50; ++i)
        EXPECT_EQ(open(i, 1).values, (Values{"first", "second", "third"})) << i;
}

TEST_F(SlotLogJournalTest, WhatOnlyTheJournalHasMustStandInTheTakersPictureFirst) {
    auto slot = begun(3);
    for (int i = 0; i < 3; ++i) {
        slot.add(fmt::format("value {}", i));
        EXPECT_TRUE(life_->settles(slot));
    }
    power_cut();
    const auto taken = open(3, 1);
    EXPECT_EQ(taken.values, slot.values);
    EXPECT_TRUE(taken.log->must_write_picture());
    EXPECT_FALSE(taken.log->written_epoch());
    taken.offer_picture();
    EXPECT_TRUE(life_->settles(taken));
    EXPECT_EQ(taken.log->written_epoch(), base::LeaderEpoch{1});
    power_cut();
    EXPECT_EQ(open(3, 2).values, slot.values);
}

TEST_F(SlotLogJournalTest, AHintThatOnlyTheFileHadLeavesNoHole) {
    auto slot = begun(3);
    clock_.advance(6s);
    life_->run();  // the file is synced, and a line says so, which is not
    slot.add("third");
    EXPECT_TRUE(life_->settles(slot));
    power_cut();
    EXPECT_EQ(open(3, 1).values, (Values{"first", "second", "third"}));
}

TEST_F(SlotLogJournalTest, ASyncedFileLetsTheJournalGo) {
    auto slot = begun(3);
    // So much that the journal goes on in another file.
    while (journal().files() < 2) {
        slot.add(std::string(200, '.'));
        EXPECT_TRUE(life_->settles(slot));
        clock_.advance(1ms);
    }
    clock_.advance(6s);
    life_->run();
    EXPECT_EQ(journal().files(), 1U);
    power_cut();
    EXPECT_EQ(open(3, 1).values, slot.values);
}

TEST_F(SlotLogJournalTest, APictureLetsTheJournalGoOfAllBeforeIt) {
    auto slot = begun(3);
    while (journal().files() < 2) {
        slot.add(std::string(200, '.'));
        EXPECT_TRUE(life_->settles(slot));
    }
    slot.log->begin_file(slot.picture());
    life_->run();
    clock_.advance(6s);
    life_->run();  // its checkpoint finds nothing to sync
    EXPECT_EQ(journal().files(), 1U);
    power_cut();
    EXPECT_EQ(open(3, 1).values, slot.values);
}

TEST_F(SlotLogJournalTest, AFailedSyncOfTheFileEndsTheLogAndItsTakerHasTheJournal) {
    auto slot = begun(3);
    slot.add("third");
    EXPECT_TRUE(life_->settles(slot));
    volume_.fail_nth(Operation::kSync, 1, {});
    clock_.advance(6s);
    life_->run();
    EXPECT_TRUE(slot.log->failure());
    power_cut();
    EXPECT_EQ(open(3, 1).values, (Values{"first", "second", "third"}));
}

TEST_F(SlotLogJournalTest, AFailedSyncOfTheJournalEndsAllThatCountedOnIt) {
    auto one = begun(1);
    auto two = begun(2);
    volume_.fail_nth(Operation::kSync, 1, {});
    one.add("third");
    two.add("third");
    int failures = 0;
    const auto answer = [&](const Result<void>& outcome) { failures += outcome ? 0 : 1; };
    one.log->settle(life_->executor, answer);
    two.log->settle(life_->executor, answer);
    life_->run();
    EXPECT_EQ(failures, 2);
}

TEST_F(SlotLogJournalTest, WhatIsTooLargeForTheJournalIsSyncedInItsFile) {
    auto slot = begun(3);
    slot.add(std::string(70'000, '.'));
    EXPECT_TRUE(life_->settles(slot));
    slot.add("behind");
    EXPECT_TRUE(life_->settles(slot));
    power_cut();
    EXPECT_EQ(open(3, 1).values, slot.values);
}

TEST_F(SlotLogJournalTest, ADamagedEntryIsRefusedUnlessTheFileHasItsLines) {
    auto slot = begun(3);
    slot.add("third");
    EXPECT_TRUE(life_->settles(slot));
    slot.add("fourth");
    EXPECT_TRUE(life_->settles(slot));
    const auto path = journal_file();
    auto text = *read_whole(volume_, path, 1 << 20);
    auto file = *volume_.open(path, OpenMode::kReadWrite);
    const auto flipped = base::as_bytes(std::string_view("X"));
    ASSERT_TRUE(file->write_at(text.find("third"), {&flipped, 1}));
    ASSERT_TRUE(file->sync());
    file.reset();
    restart();  // the process dies, and the file keeps what was written
    EXPECT_EQ(open(3, 1).values, (Values{"first", "second", "third", "fourth"}));
    power_cut();
    const auto refused = life_->open(3, 2);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kCorrupt);
    EXPECT_NE(refused.error().context.find("damaged and nowhere else"), std::string::npos)
        << refused.error().context;
}

TEST_F(SlotLogJournalTest, AnOrderlyEndLeavesNoJournal) {
    auto slot = begun(3);
    EXPECT_TRUE(slot.log->release(0ms));
    life_->log_dir.stop();
    EXPECT_TRUE(volume_.list(std::string(JournalPath::kParent))->empty());
}

TEST_F(SlotLogJournalTest, ADeletedSlotPinsNoJournal) {
    auto slot = begun(3);
    slot.log->drop();
    life_->log_dir.stop();
    EXPECT_TRUE(volume_.list(std::string(JournalPath::kParent))->empty());
}

TEST_F(SlotLogJournalTest, ADeadLifesJournalGoesOnceItsSlotsHaveTheirPictures) {
    auto one = begun(1);
    auto two = begun(2);
    restart();
    const auto journals = [&] { return volume_.list(std::string(JournalPath::kParent))->size(); };
    EXPECT_EQ(journals(), 1U);
    for (const std::int32_t i : {1, 2}) {
        const auto slot = open(i, 1);
        slot.offer_picture();
        EXPECT_TRUE(life_->settles(slot));
        EXPECT_EQ(journals(), 1U) << "slot 2 needs it, or its own picture is too fresh";
        clock_.advance(6s);
        life_->run();
    }
    EXPECT_EQ(journals(), 0U);
}

TEST_F(SlotLogJournalTest, ASweepKeepsWhatASlotMayNeed) {
    auto slot = begun(3);
    slot.add("third");
    EXPECT_TRUE(life_->settles(slot));
    restart();
    JournalSweeper sweeper(volume_, life_->log_dir.options().owner);
    const auto journals = [&] { return volume_.list(std::string(JournalPath::kParent))->size(); };
    std::vector<JournalKey> asked;
    const auto answer = [&](bool needed) {
        return [&asked, needed](const JournalKey& key) {
            asked.push_back(key);
            return needed;
        };
    };
    EXPECT_TRUE(sweeper.sweep(answer(true), life_->session));
    EXPECT_EQ(journals(), 1U);
    EXPECT_EQ(asked, (std::vector{JournalKey{.partition = {.topic = testing::slots_topic(),
                                                           .partition = base::PartitionId{3}},
                                             .epoch = base::LeaderEpoch{0}}}));
    EXPECT_TRUE(sweeper.sweep(answer(false), life_->session));
    EXPECT_EQ(journals(), 0U);
}

}  // namespace
}  // namespace kaas::storage
