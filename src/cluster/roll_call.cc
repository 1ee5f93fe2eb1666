#include "cluster/roll_call.h"

#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/mutex.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/admin.h"
#include "cluster/controller.h"
#include "cluster/error.h"
#include "cluster/link_messages.h"

#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kaas::cluster {
namespace {

/// What brokers may still ask for line by line; who is further behind gets a picture.
constexpr std::size_t kHistoryBytes = std::size_t{32} << 20;

std::unexpected<Error> no_reign() {
    return fail(ErrorCode::kNotController, "This is not the correct controller for this cluster.");
}
std::unexpected<Error> stale(base::BrokerId id) {
    return fail(ErrorCode::kStaleBroker,
                fmt::format("broker {} has to introduce itself to this controller", id));
}

}  // namespace

void RollCall::begin(catalog::ImagePtr image, const std::set<base::BrokerId>& missed) {
    const auto now = options_.clock->now();
    base::MutexLock lock(mutex_);
    reigns_ = true;
    hears_nobody_ = false;
    ++reign_;
    image_ = std::move(image);
    history_.clear();
    history_bytes_ = 0;
    history_from_ = image_->version();
    picture_.reset();
    seen_.clear();
    marked_.clear();
    for (const auto& [id, broker] : image_->brokers()) {
        if (!broker->living()) continue;
        auto& seen = seen_[id];
        seen.heard = now;
        if (missed.contains(id)) seen.gone_since = now;
    }
    auto& self = seen_[options_.self.broker];
    self.process = options_.self.process;
    self.gone_since.reset();
}

void RollCall::end() {
    Saying saying;
    {
        base::MutexLock lock(mutex_);
        reigns_ = false;
        for (auto& [id, seen] : seen_) {
            for (auto& waiting : seen.waiting) {
                saying.push_back(
                    [reply = std::move(waiting.reply)]() mutable { std::move(reply)(no_reign()); });
            }
        }
        for (auto& watcher : watchers_) {
            saying.push_back(
                [reply = std::move(watcher.reply)]() mutable { std::move(reply)(no_reign()); });
        }
        seen_.clear();
        links_.clear();
        watchers_.clear();
        history_.clear();
        picture_.reset();
    }
    say(std::move(saying));
}

void RollCall::close() {
    end();
    base::MutexLock lock(late_mutex_);
    closed_ = true;
}

void RollCall::pushed(const Push& push) {
    Saying saying;
    {
        base::MutexLock lock(mutex_);
        image_ = push.image;
        picture_.reset();
        if (watchers_.empty() && links_.empty()) {  // nobody would ask for the lines
            history_.clear();
            history_bytes_ = 0;
            history_from_ = image_->version();
            return;
        }
        auto lines = std::make_shared<PushedLines>();
        lines->version = image_->version();
        for (const auto& change : push.changes) {
            lines->lines.push_back(boost::json::serialize(catalog::to_json(change)));
            history_bytes_ += lines->lines.back().size();
        }
        history_.push_back(std::move(lines));
        while (history_bytes_ > kHistoryBytes && history_.size() > 1) {
            history_from_ = history_.front()->version;
            for (const auto& line : history_.front()->lines) history_bytes_ -= line.size();
            history_.pop_front();
        }
        answer_watchers(saying);
    }
    say(std::move(saying));
}

std::optional<Error> RollCall::refusal(const Registration& registration) const {
    if (!reigns_) return no_reign().error();
    if (registration.cluster_id != image_->cluster_id()) {
        return Error{ErrorCode::kWrongCluster,
                     fmt::format("this is cluster '{}', not '{}'", image_->cluster_id(),
                                 registration.cluster_id)};
    }
    const auto id = registration.life.broker;
    for (const auto& [volume, incarnation] : registration.broker.sessions) {
        if (marked_.contains(incarnation)) return stale(id).error();
    }
    const auto found = seen_.find(id);
    if (found == seen_.end()) return std::nullopt;
    const auto& seen = found->second;
    const bool is_another = seen.process && *seen.process != registration.life.process;
    if (id == options_.self.broker ? is_another : is_another && !seen.gone_since && !seen.ends) {
        return Error{ErrorCode::kDuplicateBroker,
                     fmt::format("another live process is broker {}", id)};
    }
    return std::nullopt;
}

