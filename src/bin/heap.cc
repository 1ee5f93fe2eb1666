// How jemalloc, which is the program's heap, is set (docs/decisions/0031-heap.md).

/// Read by jemalloc before the first allocation: jemalloc(3), TUNING.
extern "C" const char* malloc_conf = "narenas:4,dirty_decay_ms:1000,muzzy_decay_ms:0";
