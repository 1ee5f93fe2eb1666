#include "common/fd.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace kaas::bench {

Fd::~Fd() {
    if (fd_ >= 0) close(fd_);
}

void fail(const std::string& message) {
    std::fprintf(stderr, "bench: %s\n", message.c_str());
    std::exit(1);
}

void fail_errno(const std::string& what) { fail(what + ": " + std::strerror(errno)); }

}  // namespace kaas::bench