void RollCall::register_broker(LinkId link, Registration registration,
                               Reply<std::monostate> reply) {
    Saying saying;
    {
        base::MutexLock lock(mutex_);
        if (auto refused = refusal(registration)) {
            saying.push_back([reply = std::move(reply), why = std::move(*refused)]() mutable {
                std::move(reply)(std::unexpected(std::move(why)));
            });
        } else {
            const auto id = registration.life.broker;
            if (link != 0) links_[link] = id;
            seen_[id].waiting.push_back({link, std::move(registration), std::move(reply)});
            admit_next(id, saying);
        }
    }
    say(std::move(saying));
}

/// Once nothing is under way for the broker: its end goes before who comes after it, and its
/// earlier sessions are marked before the new ones count.
void RollCall::admit_next(base::BrokerId id, Saying& saying) {
    auto& seen = seen_.at(id);
    if (seen.marking > 0 || seen.ends || seen.joining || seen.waiting.empty()) return;
    const auto link = seen.waiting.front().link;
    const auto& registration = seen.waiting.front().registration;
    const auto* known = image_->broker(id);
    Sessions old;
    if (known != nullptr) {
        for (const auto& [volume, incarnation] : known->sessions) {
            const auto now = registration.broker.sessions.find(volume);
            const bool stays =
                now != registration.broker.sessions.end() && now->second == incarnation;
            if (!stays && !marked_.contains(incarnation)) old.emplace(volume, incarnation);
        }
    }
    if (!seen.process || *seen.process != registration.life.process) {
        seen.links.clear();
        seen.process = registration.life.process;
        seen.leaves = false;
    }
    hear(seen, link);
    if (!old.empty() && !seen.mark_failed && known->living()) {
        return mark_all(id, old, saying);
    }
    auto waiting = std::move(seen.waiting.front());
    seen.waiting.pop_front();
    auto failed = std::exchange(seen.mark_failed, std::nullopt);
    auto late = refusal(waiting.registration);  // while it waited, its sessions may have ended
    if (failed || late) {
        saying.push_back([reply = std::move(waiting.reply),
                          why = failed ? std::move(*failed) : std::move(*late)]() mutable {
            std::move(reply)(std::unexpected(std::move(why)));
        });
        return admit_next(id, saying);
    }
    if (known != nullptr && catalog::same_registration(*known, waiting.registration.broker)) {
        saying.push_back(
            [reply = std::move(waiting.reply)]() mutable { std::move(reply)(std::monostate{}); });
        return admit_next(id, saying);
    }
    // Who comes next finds these sessions in the image, or they never were in one.
    seen.joining = true;
    saying.push_back([this, id, reign = reign_, waiting = std::move(waiting)]() mutable {
        options_.controller->register_broker(
            std::move(waiting.registration.broker),
            {&here_, [this, id, reign,
                      reply = std::move(waiting.reply)](Result<std::monostate> outcome) mutable {
                 joined(reign, id);
                 std::move(reply)(std::move(outcome));
             }});
    });
}

void RollCall::joined(std::uint64_t reign, base::BrokerId id) {
    Saying saying;
    {
        base::MutexLock lock(mutex_);
        auto found = seen_.find(id);
        if (reign != reign_ || found == seen_.end()) return;
        found->second.joining = false;
        admit_next(id, saying);
    }
    say(std::move(saying));
}

void RollCall::hear(Seen& seen, std::optional<LinkId> link) {
    seen.heard = options_.clock->now();
    if (!link) return;
    seen.gone_since.reset();
    seen.links.insert(*link);
}

/// `link` tells of the broker's end, if it is one (a connection that waits for an answer is not: it
/// does not notice that its peer is gone).
RollCall::Seen* RollCall::life_of(std::optional<LinkId> link, const BrokerLife& life) {
    auto found = seen_.find(life.broker);
    if (found == seen_.end()) return nullptr;
    auto& seen = found->second;
    if (seen.process != life.process || seen.ends) return nullptr;
    hear(seen, link);
    if (link) links_[*link] = life.broker;
    return &seen;
}

