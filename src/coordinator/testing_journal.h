#pragma once

#include "coordinator/slot_writer.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::coordinator::testing {

/// A journal that makes durable what it is told to.
class ManualJournal final : public SlotWriter {
public:
    void append(std::string change) override {
        lines.push_back(std::move(change));
        if (at_append) at_append();
    }
    void settle(Settled done) override { waiting_.push_back({lines.size(), std::move(done)}); }

    /// Makes durable what the first that waits asked for. False when nobody waits.
    bool settle_one(bool good = true) {
        if (waiting_.empty()) return false;
        auto [upto, done] = std::move(waiting_.front());
        waiting_.pop_front();
        if (good) durable = std::max(durable, upto);
        done(good);
        return true;
    }
    /// All who wait now, but not who comes to wait by that.
    void settle_waiting(bool good = true) {
        for (auto count = waiting_.size(); count > 0; --count) settle_one(good);
    }
    void settle_all() {
        while (settle_one()) {
        }
    }
    [[nodiscard]] bool anybody_waits() const { return !waiting_.empty(); }
    /// The file begins anew with a picture, which is durable at once.
    void rotate() {
        lines.clear();
        durable = 0;
        for (auto& [upto, done] : waiting_) upto = 0;
    }

    /// Runs within each `append`, as a host does that takes a picture there.
    std::function<void()> at_append;
    std::vector<std::string> lines;
    std::size_t durable = 0;  ///< lines

private:
    std::deque<std::pair<std::size_t, Settled>> waiting_;
};

}  // namespace kaas::coordinator::testing
