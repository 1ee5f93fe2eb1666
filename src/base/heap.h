#pragma once

namespace kaas::base {

/// Gives to the system what the heap keeps of memory that was freed. Costs milliseconds, and page
/// faults later if that memory is needed again: for when something large is over. Nothing where
/// the C library does not offer it. Thread: any.
void trim_heap();

}  // namespace kaas::base
