#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kaas::net {

/// What this process may use at most: the least of the machine's memory and the limits of its
/// control group and that one's parents (version 2, else 1).
[[nodiscard]] std::uint64_t memory_limit_bytes(const std::string& proc = "/proc",
                                               const std::string& cgroup = "/sys/fs/cgroup");
/// A quarter of it: the default of `queued.max.request.bytes`. (Apache's is "unlimited".)
[[nodiscard]] std::size_t default_request_memory_bytes();

}  // namespace kaas::net
