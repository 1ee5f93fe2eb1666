#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace kaas::base {

void assert_failed(const char* condition, const char* file, int line) {
    std::fprintf(stderr, "kaas: assertion failed: %s (%s:%d)\n", condition, file, line);
    std::abort();
}

}  // namespace kaas::base
