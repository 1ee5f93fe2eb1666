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
#include <gtest/gtest.h>

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

    void open(const SlotId& id, storage::OpenedSlot slot, Served served) override
        KAAS_EXCLUDES(mutex_) {
        if (refusal) return served(std::unexpected(*refusal));
        auto one = std::make_shared<Slot>();
        one->log = slot.log;
        if (slot.inherited) {
            for (const auto& value : slot.inherited->picture.at("list").as_array())
                one->list.emplace_back(value.as_string());
            for (const auto& change : slot.inherited->changes)
                one->list.emplace_back(change.at("add").as_string());
        }
        if (!slot.log->must_write_picture()) {
            serve(id, one);
            return served({});
        }
        slot.log->begin_file(picture_of(*one));
        slot.log->settle(home_, [this, id, one, served = std::move(served)](
                                    const storage::Result<void>& settled) mutable {
            if (settled) serve(id, one);
            served(settled);
        });
    }

    void close(const SlotId& id, std::move_only_function<void()> closed) override
        KAAS_EXCLUDES(mutex_) {
        {
            base::MutexLock lock(mutex_);
            slots_.erase(id);
            if (hold_leaving) return held_.push_back(std::move(closed));
        }
        closed();
    }
    /// The process dies.
    void forget() KAAS_EXCLUDES(mutex_) {
        base::MutexLock lock(mutex_);
        slots_.clear();
    }
    void let_leave() KAAS_EXCLUDES(mutex_) {
        std::vector<std::move_only_function<void()>> held;
        {
            base::MutexLock lock(mutex_);
            held.swap(held_);
        }
        for (auto& closed : held) closed();
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

    void serve(const SlotId& id, std::shared_ptr<Slot> slot) KAAS_EXCLUDES(mutex_) {
        base::MutexLock lock(mutex_);
        EXPECT_TRUE(slots_.emplace(id, std::move(slot)).second) << "opened twice";
    }
    static boost::json::object picture_of(const Slot& slot) {
        return {{"list", boost::json::array(slot.list.begin(), slot.list.end())}};
    }
    base::Executor& home_;
    mutable base::Mutex mutex_;
    std::map<SlotId, std::shared_ptr<Slot>> slots_ KAAS_GUARDED_BY(mutex_);
    std::vector<std::move_only_function<void()>> held_ KAAS_GUARDED_BY(mutex_);
};

}  // namespace kaas::cluster
