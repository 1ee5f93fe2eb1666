#include "cluster/controller.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/mutex.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/admin.h"
#include "cluster/draft.h"
#include "cluster/error.h"
#include "cluster/leader_admin.h"
#include "cluster/leadership.h"
#include "cluster/reign.h"
#include "cluster/topic_admin.h"
#include "storage/error.h"

#include <algorithm>
#include <atomic>
#include <chrono>
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

/// An idle controller vouches for its log after so long, so that a successor need not doubt it.
constexpr std::chrono::seconds kIdle{1};

std::unexpected<Error> not_controller() {
    return fail(ErrorCode::kNotController, "This is not the correct controller for this cluster.");
}
std::unexpected<Error> timed_out() {
    return fail(ErrorCode::kRequestTimedOut, "The request timed out.");
}

/// What was done is late; what was refused stays refused.
template <class T>
void time_out(Result<std::vector<T>>& planned) {
    if (!planned) return;
    for (auto& topic : *planned) {
        if (topic.outcome) topic.outcome = timed_out();
    }
}
void time_out(Result<std::vector<TopicOutcomes>>& planned) {
    if (!planned) return;
    for (auto& topic : *planned) {
        for (auto& partition : topic.partitions) {
            if (partition.outcome) partition.outcome = timed_out();
        }
    }
}
void time_out(Result<std::vector<OngoingReassignments>>&) {}  // waits for nobody
void time_out(Result<std::monostate>& planned) {
    if (planned) planned = timed_out();
}
void time_out(Result<ProducerIdBlock>&) {}  // waits for nobody

Result<std::monostate> as_value(Result<void> result) {
    if (!result) return std::unexpected(std::move(result).error());
    return std::monostate{};
}

std::set<base::BrokerId> living_brokers(const catalog::Image& image) {
    std::set<base::BrokerId> living;
    for (const auto& [id, broker] : image.brokers()) {
        if (broker->living()) living.insert(id);
    }
    return living;
}

void assign_homeless(Draft& draft) {
    auto assignments = place_homeless(draft.image());
    if (!assignments.empty()) draft.add(catalog::Assigned{std::move(assignments)});
}

/// Nobody writes under `ended` any more.
void end_sessions(base::BrokerId id, const Sessions& ended, Draft& draft) {
    const auto* known = draft.image().broker(id);
    if (known == nullptr) return;
    auto left = *known;
    std::erase_if(left.sessions, [&](const auto& session) {
        auto found = ended.find(session.first);
        return found != ended.end() && found->second == session.second;
    });
    if (left.sessions.size() == known->sessions.size()) return;
    if (left.living()) {
        draft.add(catalog::BrokerRegistered{std::move(left)});
    } else {
        draft.add(catalog::BrokerGone{id});
    }
    assign_homeless(draft);
}

/// Reports may be late: of topics that are gone, of epochs that are over.
template <class Report>
std::vector<Report> still_news(const std::set<Report>& reports, const catalog::Image& image) {
    std::vector<Report> news;
    std::ranges::copy_if(reports, std::back_inserter(news), [&](const Report& report) {
        const auto* partition = image.partition(report.partition);
        return partition != nullptr && catalog::is_news(*partition, report);
    });
    return news;
}

}  // namespace

Controller::Controller(ControllerOptions options)
    : clock_(*options.clock),
      config_(std::move(options.config)),
      push_(std::move(options.push)),
      wake_(std::move(options.wake)),
      image_(std::make_shared<const catalog::Image>()),
      mover_(config_.balance) {}

Controller::~Controller() {
    end();
    step();  // answers what was still in the queue
}

void Controller::begin(Reign reign) {
    KAAS_ASSERT(!reigning() && reign.image->version() > image_->version());
    image_ = std::move(reign.image);
    reign_ = std::move(reign);
    next_producer_ = 0;
    untidy_ = true;
    look_for_homeless_ = true;
    mover_.begin(clock_.now());
    ended_by_.reset();
    reigning_.store(true, std::memory_order_release);
}

