// Goal: epochs are told apart as by Apache's LeaderEpochFileCache. Method: one history, a table of
// questions; the answers for -1 and -2 are those of a running 4.4 broker.

#include "storage/leader_epochs.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace kaas::storage {
namespace {

using base::LeaderEpoch;
using base::Offset;

[[nodiscard]] LeaderEpochs history() {
    LeaderEpochs epochs;
    epochs.assign(LeaderEpoch{2}, Offset{0});
    epochs.assign(LeaderEpoch{4}, Offset{10});
    epochs.assign(LeaderEpoch{7}, Offset{25});
    return epochs;
}

TEST(LeaderEpochsTest, TellsWhereAnEpochEnded) {
    const auto epochs = history();
    const Offset end{40};
    struct Row {
        std::int32_t asked, epoch;
        std::int64_t offset;
    };
    for (const auto& row :
         {Row{2, 2, 10}, Row{3, 2, 10}, Row{4, 4, 25}, Row{5, 4, 25}, Row{6, 4, 25}, Row{7, 7, 40},
          Row{8, -1, -1}, Row{-1, -1, -1}, Row{1, 1, 0}, Row{-2, -2, 0}}) {
        EXPECT_EQ(epochs.end_of(LeaderEpoch{row.asked}, end),
                  (LeaderEpochs::End{LeaderEpoch{row.epoch}, Offset{row.offset}}))
            << row.asked;
    }
    EXPECT_EQ(LeaderEpochs{}.end_of(LeaderEpoch{0}, end), LeaderEpochs::End{});
}

TEST(LeaderEpochsTest, AnEpochThatWroteNothingIsForgotten) {
    auto epochs = history();
    epochs.assign(LeaderEpoch{8}, Offset{40});
    epochs.assign(LeaderEpoch{9}, Offset{40});
    EXPECT_EQ(epochs.latest(), LeaderEpoch{9});
    EXPECT_EQ(epochs.end_of(LeaderEpoch{8}, Offset{50}),
              (LeaderEpochs::End{LeaderEpoch{7}, Offset{40}}));
}

TEST(LeaderEpochsTest, AnOlderEpochChangesNothing) {
    auto epochs = history();
    epochs.assign(LeaderEpoch{7}, Offset{30});
    epochs.assign(LeaderEpoch{3}, Offset{5});
    EXPECT_EQ(epochs.starts(), history().starts());
}

TEST(LeaderEpochsTest, TellsWhoWroteAnOffset) {
    const auto epochs = history();
    EXPECT_EQ(epochs.at(Offset{0}), LeaderEpoch{2});
    EXPECT_EQ(epochs.at(Offset{9}), LeaderEpoch{2});
    EXPECT_EQ(epochs.at(Offset{10}), LeaderEpoch{4});
    EXPECT_EQ(epochs.at(Offset{1000}), LeaderEpoch{7});
    EXPECT_FALSE(LeaderEpochs{}.at(Offset{0}));
}

}  // namespace
}  // namespace kaas::storage
