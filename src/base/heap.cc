#include "base/heap.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace kaas::base {

void trim_heap() {
#ifdef __GLIBC__
    ::malloc_trim(0);
#endif
}

}  // namespace kaas::base