void Controller::enqueue(Job job) {
    {
        base::MutexLock lock(mutex_);
        queue_.push_back(std::move(job));
    }
    wake_();
}

template <class Add>
void Controller::report(Add add) {
    {
        base::MutexLock lock(mutex_);
        add(reports_);
    }
    wake_();
}

template <class T>
Controller::Answer Controller::answer_with(Result<T> planned, Reply<T> reply) {
    return [planned = std::move(planned), reply = std::move(reply)](Verdict verdict) mutable {
        if (verdict == Verdict::kLost) planned = not_controller();
        if (verdict == Verdict::kTimedOut) time_out(planned);
        std::move(reply)(std::move(planned));
    };
}

void Controller::create_topics(CreateTopics request, Reply<std::vector<CreatedTopic>> reply) {
    const auto deadline = request.deadline;
    enqueue({[this, request = std::move(request), reply = std::move(reply)](Draft& draft) mutable {
                 return answer_with(plan(request, config_, draft), std::move(reply));
             },
             deadline});
}

void Controller::delete_topics(DeleteTopics request, Reply<std::vector<DeletedTopic>> reply) {
    const auto deadline = request.deadline;
    enqueue({[request = std::move(request), reply = std::move(reply)](Draft& draft) mutable {
                 return answer_with<std::vector<DeletedTopic>>(plan(request, draft),
                                                               std::move(reply));
             },
             deadline});
}

void Controller::create_partitions(CreatePartitions request, Reply<std::vector<GrownTopic>> reply) {
    const auto deadline = request.deadline;
    enqueue({[request = std::move(request), reply = std::move(reply)](Draft& draft) mutable {
                 return answer_with(plan(request, draft), std::move(reply));
             },
             deadline});
}

void Controller::elect_leaders(ElectLeaders request, Reply<std::vector<TopicOutcomes>> reply) {
    const auto deadline = request.deadline;
    enqueue({[request = std::move(request), reply = std::move(reply)](Draft& draft) mutable {
                 return answer_with(plan(request, draft), std::move(reply));
             },
             deadline});
}

void Controller::alter_reassignments(AlterReassignments request,
                                     Reply<std::vector<TopicOutcomes>> reply) {
    const auto deadline = request.deadline;
    enqueue({[this, request = std::move(request), reply = std::move(reply)](Draft& draft) mutable {
                 mover_.look_for_targets();
                 return answer_with<std::vector<TopicOutcomes>>(plan(request, draft),
                                                                std::move(reply));
             },
             deadline});
}

void Controller::list_reassignments(ListReassignments request,
                                    Reply<std::vector<OngoingReassignments>> reply) {
    enqueue({[request = std::move(request), reply = std::move(reply)](Draft& draft) mutable {
                 return answer_with<std::vector<OngoingReassignments>>(list(request, draft.image()),
                                                                       std::move(reply));
             },
             std::nullopt});
}

void Controller::unregister_broker(base::BrokerId broker, Reply<std::monostate> reply) {
    enqueue({[broker, reply = std::move(reply)](Draft& draft) mutable {
                 return answer_with(as_value(unregister(broker, draft)), std::move(reply));
             },
             std::nullopt});
}

void Controller::alter_configs(AlterConfigs request, Reply<std::monostate> reply) {
    const auto deadline = request.deadline;
    enqueue({[this, request = std::move(request), reply = std::move(reply)](Draft& draft) mutable {
                 return answer_with(as_value(plan(request, config_, draft)), std::move(reply));
             },
             deadline});
}

void Controller::allocate_producer_ids(std::int32_t count, Reply<ProducerIdBlock> reply) {
    enqueue({[this, count, reply = std::move(reply)](Draft&) mutable {
                 // Unique by the epoch, which nobody else ever has: no line needs to be written.
                 constexpr std::int64_t kPerEpoch = std::int64_t{1} << 32;
                 const std::int64_t epoch = image_->version().epoch.value();
                 Result<ProducerIdBlock> block = not_controller();
                 if (next_producer_ + count <= kPerEpoch) {
                     block = ProducerIdBlock{base::ProducerId(epoch * kPerEpoch + next_producer_),
                                             count};
                     next_producer_ += count;
                 }
                 return answer_with(std::move(block), std::move(reply));
             },
             std::nullopt});
}

