#include "base/heap.h"

#include <cstddef>

#ifdef __GLIBC__
#include <malloc.h>
#endif

/// jemalloc's, where it is linked: mallctl(3).
extern "C" [[gnu::weak]] int mallctl(const char* name, void* old_value, std::size_t* old_size,
                                     void* new_value, std::size_t new_size);

namespace kaas::base {

void trim_heap() {
    if (mallctl != nullptr) {
        mallctl("thread.tcache.flush", nullptr, nullptr, nullptr, 0);
        mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0);  // MALLCTL_ARENAS_ALL
        return;
    }
#ifdef __GLIBC__
    ::malloc_trim(0);
#endif
}

}  // namespace kaas::base
