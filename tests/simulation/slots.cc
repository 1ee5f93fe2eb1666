#include "slots.h"

#include "base/ids.h"
#include "base/mutex.h"
#include "cluster/slot_host.h"
#include "ledger.h"
#include "storage/error.h"
#include "storage/slot_log.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <fmt/format.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kaas::simulation {
namespace {

boost::json::object picture_of(const std::vector<std::string>& list) {
    return {{"list", boost::json::array(list.begin(), list.end())}};
}

}  // namespace

void ListKeeper::open(const cluster::SlotId& id, storage::OpenedSlot opened, Served served) {
    auto slot = std::make_shared<Slot>();
    slot->log = opened.log;
    if (opened.inherited) {
        for (const auto& text : opened.inherited->picture.at("list").as_array()) {
            slot->list.emplace_back(text.as_string());
        }
        for (const auto& change : opened.inherited->changes) {
            slot->list.emplace_back(change.at("add").as_string());
        }
    }
    if (!slot->log->must_write_picture()) {
        serve(id, slot);
        return served({});
    }
    slot->log->begin_file(picture_of(slot->list));
    slot->log->settle(home_, [this, id, slot, served = std::move(served)](
                                 const storage::Result<void>& settled) mutable {
        if (settled) serve(id, slot);
        served(settled);
    });
}

void ListKeeper::serve(const cluster::SlotId& id, const std::shared_ptr<Slot>& slot) {
    ledger_.slot_opened(id, slot->log->epoch(), process_, slot->list);
    base::MutexLock lock(mutex_);
    if (!slots_.emplace(id, slot).second) ledger_.violated("a slot is opened twice");
}

void ListKeeper::close(const cluster::SlotId& id, std::move_only_function<void()> closed) {
    {
        base::MutexLock lock(mutex_);
        slots_.erase(id);
    }
    closed();
}

bool ListKeeper::add(const cluster::SlotId& id, const std::string& text,
                     std::function<void(bool)> done) {
    base::MutexLock lock(mutex_);
    const auto found = slots_.find(id);
    if (found == slots_.end()) return false;
    auto& slot = *found->second;
    slot.list.push_back(text);
    slot.log->append(fmt::format(R"({{"add":"{}"}})", text));
    if (slot.log->wants_picture()) slot.log->begin_file(picture_of(slot.list));
    slot.log->settle(home_, [this, id, text, epoch = slot.log->epoch(),
                             done = std::move(done)](const storage::Result<void>& outcome) {
        if (outcome) ledger_.slot_acked(id, epoch, text);
        done(outcome.has_value());
    });
    return true;
}

std::map<cluster::SlotId, std::pair<base::LeaderEpoch, std::vector<std::string>>>
ListKeeper::lists() {
    base::MutexLock lock(mutex_);
    std::map<cluster::SlotId, std::pair<base::LeaderEpoch, std::vector<std::string>>> lists;
    for (const auto& [id, slot] : slots_) lists[id] = {slot->log->epoch(), slot->list};
    return lists;
}

}  // namespace kaas::simulation
