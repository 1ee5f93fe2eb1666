#pragma once

#include "base/executor.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "cluster/slot_host.h"
#include "storage/error.h"
#include "storage/slot_log.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <fmt/format.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// For tests: a host whose slots are lists of texts.
namespace kaas::cluster {

class ListHost final : public SlotHost {
public:
    using List = std::vector<std::string>;

    /// Where settles are answered.
    explicit ListHost(base::Executor& home) : home_(home) {}

    void open(SlotId id, storage::OpenedSlot slot, Served served) override KAAS_EXCLUDES(mutex_) {
        auto one = std::make_shared<Slot>();
        one->log = slot.log;
        if (slot.inherited) {
            for (const auto& value : slot.inherited->picture.at("list").as_array())
                one->list.emplace_back(value.as_string());
            for (const auto& change : slot.inherited->changes)
                one->list.emplace_back(change.at("add").as_string());
        }
        if (refusal) return served(std::unexpected(*refusal));
        if (slot.log->must_write_picture()) {
            slot.log->begin_file(picture_of(*one));
            slot.log->settle(home_,
                             [this, id, one, served = std::move(served)](auto settled) mutable {
                                 if (settled) serve(id, one);
                                 served(std::move(settled));
                             });
            return;
        }
        serve(id, one);
        served({});
    }

    void close(SlotId id, base::LeaderEpoch epoch, Left left) override KAAS_EXCLUDES(mutex_) {
        {
            base::MutexLock lock(mutex_);
            auto found = slots_.find(id);
            if (found != slots_.end() && found->second->log->epoch() == epoch) slots_.erase(found);
            if (hold_leaving) return held_.push_back(std::move(left));
        }
        left();
    }
    void let_leave() KAAS_EXCLUDES(mutex_) {
        std::vector<Left> held;
        {
            base::MutexLock lock(mutex_);
            held.swap(held_);
        }
        for (auto& left : held) left();
    }

    /// What the slot holds; empty while it is not served.
    [[nodiscard]] std::optional<List> list(SlotId id) const KAAS_EXCLUDES(mutex_) {
        base::MutexLock lock(mutex_);
        auto found = slots_.find(id);
        if (found == slots_.end()) return std::nullopt;
        return found->second->list;
    }
    /// Adds to a slot that is served; `done` tells whether it stands. False when it is not served.
    bool add(SlotId id, const std::string& text, std::function<void(bool)> done)
        KAAS_EXCLUDES(mutex_) {
        base::MutexLock lock(mutex_);
        auto found = slots_.find(id);
        if (found == slots_.end()) return false;
        auto& [log, list] = *found->second;
        list.push_back(text);
        log->append(fmt::format(R"({{"add":"{}"}})", text));
        if (log->wants_picture()) log->begin_file(picture_of(*found->second));
        log->settle(home_, [done = std::move(done)](const storage::Result<void>& outcome) {
            done(outcome.has_value());
        });
        return true;
    }

    std::optional<storage::Error> refusal;  ///< set: no slot is served
    bool hold_leaving = false;              ///< until `let_leave`

private:
    struct Slot {
        std::shared_ptr<storage::SlotLog> log;
        List list;
    };

    static boost::json::object picture_of(const Slot& slot) {
        return {{"list", boost::json::array(slot.list.begin(), slot.list.end())}};
    }
    void serve(SlotId id, std::shared_ptr<Slot> slot) KAAS_EXCLUDES(mutex_) {
        base::MutexLock lock(mutex_);
        slots_[id] = std::move(slot);
    }

    base::Executor& home_;
    mutable base::Mutex mutex_;
    std::map<SlotId, std::shared_ptr<Slot>> slots_ KAAS_GUARDED_BY(mutex_);
    std::vector<Left> held_ KAAS_GUARDED_BY(mutex_);
};

}  // namespace kaas::cluster
