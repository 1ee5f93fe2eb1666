#include "base/crc32c.h"

#include "base/bytes.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace kaas::base {
namespace {

// ISA-L takes the length as int.
constexpr std::size_t kChunkBytes = std::size_t{1} << 30;

unsigned char* isal_pointer(const std::byte* bytes) {
    // ISA-L's signature lacks const; it only reads.
    return const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes));
}

}  // namespace

std::uint32_t crc32c(ByteView bytes, std::uint32_t seed) {
    std::uint32_t state = ~seed;
    while (!bytes.empty()) {
        ByteView chunk = bytes.first(std::min(bytes.size(), kChunkBytes));
        state = ::crc32_iscsi(isal_pointer(chunk.data()), static_cast<int>(chunk.size()), state);
        bytes = bytes.subspan(chunk.size());
    }
    return ~state;
}

}  // namespace kaas::base
