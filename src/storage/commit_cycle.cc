#include "storage/commit_cycle.h"

#include "base/mutex.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace kaas::storage {

void Wakeups::add(base::Executor* home, base::Executor::Work work) {
    const auto known = std::find_if(homes_.begin(), homes_.end(),
                                    [&](const auto& entry) { return entry.first == home; });
    auto& works = known != homes_.end() ? known->second : homes_.emplace_back(home, 0).second;
    works.push_back(std::move(work));
}

void Wakeups::post() {
    for (auto& [home, works] : std::exchange(homes_, {})) {
        home->post([batch = std::move(works)]() mutable {
            for (auto& work : batch) work();
        });
    }
}

namespace {

/// Hands out the numbers below `count`; counts who is done. Lives until the last helper has left,
/// who may come late to find no work.
class SharedJob {
public:
    SharedJob(std::size_t count, const std::function<void(std::size_t)>& job)
        : count_(count), job_(job) {}

    /// An exception would leave the cycle waiting for ever: it ends the process instead.
    void work() noexcept {
        std::size_t finished = 0;
        for (auto i = next_++; i < count_; i = next_++, ++finished) job_(i);
        if (finished == 0) return;
        base::MutexLock lock(mutex_);
        done_ += finished;
        if (done_ == count_) all_done_.notify_all();
    }

    void wait() {
        base::MutexLock lock(mutex_);
        while (done_ < count_) all_done_.wait(mutex_);
    }

private:
    const std::size_t count_;
    const std::function<void(std::size_t)>& job_;  ///< not called once all numbers are handed out
    std::atomic<std::size_t> next_ = 0;
    base::Mutex mutex_;
    base::CondVar all_done_;
    std::size_t done_ KAAS_GUARDED_BY(mutex_) = 0;
};

}  // namespace

void run_side_by_side(base::Executor* pool, std::size_t width, std::size_t count,
                      const std::function<void(std::size_t)>& job) {
    if (pool == nullptr || count < 2) {
        for (std::size_t i = 0; i < count; ++i) job(i);
        return;
    }
    auto shared = std::make_shared<SharedJob>(count, job);
    for (std::size_t i = 0; i < std::min(width, count - 1); ++i)
        pool->post([shared] { shared->work(); });
    shared->work();
    shared->wait();
}

CommitCycle::CommitCycle(std::vector<std::shared_ptr<CommitMember>> members, Context context)
    : members_(std::move(members)), context_(context) {}

void CommitCycle::write() {
    std::vector<CommitMember*> slow;
    for (const auto& member : members_) {
        if (member->take() == CommitMember::Pace::kSlow) {
            slow.push_back(member.get());
        } else {
            member->write();
        }
    }
    begin_together(slow);
    run_side_by_side(context_.io_pool, context_.width, slow.size(),
                     [&](std::size_t i) { slow[i]->write(); });
}

void CommitCycle::begin_together(std::span<CommitMember* const> members) const {
    std::vector<CommitMember*> beginners;
    std::ranges::copy_if(members, std::back_inserter(beginners), &CommitMember::begins);
    if (beginners.size() < kWorthSyncingAll) return;
    if (context_.volume == nullptr || !context_.volume->can_sync_all()) return;
    for (const auto step : {&CommitMember::make_files, &CommitMember::write_picture}) {
        run_side_by_side(context_.io_pool, context_.width, beginners.size(),
                         [&](std::size_t i) { (beginners[i]->*step)(); });
        const auto synced = context_.volume->sync_all();
        for (auto* member : beginners) member->all_synced(synced);
    }
}

void CommitCycle::answer_written() {
    const auto asks = [](const auto& member) { return member->awaits_write(); };
    if (std::none_of(members_.begin(), members_.end(), asks)) return;
    const auto check = context_.session->confirm();
    for (const auto& member : members_) {
        if (member->awaits_write()) member->answer_written(check, wakeups_);
    }
    wakeups_.post();
}

std::vector<CommitCycle::Dirty> CommitCycle::gather() {
    std::vector<Dirty> dirty;
    for (const auto& member : members_) {
        auto* file = member->to_sync();
        if (file == nullptr) continue;
        const auto* entry = context_.journal != nullptr ? member->to_journal() : nullptr;
        if (entry != nullptr && entry->bytes() > context_.journal_entry_bytes) entry = nullptr;
        dirty.push_back({member.get(), file, entry});
    }
    return dirty;
}

void CommitCycle::choose(std::vector<Dirty>& dirty) const {
    std::uint64_t bytes = 0;
    for (const auto& one : dirty) {
        if (one.entry != nullptr) bytes += Journal::size_of(*one.entry);
    }
    if (bytes == 0 || context_.journal->reserve(bytes)) return;
    for (auto& one : dirty) one.entry = nullptr;
}

void CommitCycle::commit_to_journal(std::span<const Dirty> dirty) const {
    std::vector<const JournalEntry*> entries;
    entries.reserve(dirty.size());
    for (const auto& one : dirty) entries.push_back(one.entry);
    const auto outcome = context_.journal->commit(entries);
    for (const auto& one : dirty) one.member->journaled(outcome);
}

void CommitCycle::sync() {
    auto dirty = gather();
    choose(dirty);
    const auto journaled = std::partition(dirty.begin(), dirty.end(),
                                          [](const Dirty& one) { return one.entry == nullptr; });
    const std::span<const Dirty> files(dirty.begin(), journaled);
    const std::span<const Dirty> entries(journaled, dirty.end());
    const std::size_t jobs = files.size() + (entries.empty() ? 0 : 1);
    run_side_by_side(context_.io_pool, context_.width, jobs, [&](std::size_t i) {
        if (i == files.size()) return commit_to_journal(entries);
        files[i].member->synced(files[i].file->sync());
    });
}

void CommitCycle::confirm() { check_ = context_.session->confirm(); }

void CommitCycle::settle() {
    for (const auto& member : members_) member->settle(check_, wakeups_);
    wakeups_.post();
}

}  // namespace kaas::storage
