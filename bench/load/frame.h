#pragma once

#include "common/api.h"
#include "common/bytes.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace kaas::bench {

inline constexpr std::string_view kBenchClientId = "kaas-bench";

/// Starts a request frame: size (patched by finish_frame), request header version 2, correlation
/// id zero.
inline Writer begin_frame(Api api, int16_t version) {
    Writer frame;
    frame.i32(0);
    frame.i16(static_cast<int16_t>(api));
    frame.i16(version);
    frame.i32(0);  // correlation id
    frame.short_string(kBenchClientId);
    frame.no_tags();
    return frame;
}

inline std::string finish_frame(Writer& frame) {
    frame.patch_i32(0, static_cast<int32_t>(frame.size() - 4));
    return frame.take();
}

}  // namespace kaas::bench
