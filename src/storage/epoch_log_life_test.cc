// Goal: a machine that dies, or a call that fails, at any step of a log's life loses nothing that
// was durable. Method: one scripted life with everything in it is cut at each file operation, on a
// MemoryVolume.
#include "base/result.h"
#include "storage/epoch_log.h"
#include "storage/epoch_reader.h"
#include "storage/error.h"
#include "storage/memory_volume.h"
#include "storage/session_check.h"
#include "storage/testing_session.h"
#include "storage/volume.h"

#include <boost/json/value_from.hpp>
#include <boost/json/value_to.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

namespace json = boost::json;

/// More than any scenario here takes.
constexpr std::uint64_t kManySteps = 200;

/// A whole life of a log. Runs until something fails; says what it was told is durable.
struct Life {
    std::vector<std::int64_t> written;  ///< every change, in order
    std::size_t durable = 0;            ///< so many of them, for certain
    bool opened = false;
    std::optional<Error> failed;
    bool ended = false;  ///< the log itself says so

    Result<void> change(EpochLog& log) {
        written.push_back(static_cast<std::int64_t>(written.size()));
        return log.append({{"v", written.back()}});
    }
    json::object picture() const { return {{"vs", json::value(json::value_from(written))}}; }
    Result<void> sync(EpochLog& log) {
        KAAS_TRY(log.sync());
        durable = written.size();
        return {};
    }
    Result<void> roll(EpochLog& log) {
        KAAS_TRY(log.roll(picture()));
        durable = written.size();
        return {};
    }
    Result<void> live(EpochLog& log, SessionCheck& session) {
        KAAS_TRY(change(log));
        KAAS_TRY(change(log));
        KAAS_TRY(sync(log));
        log.rest();
        KAAS_TRY(log.append_synced());
        KAAS_TRY(change(log));
        KAAS_TRY(roll(log));
        KAAS_TRY(change(log));
        KAAS_TRY(sync(log));
        log.rest();
        KAAS_TRY(change(log));
        KAAS_TRY(roll(log));
        KAAS_TRY(log.remove_superseded(session));
        KAAS_TRY(change(log));
        KAAS_TRY(roll(log));
        KAAS_TRY(log.remove_superseded(session));
        KAAS_TRY(change(log));
        KAAS_TRY(sync(log));
        KAAS_TRY(log.append_synced());
        KAAS_TRY(change(log));
        KAAS_TRY(log.release());
        durable = written.size();
        return {};
    }
    void run(Volume& volume, const EpochLogPath& path, SessionCheck& session) {
        auto log = EpochLog::create(volume, path, 1, picture());
        if (!log) {
            failed = log.error();
            return;
        }
        opened = true;
        if (auto result = live(*log, session); !result) failed = result.error();
        // Sticky: whatever failed, nothing goes on.
        ended = log->ended_by() != nullptr;
        if (failed && ended) {
            EXPECT_EQ(log->append({{"v", -1}}), std::unexpected(*log->ended_by()));
            EXPECT_EQ(log->sync(), std::unexpected(*log->ended_by()));
            EXPECT_EQ(log->roll({}), std::unexpected(*log->ended_by()));
            EXPECT_EQ(log->release(), std::unexpected(*log->ended_by()));
            EXPECT_FALSE(log->wants_roll());
        }
    }
};

std::vector<std::int64_t> values_of(const EpochState& state, std::size_t lines) {
    auto values = json::value_to<std::vector<std::int64_t>>(state.picture.at("vs"));
    for (std::size_t i = 0; i < lines; ++i) {
        if (const auto* value = state.lines[i].object.if_contains("v"))
            values.push_back(value->as_int64());
    }
    return values;
}

/// What a taker finds must begin with what was durable and be the beginning of what was written.
void expect_found(const Life& life, const Result<std::optional<TakenEpoch>>& taken) {
    ASSERT_TRUE(taken) << taken.error().context;
    if (!*taken) {
        EXPECT_FALSE(life.opened) << "a durable picture is lost";
        return;
    }
    auto found = values_of((*taken)->state, (*taken)->state.lines.size());
    ASSERT_LE(found.size(), life.written.size());
    EXPECT_GE(found.size(), life.durable);
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], life.written[i]);
}

class EpochLogLifeTest : public testing::Test {
protected:
    EpochLogPath path_{.directory = "p", .kind = "manifest"};
    TestingSession session_;

    static void prepare(MemoryVolume& volume) {
        ASSERT_TRUE(volume.make_directory("p"));
        ASSERT_TRUE(volume.sync_directory(""));
    }
    Result<std::optional<TakenEpoch>> take(Volume& volume) {
        return take_over(path_, candidates_below(volume, 2, 1, false));
    }
};

