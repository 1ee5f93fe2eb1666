#pragma once

namespace kaas::base {

/// Writes the failed condition and its place to stderr and aborts.
[[noreturn]] void assert_failed(const char* condition, const char* file, int line);

}  // namespace kaas::base

/// States what our own code guarantees; on in release builds too. Bytes from a socket, a disk, a
/// peer or a configuration get an error instead.
#define KAAS_ASSERT(condition)                                                         \
    do {                                                                               \
        if (!(condition)) ::kaas::base::assert_failed(#condition, __FILE__, __LINE__); \
    } while (false)