void RollCall::report(LinkId link, const BrokerLife& life, Report report,
                      Reply<std::monostate> reply) {
    bool leaves = false;
    {
        base::MutexLock lock(mutex_);
        auto* seen = reigns_ ? life_of(link, life) : nullptr;
        if (seen == nullptr) {
            if (reigns_) options_.on_stale();
            std::move(reply)(reigns_ ? Result<std::monostate>(stale(life.broker)) : no_reign());
            return;
        }
        if (report.intent == Report::Intent::kLeave) seen->leaves = leaves = true;
    }
    auto& controller = *options_.controller;
    for (const auto& applied : report.applied) {
        controller.applied(life.broker, applied.version, applied.and_before);
    }
    if (!report.unwell.empty()) unwell(life.broker, report.unwell);
    const auto intent = report.intent;
    controller.hear(std::move(report));
    if (intent == Report::Intent::kDrain) {
        controller.drain_broker(life.broker, {&here_, [](const Result<std::monostate>&) {}});
    }
    std::move(reply)(std::monostate{});
    if (leaves) options_.wake();
}

void RollCall::watch(LinkId link, const BrokerLife& life, catalog::ImageVersion have,
                     Reply<News> reply) {
    Saying saying;
    bool wants_turn = false;
    {
        base::MutexLock lock(mutex_);
        auto* seen = reigns_ ? life_of(std::nullopt, life) : nullptr;
        if (seen == nullptr) {
            if (reigns_) options_.on_stale();
            saying.push_back([reply = std::move(reply), reigns = reigns_, life]() mutable {
                std::move(reply)(reigns ? Result<News>(stale(life.broker)) : no_reign());
            });
        } else {
            seen->has = have;
            watchers_.push_back({link, have, std::move(reply)});
            answer_watchers(saying);
            wants_turn = !picture_ && somebody_wants_a_picture();
        }
    }
    say(std::move(saying));
    if (wants_turn) options_.wake();
}

std::optional<News> RollCall::news_since(catalog::ImageVersion have) {
    if (!is_in_history(have)) {
        if (!picture_) return std::nullopt;
        return picture_;
    }
    std::vector<PushedLinesPtr> pushes;
    auto from = std::ranges::upper_bound(history_, have, {}, &PushedLines::version);
    std::copy(from, history_.end(), std::back_inserter(pushes));
    if (pushes.empty()) return std::nullopt;
    return pushes;
}

void RollCall::answer_watchers(Saying& saying) {
    std::vector<Watcher> rest;
    for (auto& watcher : watchers_) {
        auto news = news_since(watcher.have);
        if (!news) {
            rest.push_back(std::move(watcher));
            continue;
        }
        saying.push_back([reply = std::move(watcher.reply), news = std::move(*news)]() mutable {
            std::move(reply)(std::move(news));
        });
    }
    watchers_ = std::move(rest);
}

bool RollCall::somebody_wants_a_picture() const {
    for (const auto& watcher : watchers_) {
        if (!is_in_history(watcher.have)) return true;
    }
    return false;
}

/// A version above the present one cannot be of this reign.
bool RollCall::is_in_history(catalog::ImageVersion have) const {
    return have >= history_from_ && have <= image_->version();
}

void RollCall::disconnected(LinkId link) {
    Saying saying;
    {
        base::MutexLock lock(mutex_);
        std::erase_if(watchers_, [&](const Watcher& watcher) { return watcher.link == link; });
        const auto of = links_.find(link);
        if (of == links_.end()) return;
        const auto id = of->second;
        links_.erase(of);
        auto found = seen_.find(id);
        if (found == seen_.end()) return;
        auto& seen = found->second;
        for (auto& waiting : seen.waiting) {
            if (waiting.link != link) continue;
            saying.push_back(
                [reply = std::move(waiting.reply)]() mutable { std::move(reply)(no_reign()); });
        }
        std::erase_if(seen.waiting, [&](const Waiting& waiting) { return waiting.link == link; });
        if (seen.links.erase(link) > 0 && seen.links.empty()) {
            seen.gone_since = options_.clock->now();
        }
    }
    say(std::move(saying));
    options_.wake();
}

void RollCall::declare_dead(base::BrokerId id, const std::string& why, Saying& saying) {
    auto& seen = seen_.at(id);
    const auto* known = image_->broker(id);
    if (known == nullptr || !known->living()) {
        if (seen.waiting.empty()) seen_.erase(id);
        return;
    }
    base::log::info("cluster", "broker {} is taken out: {}", id, why);
    seen.ends = true;
    mark_all(id, known->sessions, saying);
}

