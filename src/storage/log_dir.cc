#include "storage/log_dir.h"

#include "base/assert.h"
#include "base/thread_pool.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

namespace kaas::storage {

namespace {

/// A reminder comes early by up to this part of its time.
constexpr int kSoonerByPart = 10;

[[nodiscard]] std::shared_ptr<Journal> make_journal(const LogDirOptions& options,
                                                    const std::shared_ptr<Room>& room,
                                                    base::metrics::Registry& metrics) {
    if (!options.journal) return nullptr;
    return Journal::make({.volume = options.volume,
                          .session = options.session,
                          .io_pool = options.io_pool,
                          .clock = options.clock,
                          .room = room,
                          .owner = options.owner,
                          .file_bytes = options.journal_file_bytes,
                          .metrics = &metrics,
                          .log_dir = options.name});
}

}  // namespace

LogDir::LogDir(LogDirOptions options)
    : options_(std::move(options)),
      registry_(options_.metrics),
      cycles_(
          registry_->counter("kaas_storage_commit_cycles_total",
                             "Commit cycles; each checks the session and wakes each reactor once.",
                             {{"log_dir", options_.name}})),
      stray_epochs_(registry_->counter(
          "kaas_storage_stray_epochs_total",
          "Epochs without a manifest that hold records beyond the end of their log: "
          "a lost manifest, if they were acknowledged.",
          {{"log_dir", options_.name}})),
      produce_site_(*registry_, "produce"),
      repack_site_(*registry_, "repack"),
      time_site_(*registry_, "time_index"),
      recovery_site_(*registry_, "recovery"),
      room_(std::make_shared<Room>(*options_.volume, *options_.io_pool, *options_.clock)),
      journal_(make_journal(options_, room_, *registry_)),
      checkpoints_(std::make_shared<CheckpointQueue>(CheckpointQueue::Options{
          .volume = options_.volume, .io_pool = options_.io_pool, .width = options_.io_width})),
      journal_readers_(*options_.volume, options_.owner) {
    KAAS_ASSERT(options_.volume != nullptr && options_.session != nullptr &&
                options_.clock != nullptr && options_.io_pool != nullptr);
}

LogDir::~LogDir() { stop(); }

void LogDir::start() {
    room_->look();
    thread_ = std::thread([this] { base::run_thread("commit", [this] { run(); }); });
}

void LogDir::stop() {
    {
        base::MutexLock lock(mutex_);
        stopping_ = true;
        later_.clear();
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
    checkpoints_->close();
    if (journal_ != nullptr) journal_->close();
}

void LogDir::enqueue(std::shared_ptr<CommitMember> member) {
    bool wake = false;
    {
        base::MutexLock lock(mutex_);
        queued_.push_back(std::move(member));
        wake = std::exchange(sleeping_, false);
    }
    if (wake) wake_.notify_one();
}

void LogDir::remind(std::shared_ptr<CommitMember> member) {
    bool wake = false;
    {
        base::MutexLock lock(mutex_);
        if (stopping_) return;
        // A sleeper without a deadline must learn that there is one now.
        wake = later_.empty() && std::exchange(sleeping_, false);
        later_.emplace_back(options_.clock->now() + options_.checkpoint_after, std::move(member));
    }
    if (wake) wake_.notify_one();
}

LogDir::Members LogDir::take_due() {
    Members due;
    const auto now = options_.clock->now();
    if (later_.empty() || later_.front().first > now) return due;
    const auto soon = now + options_.checkpoint_after / kSoonerByPart;
    while (!later_.empty() && later_.front().first <= soon) {
        due.push_back(std::move(later_.front().second));
        later_.pop_front();
    }
    return due;
}

void LogDir::call_due() {
    Members due;
    {
        base::MutexLock lock(mutex_);
        if (later_.empty()) return;
        due = take_due();
    }
    for (const auto& member : due) member->checkpoint_due();
}

void LogDir::sleep() {
    sleeping_ = true;
    if (later_.empty()) {
        wake_.wait(mutex_);
    } else if (const auto left = later_.front().first - options_.clock->now(); left.count() > 0) {
        wake_.wait_for(mutex_, left);
    }
    sleeping_ = false;
}

void LogDir::run() {
    for (;;) {
        if (run_cycle()) continue;
        base::MutexLock lock(mutex_);
        if (!queued_.empty()) continue;
        if (stopping_) return;
        sleep();
    }
}

std::unique_ptr<CommitCycle> LogDir::next_cycle() {
    call_due();
    checkpoints_->start();
    Members members;
    {
        base::MutexLock lock(mutex_);
        members.swap(queued_);
    }
    if (members.empty()) return nullptr;
    return std::make_unique<CommitCycle>(
        std::move(members),
        CommitCycle::Context{.session = options_.session,
                             .io_pool = options_.io_pool,
                             .width = options_.io_width,
                             .volume = options_.volume,
                             .journal = journal_.get(),
                             .journal_entry_bytes = options_.journal_entry_bytes});
}

bool LogDir::run_cycle() {
    const auto cycle = next_cycle();
    if (cycle == nullptr) return false;
    running_since_.store(options_.clock->now().time_since_epoch().count(),
                         std::memory_order_relaxed);
    room_->look();
    cycle->run();
    checkpoints_->start();
    running_since_.store(0, std::memory_order_relaxed);
    cycles_.add();
    return true;
}

bool LogDir::stalled() const {
    const auto since = running_since_.load(std::memory_order_relaxed);
    if (since == 0 || options_.stall_after.count() == 0) return false;
    const auto ran =
        options_.clock->now().time_since_epoch() - std::chrono::steady_clock::duration(since);
    return ran > options_.stall_after;
}

}  // namespace kaas::storage
