#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/mutex.h"
#include "catalog/image.h"
#include "cluster/controller.h"
#include "cluster/error.h"
#include "cluster/roll_call.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

/// How sessions are ended: those of the dead, of earlier lives, and on volumes that do not answer
/// their broker.
namespace kaas::cluster {
namespace {

/// A mark that failed is tried again after so long.
constexpr std::chrono::seconds kRetry{1};

}  // namespace

void RollCall::mark_all(base::BrokerId id, const Sessions& sessions, Saying& saying) {
    auto& seen = seen_.at(id);
    seen.marking = sessions.size();
    seen.mark_failed.reset();
    const auto now = options_.clock->now();
    for (const auto& [volume, incarnation] : sessions) {
        seen.unproven.try_emplace(volume, Unproven{now});
        saying.push_back([this, id, volume, incarnation, reign = reign_] {
            options_.mark(id, volume, incarnation,
                          [weak = weak_from_this(), reign, id, volume,
                           incarnation](const Result<void>& outcome) {
                              auto self = weak.lock();
                              if (!self) return;
                              base::MutexLock lock(self->late_mutex_);
                              if (self->closed_) return;
                              self->marked(reign, id, volume, incarnation, outcome);
                          });
        });
    }
}

void RollCall::marked(std::uint64_t reign, base::BrokerId id, const std::string& volume,
                      const base::Incarnation& incarnation, const Result<void>& outcome) {
    Saying saying;
    {
        base::MutexLock lock(mutex_);
        auto found = seen_.find(id);
        if (!reigns_ || reign != reign_ || found == seen_.end()) return;
        auto& seen = found->second;
        if (!outcome) {
            seen.mark_failed = outcome.error();
            seen.unproven[volume].failed = true;
        } else {
            seen.unproven.erase(volume);
            marked_.insert(incarnation);
            saying.push_back([this, id, ended = Sessions{{volume, incarnation}}] {
                options_.controller->remove_sessions(
                    id, ended, {&here_, [](const Result<std::monostate>&) {}});
            });
        }
        if (--seen.marking > 0) return say(std::move(saying));
        if (std::exchange(seen.ends, false)) {
            if (seen.mark_failed) {  // once more, later
                base::log::warn("cluster", "broker {} is not all out: {}", id,
                                seen.mark_failed->context);
                seen.mark_failed.reset();
                seen.gone_since = options_.clock->now() - options_.death_grace;
                seen.retry_at = options_.clock->now() + kRetry;
            } else if (seen.waiting.empty()) {
                for (const auto link : seen.links) links_.erase(link);
                seen_.erase(found);
                return say(std::move(saying));
            }
        } else if (seen.waiting.empty()) {
            seen.mark_failed.reset();  // the next report asks for it again
        }
        admit_next(id, saying);
    }
    say(std::move(saying));
    options_.wake();
}

void RollCall::unwell(base::BrokerId id, const std::vector<std::string>& volumes) {
    Saying saying;
    {
        base::MutexLock lock(mutex_);
        const auto found = seen_.find(id);
        const auto* known = reigns_ ? image_->broker(id) : nullptr;
        if (found == seen_.end() || known == nullptr) return;
        auto& seen = found->second;
        if (id == options_.self.broker) {  // whose marks would not get through either
            for (const auto& volume : volumes) {
                seen.unproven[volume] = {options_.clock->now(), true};
            }
            return;
        }
        if (seen.marking > 0 || seen.ends || seen.joining) return;  // it will be said again
        Sessions lost;
        for (const auto& volume : volumes) {
            const auto session = known->sessions.find(volume);
            if (session == known->sessions.end() || marked_.contains(session->second)) continue;
            lost.insert(*session);
            base::log::warn("cluster", "volume '{}' does not answer broker {}: others take over",
                            volume, id);
        }
        if (!lost.empty()) mark_all(id, lost, saying);
    }
    say(std::move(saying));
}

std::vector<std::string> RollCall::out_of_reach() const {
    const auto now = options_.clock->now();
    base::MutexLock lock(mutex_);
    std::map<std::string, std::set<base::BrokerId>> volumes;  ///< and whose sessions stay there
    for (const auto& [id, seen] : seen_) {
        for (const auto& [volume, mark] : seen.unproven) {
            if (mark.failed || now - mark.since >= options_.session_timeout) {
                volumes[volume].insert(id);
            }
        }
    }
    const auto is_used = [&](const std::string& volume,
                             const std::set<base::BrokerId>& stay) KAAS_REQUIRES(mutex_) {
        for (const auto& [id, broker] : image_->brokers()) {
            const auto seen = seen_.find(id);
            if (id == options_.self.broker || stay.contains(id) || broker->draining) continue;
            if (seen == seen_.end() || seen->second.links.empty() || seen->second.ends) continue;
            if (broker->sessions.contains(volume)) return true;
        }
        return false;
    };
    std::vector<std::string> found;
    for (const auto& [volume, stay] : volumes) {
        if (is_used(volume, stay)) found.push_back(volume);
    }
    return found;
}

}  // namespace kaas::cluster
