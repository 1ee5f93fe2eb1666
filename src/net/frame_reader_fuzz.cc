// Bytes of a stream and the sizes of its receives are the fuzzer's. The frames must be those that a
// plain cutter finds, and all memory must come back.
#include "base/assert.h"
#include "base/buffer.h"
#include "base/bytes.h"
#include "net/frame_feed.h"
#include "net/frame_memory.h"
#include "net/frame_reader.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr std::uint32_t kFrameMax = 200'000;

/// The fuzzer cannot grow large inputs: every byte from 0xf0 on stands for a run of itself.
std::string inflate(std::string_view data) {
    std::string stream;
    for (char c : data) {
        auto byte = static_cast<unsigned char>(c);
        stream.append(byte >= 0xf0 ? std::size_t{1} << (byte - 0xf0 + 2) : 1, c);
    }
    return stream;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using kaas::net::FrameReader;
    if (size < 4) return 0;
    std::uint32_t steps[2] = {data[0] + 1U, (data[1] + 1U) << (data[2] % 10)};
    std::string stream = inflate({reinterpret_cast<const char*>(data) + 3, size - 3});
    auto expected = kaas::net::cut(stream, kFrameMax);
    kaas::net::FrameMemory memory(1 << 20, [] {});
    {
        kaas::net::SlabSource slabs(memory);
        FrameReader reader(kFrameMax);
        std::string_view rest = stream;
        std::vector<kaas::base::FrameRef> kept;
        for (int turn = 0;; ++turn) {
            kaas::base::FrameRef frame;
            FrameReader::Next next = reader.next(slabs, turn % 2 == 0, frame);
            if (next == FrameReader::Next::kFrame) {
                kept.push_back(frame);
                if (kept.size() > expected.frames.size()) KAAS_ASSERT(false);
                KAAS_ASSERT(kaas::base::as_text(frame.bytes) == expected.frames[kept.size() - 1]);
            } else if (next == FrameReader::Next::kNoMemory) {
                // Frames are held to the end here, so memory may run out: that is an answer too.
                return 0;
            } else if (next != FrameReader::Next::kReceive || rest.empty()) {
                KAAS_ASSERT(next == expected.end && kept.size() == expected.frames.size());
                break;
            } else {
                rest.remove_prefix(kaas::net::feed(reader, slabs, rest, steps[turn % 2]));
            }
        }
    }
    KAAS_ASSERT(memory.used() == 0);
    return 0;
}