void Controller::register_broker(catalog::Broker broker, Reply<std::monostate> reply) {
    enqueue({[this, broker = std::move(broker), reply = std::move(reply)](Draft& draft) mutable {
                 const auto id = broker.id;
                 draft.add(catalog::BrokerRegistered{std::move(broker)});
                 draft.add(catalog::LeadershipRenewed{id});
                 assign_homeless(draft);
                 mover_.plan_now();
                 return answer_with<std::monostate>(std::monostate{}, std::move(reply));
             },
             std::nullopt});
}

void Controller::drain_broker(base::BrokerId broker, Reply<std::monostate> reply) {
    enqueue({[broker, reply = std::move(reply)](Draft& draft) mutable {
                 const auto* known = draft.image().broker(broker);
                 if (known != nullptr && known->living() && !known->draining) {
                     draft.add(catalog::BrokerDraining{broker});
                 }
                 return answer_with<std::monostate>(std::monostate{}, std::move(reply));
             },
             std::nullopt});
}

void Controller::remove_broker(base::BrokerId broker, Reply<std::monostate> reply) {
    enqueue({[broker, reply = std::move(reply)](Draft& draft) mutable {
                 if (const auto* known = draft.image().broker(broker)) {
                     end_sessions(broker, Sessions(known->sessions), draft);
                 }
                 return answer_with<std::monostate>(std::monostate{}, std::move(reply));
             },
             std::nullopt});
}

void Controller::remove_sessions(base::BrokerId broker, Sessions marked,
                                 Reply<std::monostate> reply) {
    enqueue({[broker, marked = std::move(marked), reply = std::move(reply)](Draft& draft) mutable {
                 end_sessions(broker, marked, draft);
                 return answer_with<std::monostate>(std::monostate{}, std::move(reply));
             },
             std::nullopt});
}

void Controller::released(std::vector<catalog::PartitionEpoch> epochs) {
    report([&](Reports& reports) { reports.released.insert(epochs.begin(), epochs.end()); });
}

void Controller::moved(std::vector<MovedEpoch> epochs) {
    report([&](Reports& reports) {
        for (auto& one : epochs) reports.moved.push_back(std::move(one));
    });
}

void Controller::opened(std::vector<catalog::OpenedEpoch> epochs) {
    // Wakes nobody: it shortens later walks, and the next step is soon enough for that.
    base::MutexLock lock(mutex_);
    reports_.opened.insert(epochs.begin(), epochs.end());
}

void Controller::reclaimed(base::TopicId topic) {
    report([&](Reports& reports) { reports.reclaimed.insert(topic); });
}

void Controller::applied(base::BrokerId broker, catalog::ImageVersion version, bool and_before) {
    settle(Verdict::kDone, [&](Waiting& waiting) {
        if (waiting.version == version || (and_before && waiting.version < version))
            waiting.brokers.erase(broker);
        return waiting.brokers.empty();
    });
}

void Controller::hear(Report report) {
    if (!report.released.empty()) released(std::move(report.released));
    if (!report.moved.empty()) moved(std::move(report.moved));
    if (!report.opened.empty()) opened(std::move(report.opened));
    for (const auto& topic : report.reclaimed) reclaimed(topic);
}

Report Controller::hand_over() {
    base::MutexLock lock(mutex_);
    auto told = std::exchange(reports_, {});
    Report report;
    report.released.assign(told.released.begin(), told.released.end());
    report.moved = std::move(told.moved);
    report.opened.assign(told.opened.begin(), told.opened.end());
    report.reclaimed.assign(told.reclaimed.begin(), told.reclaimed.end());
    return report;
}

