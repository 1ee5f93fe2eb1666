#pragma once

#include "bare_loop/log_file.h"
#include "common/fd.h"

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace kaas::bench {

/// The answer to a Produce request, ready to go once its batches are committed.
struct Ticket {
    uint64_t connection = 0;
    std::string answer;  // empty for acks=0
};

/// What one turn of the network thread brought. Owns everything until the commit.
struct Work {
    std::map<std::shared_ptr<LogFile>, std::vector<PendingBatch>> batches;
    std::vector<Ticket> tickets;

    [[nodiscard]] bool empty() const { return tickets.empty(); }
};

/// The I/O thread and its group commit: all that came while a cycle ran is the next cycle. A cycle
/// is one pwritev a file, one fdatasync a file if asked for, one statx of the session directory.
class Committer {
public:
    Committer(const std::string& session_directory, bool sync);
    ~Committer();
    Committer(const Committer&) = delete;
    Committer& operator=(const Committer&) = delete;

    /// Network thread.
    void submit(Work work);
    std::vector<Ticket> take_done();

    /// Readable when there is something done.
    [[nodiscard]] int wake_fd() const { return wake_.get(); }

private:
    void run();
    void commit(const Work& work) const;

    Fd session_;
    Fd wake_;
    bool sync_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Work> pending_;  // under mutex_
    std::vector<Ticket> done_;   // under mutex_
    bool stopping_ = false;      // under mutex_
    std::thread thread_;
};

}  // namespace kaas::bench
