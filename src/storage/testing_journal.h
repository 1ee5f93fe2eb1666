#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/uuid.h"
#include "storage/journal.h"
#include "storage/manifest.h"
#include "storage/memory_volume.h"
#include "storage/testing_session.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace kaas::storage::testing {

/// Whose entries: a partition of a topic that all tests of journals share.
[[nodiscard]] inline JournalKey key(std::int32_t partition, std::int32_t epoch = 0) {
    return {.partition = {.topic = {}, .partition = base::PartitionId{partition}},
            .epoch = base::LeaderEpoch{epoch}};
}

/// What a journal needs: a volume in memory, and a broker whose work is done inline.
class JournalFixture : public ::testing::Test {
protected:
    MemoryVolume volume_;
    TestingSession session_;
    base::InlineExecutor inline_;
    base::ManualClock clock_;
    const Owner owner_{.broker = base::BrokerId{1}, .incarnation = {base::Uuid::random()}};
    const JournalPath path_ = JournalPath::of(owner_);
};

}  // namespace kaas::storage::testing