TEST_F(EpochLogLifeTest, CrashAtEveryStepKeepsWhatWasDurable) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        for (std::uint64_t cut = 0; cut <= kManySteps; ++cut) {
            ASSERT_LT(cut, kManySteps) << "it never comes to its end";
            SCOPED_TRACE(fmt::format("seed {} cut {}", seed, cut));
            MemoryVolume volume;
            prepare(volume);
            volume.halt_at(volume.steps() + cut);
            Life life;
            life.run(volume, path_, session_);
            volume.crash(seed == 0 ? CrashFate{} : CrashFate{.seed = seed});
            expect_found(life, take(volume));
            if (HasFatalFailure() || !life.failed) break;
        }
    }
}

TEST_F(EpochLogLifeTest, WhatIsVouchedForOutlivesEveryCrash) {
    // A taker looks at each step of a living owner; then the machine dies and keeps only what was
    // synced.
    for (std::uint64_t cut = 0; cut <= kManySteps; ++cut) {
        SCOPED_TRACE(cut);
        ASSERT_LT(cut, kManySteps) << "it never comes to its end";
        MemoryVolume volume;
        prepare(volume);
        std::optional<EpochState> seen;
        std::uint64_t first = volume.steps();
        volume.set_hook([&](const MemoryVolume::Step& step) -> std::optional<Fault> {
            if (step.number == first + cut) {
                if (auto state = read_epoch(volume, path_, 1); state) seen = std::move(*state);
                volume.halt_at(0);
                return Fault{};
            }
            return std::nullopt;
        });
        Life life;
        life.run(volume, path_, session_);
        volume.set_hook(nullptr);
        volume.crash();
        auto state = read_epoch(volume, path_, 1);
        if (seen && seen->picture_vouched) {
            ASSERT_TRUE(state && *state) << "a picture that was vouched for is lost";
            auto before = values_of(*seen, seen->vouched_lines);
            auto after = values_of(**state, (*state)->lines.size());
            ASSERT_LE(before.size(), after.size());
            EXPECT_TRUE(std::equal(before.begin(), before.end(), after.begin()));
        }
        if (!life.failed) break;
    }
}

TEST_F(EpochLogLifeTest, EveryFaultEndsTheEpochAndLosesNothing) {
    const Operation kinds[] = {Operation::kCreate,        Operation::kOpen,
                               Operation::kMakeDirectory, Operation::kSyncDirectory,
                               Operation::kWrite,         Operation::kSync};
    for (auto kind : kinds) {
        for (auto effect : {Fault::Effect::kNone, Fault::Effect::kHalf, Fault::Effect::kWhole}) {
            for (std::uint64_t nth = 1; nth <= kManySteps; ++nth) {
                ASSERT_LT(nth, kManySteps) << "it never comes to its end";
                SCOPED_TRACE(fmt::format("{} {} effect {}", name_of(kind), nth, int(effect)));
                MemoryVolume volume;
                prepare(volume);
                volume.fail_nth(kind, nth, {ErrorCode::kNoSpace, effect});
                Life life;
                life.run(volume, path_, session_);
                if (!life.failed) break;
                EXPECT_EQ(life.failed->code, ErrorCode::kNoSpace);
                EXPECT_EQ(life.ended, life.opened) << "only a log that was never there cannot end";
                // As another process of a living machine sees it, and then as it is after a crash.
                expect_found(life, take(volume));
                volume.crash();
                expect_found(life, take(volume));
            }
        }
    }
}

TEST_F(EpochLogLifeTest, ForgottenSyncsAreCaught) {
    // The crash test above must fail when a kind of sync does nothing.
    for (auto kind : {Operation::kSync, Operation::kSyncDirectory}) {
        MemoryVolume volume;
        prepare(volume);
        volume.lie_about(kind);
        Life life;
        life.run(volume, path_, session_);
        volume.crash();
        auto taken = take(volume);
        EXPECT_FALSE(taken && *taken && (*taken)->state.lines.size() > 0) << name_of(kind);
    }
}

TEST_F(EpochLogLifeTest, RestingLogOpensItsFileForTheNextLine) {
    MemoryVolume volume;
    prepare(volume);
    auto log = EpochLog::create(volume, path_, 1, {});
    ASSERT_TRUE(log);
    int opens = 0;
    volume.set_hook([&](const MemoryVolume::Step& step) {
        opens += step.operation == Operation::kOpen ? 1 : 0;
        return std::optional<Fault>();
    });
    ASSERT_TRUE(log->append({{"v", 1}}));
    log->rest();
    ASSERT_TRUE(log->sync()) << "what is not durable yet keeps it from resting";
    EXPECT_EQ(opens, 0);
    log->rest();
    ASSERT_TRUE(log->append({{"v", 2}}));
    ASSERT_TRUE(log->sync());
    EXPECT_EQ(opens, 1);
    log->rest();
    ASSERT_TRUE(log->roll({{"all", 3}}));
    log->rest();
    ASSERT_TRUE(log->release());
    EXPECT_EQ(opens, 3);
}

}  // namespace
}  // namespace kaas::storage
