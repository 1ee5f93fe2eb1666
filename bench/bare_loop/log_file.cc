#include "bare_loop/log_file.h"

#include "common/fd.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace kaas::bench {

LogFile::LogFile(std::string path, size_t zero_fill)
    : path_(std::move(path)),
      fd_(open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644)) {
    if (fd_.get() < 0) fail_errno(path_);
    const std::string zeros(1 << 20, '\0');
    for (size_t filled = 0; filled < zero_fill; filled += zeros.size()) {
        if (pwrite(fd_.get(), zeros.data(), zeros.size(), static_cast<off_t>(filled)) < 0) {
            fail_errno("zero fill");
        }
    }
    if (zero_fill > 0 && fsync(fd_.get()) != 0) fail_errno("fsync");
}

LogFile::~LogFile() { unlink(path_.c_str()); }

off_t LogFile::place(size_t bytes) {
    placed_ += static_cast<off_t>(bytes);
    return placed_ - static_cast<off_t>(bytes);
}

void LogFile::append(const std::vector<PendingBatch>& batches) {
    std::vector<iovec> pieces;
    pieces.reserve(batches.size());
    for (const auto& batch : batches) {
        pieces.push_back({const_cast<char*>(batch.bytes.data()), batch.bytes.size()});
    }
    for (size_t at = 0; at < pieces.size();) {
        const auto count = std::min<size_t>(pieces.size() - at, IOV_MAX);
        ssize_t wanted = 0;
        for (size_t i = at; i < at + count; ++i) wanted += static_cast<ssize_t>(pieces[i].iov_len);
        if (pwritev(fd_.get(), &pieces[at], static_cast<int>(count), written_) != wanted) {
            fail_errno("pwritev");
        }
        written_ += wanted;
        at += count;
    }
}

void LogFile::sync() const {
    if (fdatasync(fd_.get()) != 0) fail_errno("fdatasync");
}

}  // namespace kaas::bench