base::Clock::Steady Controller::step() {
    std::vector<Job> jobs;
    Reports reports;
    {
        base::MutexLock lock(mutex_);
        std::swap(jobs, queue_);
        if (reigning()) std::swap(reports, reports_);
    }
    Draft draft(*image_);
    std::vector<Answer> now;
    std::vector<Waiting> later;
    for (auto& job : jobs) {
        const auto before = draft.changes().size();
        auto answer = job.plan(draft);
        if (job.spread_by && draft.changes().size() > before) {
            later.push_back({{}, {}, *job.spread_by, std::move(answer)});
        } else {
            now.push_back(std::move(answer));
        }
    }
    add_reports(reports, draft);
    if (reigning()) {
        if (std::exchange(look_for_homeless_, false)) assign_homeless(draft);
        mover_.step(draft, clock_.now());
    }

    const bool idle = jobs.empty() && draft.changes().empty();
    const bool good = reigning() && (idle || commit_and_check(draft));
    if (good) {
        publish(std::move(draft), std::move(later));
        if (idle) tidy();
    } else {
        put_back(std::move(reports));
        for (auto& waiting : later) waiting.answer(Verdict::kLost);
    }
    for (auto& answer : now) answer(good ? Verdict::kDone : Verdict::kLost);
    if (good && !idle) compact();
    const auto next = settle_late(idle);
    return reigning() ? std::min(next, mover_.due()) : next;
}

bool Controller::commit_and_check(const Draft& draft) {
    if (!draft.changes().empty()) {
        if (auto done = reign_->log.commit(draft.changes()); !done) {
            give_up({ErrorCode::kStorage, done.error().context});
            return false;
        }
    }
    // A look that failed proves nothing: nobody may hear of what was done, and nobody can undo it.
    // So a successor has to say what stands.
    if (auto checked = reign_->session->confirm(); !checked) {
        give_up(failed(std::move(checked).error()).error());
        return false;
    }
    return true;
}

void Controller::publish(Draft draft, std::vector<Waiting> waiting) {
    if (draft.changes().empty()) return;
    auto changes = draft.changes();
    image_ = std::move(draft).finish();
    const auto living = living_brokers(*image_);
    // Before the push: a broker may apply it before this thread comes back.
    {
        base::MutexLock lock(mutex_);
        for (auto& one : waiting) {
            one.version = image_->version();
            one.brokers = living;
            waiting_.push_back(std::move(one));
        }
    }
    push_({image_, std::move(changes)});
    // Nobody waits for a broker that has left.
    settle(Verdict::kDone, [&](Waiting& one) {
        std::erase_if(one.brokers, [&](base::BrokerId id) { return !living.contains(id); });
        return one.brokers.empty();
    });
}

void Controller::add_reports(const Reports& reports, Draft& draft) {
    add_released(reports.released, draft);
    for (const auto& one : reports.moved) add_moved(one, draft);
    auto opened = still_news(reports.opened, draft.image());
    if (!opened.empty()) draft.add(catalog::Opened{std::move(opened)});
    for (const auto& topic : reports.reclaimed) {
        if (draft.image().deletions().contains(topic)) draft.add(catalog::TopicReclaimed{topic});
    }
}

void Controller::add_released(const std::set<catalog::PartitionEpoch>& released, Draft& draft) {
    auto news = still_news(released, draft.image());
    if (news.empty()) return;
    catalog::Assigned next;
    catalog::ReplicasChanged called_off;
    LeaderChoice choice(draft.image());
    for (const auto& one : news) {
        auto assigned = choice.after_release(one.partition);
        if (!assigned) continue;
        const auto& partition = *draft.image().partition(one.partition);
        const auto& target = partition.target;
        // The broker that it was asked back for has died meanwhile. Nobody waits for that one.
        if (partition.asked_back && !target.empty() &&
            std::ranges::find(target, assigned->leader.broker) == target.end()) {
            called_off.lists.push_back({one.partition, assigned->replicas});
        }
        next.assignments.push_back(std::move(*assigned));
    }
    draft.add(catalog::Released{std::move(news)});
    if (!next.assignments.empty()) draft.add(std::move(next));
    if (!called_off.lists.empty()) draft.add(std::move(called_off));
}

