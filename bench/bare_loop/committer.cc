#include "bare_loop/committer.h"

#include "common/fd.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace kaas::bench {

Committer::Committer(const std::string& session_directory, bool sync)
    : session_(open(session_directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      sync_(sync) {
    if (session_.get() < 0) fail_errno(session_directory);
    thread_ = std::thread([this] { run(); });
}

Committer::~Committer() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_one();
    thread_.join();
}

void Committer::submit(Work work) {
    bool was_idle = false;
    {
        const std::lock_guard lock(mutex_);
        was_idle = pending_.empty();
        pending_.push_back(std::move(work));
    }
    if (was_idle) changed_.notify_one();
}

std::vector<Ticket> Committer::take_done() {
    uint64_t count = 0;
    if (read(wake_.get(), &count, sizeof count) < 0) return {};
    const std::lock_guard lock(mutex_);
    return std::exchange(done_, {});
}

void Committer::run() {
    while (true) {
        std::vector<Work> taken;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return stopping_ || !pending_.empty(); });
            if (pending_.empty()) return;
            taken = std::exchange(pending_, {});
        }
        auto& all = taken.front();
        for (size_t i = 1; i < taken.size(); ++i) {
            for (auto& [file, batches] : taken[i].batches) {
                auto& together = all.batches[file];
                std::move(batches.begin(), batches.end(), std::back_inserter(together));
            }
            std::move(taken[i].tickets.begin(), taken[i].tickets.end(),
                      std::back_inserter(all.tickets));
        }
        commit(all);
        {
            const std::lock_guard lock(mutex_);
            std::move(all.tickets.begin(), all.tickets.end(), std::back_inserter(done_));
        }
        const uint64_t one = 1;
        if (write(wake_.get(), &one, sizeof one) < 0) fail_errno("eventfd");
    }
}

void Committer::commit(const Work& work) const {
    for (const auto& [file, batches] : work.batches) file->append(batches);
    if (sync_) {
        for (const auto& [file, _] : work.batches) file->sync();
    }
    struct statx session{};
    if (statx(session_.get(), "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_MODE | STATX_NLINK,
              &session) != 0) {
        fail_errno("statx");
    }
    if (session.stx_nlink == 0) fail("the session is gone");
    for (const auto& [file, _] : work.batches) file->publish();
}

}  // namespace kaas::bench
