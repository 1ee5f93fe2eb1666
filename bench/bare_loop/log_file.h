#pragma once

#include "common/fd.h"

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kaas::bench {

/// Memory that a recv filled; a batch on its way to the file keeps it.
using Buffer = std::shared_ptr<char[]>;

/// A batch inside a buffer.
struct PendingBatch {
    Buffer owner;
    std::string_view bytes;
};

/// An append-only file. The network thread gives out places, the I/O thread writes and syncs.
class LogFile {
public:
    /// Creates `path`. `zero_fill` bytes are written ahead, so that a sync need not extend the
    /// file.
    LogFile(std::string path, size_t zero_fill);
    LogFile(const LogFile&) = delete;
    LogFile& operator=(const LogFile&) = delete;
    ~LogFile();  // removes the file

    [[nodiscard]] int fd() const { return fd_.get(); }

    /// Network thread: where the next `bytes` will stand. Batches are committed in this order.
    off_t place(size_t bytes);

    /// I/O thread: as few pwritev as IOV_MAX allows.
    void append(const std::vector<PendingBatch>& batches);
    void sync() const;
    void publish() { committed_.store(written_, std::memory_order_release); }

    /// Any thread: readers may see the file up to here.
    [[nodiscard]] off_t committed() const { return committed_.load(std::memory_order_acquire); }

private:
    std::string path_;
    Fd fd_;
    off_t placed_ = 0;   // network thread
    off_t written_ = 0;  // I/O thread
    std::atomic<off_t> committed_ = 0;
};

}  // namespace kaas::bench
