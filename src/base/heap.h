#pragma once

namespace kaas::base {

/// Gives to the system what the heap keeps of memory that was freed. Costs milliseconds, and page
/// faults later if that memory is needed again: for when something large is over. The heap is
/// jemalloc in the program (bin/heap.cc), else the C library's; of another it asks nothing. Thread:
/// any.
void trim_heap();

}  // namespace kaas::base
