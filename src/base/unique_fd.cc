#include "base/unique_fd.h"

#include <unistd.h>

namespace kaas::base {

void UniqueFd::reset(int fd) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
}

}  // namespace kaas::base
