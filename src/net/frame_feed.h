#pragma once

#include "base/buffer.h"
#include "base/bytes.h"
#include "net/frame_memory.h"
#include "net/frame_reader.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

/// What the unit test and the fuzzer of `FrameReader` share.
namespace kaas::net {

/// As a socket would: fills the room that `reader` offers with the next bytes of `stream`, `step`
/// at most. Gives how many.
inline std::size_t feed(FrameReader& reader, SlabSource& slabs, std::string_view stream,
                        std::size_t step) {
    std::array<iovec, 2> pieces;
    std::size_t done = 0;
    for (const iovec& piece : reader.room(slabs, pieces)) {
        std::size_t bytes = std::min({piece.iov_len, stream.size() - done, step - done});
        if (bytes > 0) std::memcpy(piece.iov_base, stream.data() + done, bytes);
        done += bytes;
    }
    if (done > 0) reader.received(done, slabs);
    return done;
}

/// The frames that a stream holds, cut the plain way.
struct CutStream {
    std::vector<std::string> frames;
    FrameReader::Next end = FrameReader::Next::kReceive;
};
inline CutStream cut(std::string_view stream, std::size_t frame_max) {
    CutStream result;
    while (stream.size() >= 4) {
        auto size = base::load_be<std::int32_t>(base::as_bytes(stream).data());
        if (size < 0 || static_cast<std::size_t>(size) > frame_max) {
            result.end = size < 0 ? FrameReader::Next::kNegative : FrameReader::Next::kTooLarge;
            break;
        }
        if (stream.size() - 4 < static_cast<std::size_t>(size)) break;
        result.frames.emplace_back(stream.substr(4, static_cast<std::size_t>(size)));
        stream.remove_prefix(4 + static_cast<std::size_t>(size));
    }
    return result;
}

}  // namespace kaas::net
