#pragma once

// A group slot with a journal in memory, virtual time, and members that are easy to write down.

#include "base/bytes.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/metrics.h"
#include "base/timer_queue.h"
#include "base/uuid.h"
#include "coordinator/group_config.h"
#include "coordinator/group_metrics.h"
#include "coordinator/group_requests.h"
#include "coordinator/group_slot.h"
#include "coordinator/testing_journal.h"
#include "storage/testing_seeds.h"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::coordinator::testing {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// An answer that may come later.
template <class Answer>
class Reply {
public:
    [[nodiscard]] Done<Answer> done() {
        return [place = place_](Answer answer) {
            EXPECT_FALSE(place->has_value()) << "answered twice";
            *place = std::move(answer);
        };
    }
    [[nodiscard]] bool came() const { return place_->has_value(); }
    [[nodiscard]] const Answer& operator*() const { return place_->value(); }
    [[nodiscard]] const Answer* operator->() const { return &place_->value(); }

private:
    std::shared_ptr<std::optional<Answer>> place_ = std::make_shared<std::optional<Answer>>();
};

/// What a consumer tells its leader: Apache `ConsumerProtocolSubscription` version 0.
[[nodiscard]] inline std::string subscription(const std::vector<std::string>& topics) {
    std::string bytes(2, '\0');
    const auto put = [&](auto value) {
        std::byte raw[sizeof(value)];
        base::store_be(static_cast<std::byte*>(raw), value);
        bytes += base::as_text(raw);
    };
    put(static_cast<std::int32_t>(topics.size()));
    for (const auto& topic : topics) {
        put(static_cast<std::int16_t>(topic.size()));
        bytes += topic;
    }
    put(std::int32_t{-1});
    return bytes;
}

/// A group slot as a broker would run it, by hand.
class TestSlot {
public:
    explicit TestSlot(GroupConfig with = {}) : config(with) { open({}); }
    ~TestSlot() { end(); }

    [[nodiscard]] GroupSlot& operator*() { return *slot_; }
    [[nodiscard]] GroupSlot* operator->() { return slot_.get(); }

    /// Lets time pass, timer by timer; everything is durable at once, or nothing is.
    void pass(milliseconds time, bool durable = true) {
        if (durable) settle();
        const auto until = clock.now() + time;
        while (true) {
            const auto next = timers.next_deadline();
            const auto stop = next && *next < until ? *next : until;
            if (stop > clock.now()) {
                clock.advance(std::chrono::duration_cast<milliseconds>(stop - clock.now()));
            }
            bool ran = false;
            while (auto work = timers.take_due(clock.now())) {
                work();
                if (durable) settle();
                ran = true;
            }
            if (!ran && clock.now() >= until) return;
        }
    }
    /// Everything is durable, and what follows from it too.
    void settle() { journal->settle_all(); }
    /// The broker dies; another one loads what its journal says, all of it or a beginning.
    void restart(std::size_t lines = ~std::size_t{0}) {
        auto kept = journal->lines;
        kept.resize(std::min(lines, kept.size()));
        end();
        open(kept);
    }
    /// The journal begins anew.
    void rotate() {
        beginning_ = slot_->picture();
        journal->rotate();
    }
    /// What a reader makes of the journal.
    [[nodiscard]] boost::json::object reloaded() {
        base::metrics::Registry unseen;
        GroupMetrics others(unseen);
        ManualJournal unused;
        GroupSlot copy(unused, timers, clock, config, others);
        load(copy, journal->lines);
        return copy.picture();
    }
    [[nodiscard]] const std::string& last_line() const { return journal->lines.back(); }

    base::ManualClock clock;
    base::TimerQueue timers;
    base::metrics::Registry registry;
    GroupMetrics metrics{registry};
    GroupConfig config;
    std::unique_ptr<ManualJournal> journal;

private:
    static base::Uuid next_id() {
        static std::uint64_t last = 0;
        base::Uuid id;
        base::store_be(reinterpret_cast<std::byte*>(id.bytes.data()) + 8, ++last);
        return id;
    }
    void load(GroupSlot& slot, const std::vector<std::string>& lines) const {
        auto loaded = slot.load_picture(beginning_);
        ASSERT_TRUE(loaded) << loaded.error().context;
        for (const auto& line : lines) {
            loaded = slot.load_change(boost::json::parse(line).as_object());
            ASSERT_TRUE(loaded) << loaded.error().context << ": " << line;
        }
    }
    void open(const std::vector<std::string>& lines) {
        journal = std::make_unique<ManualJournal>();
        slot_ = std::make_unique<GroupSlot>(*journal, timers, clock, config, metrics, &next_id);
        load(*slot_, lines);
        beginning_ = slot_->picture();
        journal->at_append = [this] { check_picture(); };
        slot_->start();
    }
    /// A picture that the journal begins with stands for all that was appended until then.
    void check_picture() {
        EXPECT_EQ(slot_->picture(), reloaded())
            << "appended before it was applied: " << last_line();
    }
    void end() {
        if (slot_ == nullptr) return;
        slot_->close();
        journal->settle_waiting(false);
        slot_.reset();
        EXPECT_EQ(timers.size(), 0U) << "a timer outlives its slot";
    }

    storage::testing::QuietLog quiet_;
    std::unique_ptr<GroupSlot> slot_;
    boost::json::object beginning_;  ///< of the journal
};

}  // namespace kaas::coordinator::testing