void RollCall::probe(base::BrokerId id, Saying& saying) {
    const auto& brokers = image_->brokers();
    const auto known = brokers.find(id);
    if (!options_.probe || known == brokers.end()) return;
    seen_.at(id).probing = true;
    saying.push_back([this, broker = known->second, reign = reign_] {
        options_.probe(*broker, [weak = weak_from_this(), reign, id = broker->id](bool refused) {
            auto self = weak.lock();
            if (!self) return;
            base::MutexLock late(self->late_mutex_);
            if (self->closed_) return;
            {
                base::MutexLock lock(self->mutex_);
                auto found = self->seen_.find(id);
                if (reign != self->reign_ || found == self->seen_.end()) return;
                auto& seen = found->second;
                const auto now = self->options_.clock->now();
                seen.probing = false;
                seen.probe_at = now + self->options_.death_grace;
                if (refused && !seen.process && !seen.gone_since) seen.gone_since = now;
            }
            self->options_.wake();
        });
    });
}

base::Clock::Steady RollCall::turn() {
    const auto now = options_.clock->now();
    auto next = base::Clock::Steady::max();
    Saying saying;
    {
        base::MutexLock lock(mutex_);
        if (!reigns_) return next;
        std::vector<std::pair<base::BrokerId, std::string>> dead;
        std::vector<base::BrokerId> silent;
        bool is_heard = false;
        const auto died = [&](base::BrokerId id, const Seen& seen, std::string why) {
            const auto since = std::chrono::floor<std::chrono::milliseconds>(now - seen.heard);
            const bool is_first = seen.retry_at == base::Clock::Steady{};
            if (is_first) saying.push_back([this, since] { options_.on_death(since); });
            dead.emplace_back(id, std::move(why));
        };
        for (auto& [id, seen] : seen_) {
            if (id == options_.self.broker || seen.marking > 0 || seen.ends || seen.joining) {
                continue;
            }
            if (now < seen.retry_at) {
                next = std::min(next, seen.retry_at);
                continue;
            }
            const auto silent_by = seen.heard + options_.session_timeout;
            const auto gone_by = seen.gone_since ? *seen.gone_since + options_.death_grace
                                                 : base::Clock::Steady::max();
            if (std::exchange(seen.leaves, false)) {
                dead.emplace_back(id, "it has left");
            } else if (gone_by <= now) {
                died(id, seen, "its process is gone");
            } else if (silent_by <= now) {
                silent.push_back(id);
            } else {
                is_heard = is_heard || !seen.links.empty();
                next = std::min({next, silent_by, gone_by});
            }
            // Nobody has seen it in this reign: perhaps it died with the last one, or dies now.
            if (seen.process || seen.gone_since || seen.probing) continue;
            if (now >= seen.probe_at) {
                probe(id, saying);
            } else {
                next = std::min(next, seen.probe_at);
            }
        }
        hears_nobody_ = !silent.empty() && !is_heard;
        for (const auto id : silent) {
            if (hears_nobody_) break;
            died(id, seen_.at(id), "nothing was heard of it for broker.session.timeout.ms");
        }
        for (const auto& [id, why] : dead) declare_dead(id, why, saying);
        if (!picture_ && somebody_wants_a_picture()) {
            picture_ = std::make_shared<const std::string>(
                boost::json::serialize(catalog::to_picture(*image_)));
            answer_watchers(saying);
        }
    }
    say(std::move(saying));
    return next;
}

catalog::ImagePtr RollCall::image() const {
    base::MutexLock lock(mutex_);
    return image_;
}

std::vector<RollCall::Sight> RollCall::sights() const {
    const auto now = options_.clock->now();
    base::MutexLock lock(mutex_);
    std::vector<Sight> sights;
    for (const auto& [id, seen] : seen_) {
        sights.push_back(
            {.broker = id,
             .connected = id == options_.self.broker || !seen.links.empty(),
             .silent = std::chrono::duration_cast<std::chrono::milliseconds>(now - seen.heard),
             .has = id == options_.self.broker && image_ ? image_->version() : seen.has});
    }
    return sights;
}

bool RollCall::hears_nobody() const {
    base::MutexLock lock(mutex_);
    return hears_nobody_;
}

void RollCall::say(Saying saying) {
    for (auto& one : saying) one();
}

}  // namespace kaas::cluster