void Controller::put_back(Reports reports) {
    base::MutexLock lock(mutex_);
    reports_.released.merge(reports.released);
    std::ranges::move(reports.moved, std::back_inserter(reports_.moved));
    reports_.opened.merge(reports.opened);
    reports_.reclaimed.merge(reports.reclaimed);
}

/// Who gave up an epoch to lead on another volume gets that, or the old one when it is not there.
void Controller::add_moved(const MovedEpoch& moved, Draft& draft) {
    const auto& [id, epoch, volume] = moved;
    const catalog::PartitionEpoch given_up{id, epoch};
    const auto* partition = draft.image().partition(id);
    if (partition == nullptr || !catalog::is_news(*partition, given_up)) return;
    const auto leader = partition->leader.broker;
    if (!can_take(draft.image(), leader, volume)) {
        add_released({given_up}, draft);
        return;
    }
    const auto incarnation = draft.image().broker(leader)->sessions.find(volume)->second;
    catalog::Assignment next{.partition = id,
                             .replicas = partition->replicas,
                             .leader = {leader, incarnation},
                             .leader_epoch = epoch + 1,
                             .volume = volume};
    draft.add(catalog::Released{{given_up}});
    draft.add(catalog::Assigned{{std::move(next)}});
}

template <class Due>
void Controller::settle(Verdict verdict, Due due) {
    std::vector<Waiting> settled;
    {
        base::MutexLock lock(mutex_);
        std::vector<Waiting> rest;
        for (auto& waiting : waiting_) {
            (due(waiting) ? settled : rest).push_back(std::move(waiting));
        }
        waiting_ = std::move(rest);
    }
    for (auto& waiting : settled) waiting.answer(verdict);
}

base::Clock::Steady Controller::settle_late(bool idle) {
    const auto now = clock_.now();
    auto next = idle ? base::Clock::Steady::max() : now + kIdle;
    settle(Verdict::kTimedOut, [&](const Waiting& waiting) {
        if (waiting.deadline <= now) return true;
        next = std::min(next, waiting.deadline);
        return false;
    });
    return next;
}

void Controller::give_up(Error why) {
    // Somebody who has taken office may be why the log failed.
    if (auto alive = reign_->session->confirm();
        !alive && alive.error().code == storage::ErrorCode::kFenced) {
        why = failed(std::move(alive).error()).error();
    }
    base::log::warn("cluster", "controller epoch {} is over: {}", image_->version().epoch,
                    why.context);
    ended_by_ = std::move(why);
    end();
}

void Controller::end() {
    reigning_.store(false, std::memory_order_release);
    reign_.reset();
    settle(Verdict::kLost, [](const Waiting&) { return true; });
}

void Controller::beat() {
    if (!reigning()) return;
    if (auto beaten = reign_->session->beat();
        !beaten && beaten.error().code == ErrorCode::kFenced) {
        give_up(std::move(beaten).error());
    }
}

void Controller::tidy() {
    auto& log = reign_->log;
    if (untidy_) log.remove_superseded(*reign_->session);
    untidy_ = false;
    if (auto settled = log.settle(); !settled) {
        give_up({ErrorCode::kStorage, settled.error().context});
    }
}

/// After the answers: a long picture takes its time, and nobody waits for it.
void Controller::compact() {
    auto compacted = reign_->log.compact(*image_);
    if (!compacted) return give_up({ErrorCode::kStorage, compacted.error().context});
    untidy_ = untidy_ || *compacted;
}

void Controller::resign() {
    step();
    if (!reigning()) return;
    if (auto released = reign_->log.release(); !released) {
        base::log::warn("cluster", "the control log has no last line: {}",
                        released.error().context);
    }
    if (auto ended = reign_->session->end(); !ended) {
        base::log::warn("cluster", "the epoch stays: {}", ended.error().context);
    }
    end();
}

}  // namespace kaas::cluster
