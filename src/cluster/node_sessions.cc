#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/result.h"
#include "cluster/away.h"
#include "cluster/controller.h"
#include "cluster/error.h"
#include "cluster/node_impl.h"
#include "cluster/place.h"
#include "cluster/roll_call.h"
#include "cluster/session.h"
#include "cluster/uplink.h"
#include "cluster/volume_watch.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

/// What a node does about sessions of its own that were ended, and volumes that do not answer it.
namespace kaas::cluster {

/// The controller does not know a session of this life: perhaps it is marked.
void Node::Impl::look_at_sessions() {
    for (const auto& member : members()) {
        [[maybe_unused]] const auto checked = member.session->confirm();  // which remembers
    }
    renew_fenced_sessions();
}

void Node::Impl::renew_fenced_sessions() {
    bool renewed = false;
    for (const auto& member : members()) {
        if (!member.session->fenced() || draining_) continue;
        auto fresh = renew_session(member);
        if (!fresh) {
            base::log::warn("cluster", "no new session on volume '{}' for now: {}",
                            member.volume.name, fresh.error().context);
            continue;
        }
        renewed = true;
    }
    if (!renewed || !joined_) return;
    if (role_ == Role::kReigning) {
        register_at_ = options_.clock->now();
    } else if (role_ == Role::kFollowing) {
        follow(followed_);
    }
}

Result<void> Node::Impl::renew_session(const Member& member) {
    const auto& volume = member.volume;
    base::log::warn("cluster", "the session on volume '{}' was ended: a new one is begun",
                    volume.name);
    metrics_->fences.add();
    KAAS_TRY_ASSIGN(session, Session::open(*volume.volume, options_.id));
    Member fresh{volume, std::move(session), nullptr};
    fresh.logs = make_logs(fresh);
    fresh.watch = make_watch(fresh);
    const Place place{volume.volume, fresh.logs.get(), fresh.session->incarnation()};
    retired_.push_back(member);
    {
        base::MutexLock lock(members_mutex_);
        for (auto& one : members_) {
            if (one.volume.name == volume.name) one = fresh;
        }
    }
    table_->replace_place(volume.name, place);
    if (slots_ && volume.name == survey_.slot_volume) slots_->replace_place(volume.name, place);
    return {};
}

std::shared_ptr<VolumeWatch> Node::Impl::make_watch(const Member& member) const {
    if (alone()) return nullptr;
    return std::make_shared<VolumeWatch>(member.session, *options_.clock, options_.beat_interval);
}

/// Others may reach what this broker does not: they get what it has there.
void Node::Impl::see_what_is_away(const std::vector<Member>& members) {
    const auto since = options_.clock->now() - options_.session_timeout;
    const auto image = table_->image();
    const auto* self = image->broker(options_.id);
    std::vector<std::string> unwell;
    auto away = std::make_shared<Away>();
    for (const auto& member : members) {
        const auto& name = member.volume.name;
        const auto life = member.session->incarnation();
        const bool is_unwell = member.watch && member.watch->answered() <= since;
        if (is_unwell) unwell.push_back(name);
        if (is_unwell || member.session->fenced()) away->lives.insert(life);
        if (self == nullptr) continue;
        const auto given = self->sessions.find(name);
        if (given != self->sessions.end() && given->second != life)
            away->lives.insert(given->second);
    }
    away->cut_off = !away->lives.empty() && in_touch_.load() <= since;
    {
        base::MutexLock lock(away_mutex_);
        anything_away_ = !away->lives.empty();
        away_ = std::move(away);
    }
    if (unwell.empty()) return;
    if (reports_elsewhere()) {
        uplink_->report({.unwell = std::move(unwell)});
    } else {
        roll_call_->unwell(options_.id, unwell);
    }
}

std::shared_ptr<const Away> Node::Impl::away() const {
    base::MutexLock lock(away_mutex_);
    return away_;
}

}  // namespace kaas::cluster
