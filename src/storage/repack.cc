#include "storage/repack.h"

#include "base/crc32c.h"
#include "wire/compression.h"
#include "wire/record_batch.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

constexpr std::size_t kLengthAt = 8;
constexpr std::size_t kAttributesAt = 21;
constexpr std::uint16_t kCodecBits = 0x07;

/// Records do not know how they are packed: they are taken over as they are, behind the same
/// header.
[[nodiscard]] base::FrameRef wrap(const wire::BatchView& batch, wire::Compression codec,
                                  base::ByteView payload) {
    const auto size = wire::BatchHeader::kBytes + payload.size();
    auto block = base::Block::allocate(size);
    const base::MutableBytes bytes(block->data(), size);
    std::memcpy(bytes.data(), batch.bytes.data(), wire::BatchHeader::kBytes);
    if (!payload.empty())
        std::memcpy(bytes.data() + wire::BatchHeader::kBytes, payload.data(), payload.size());
    base::store_be(bytes.data() + kLengthAt,
                   static_cast<std::int32_t>(size - wire::BatchHeader::kLengthEnd));
    const auto attributes = base::load_be<std::uint16_t>(bytes.data() + kAttributesAt);
    base::store_be(
        bytes.data() + kAttributesAt,
        static_cast<std::uint16_t>((attributes & ~kCodecBits) | static_cast<std::uint16_t>(codec)));
    base::store_be(bytes.data() + wire::BatchHeader::kCrcAt,
                   base::crc32c(bytes.subspan(wire::BatchHeader::kCrcFrom)));
    return {std::move(block), bytes};
}

}  // namespace

bool must_repack(base::ByteView records, const LogConfig& config) {
    if (!config.compression) return false;
    const auto header = wire::BatchHeader::parse(records);
    return header && header->compression() != *config.compression;
}

Result<Repacked> repack(base::MutableBytes records, const LogConfig& config, std::int64_t now_ms,
                        wire::DecodeSite& site, std::vector<RecordFault>* faults) {
    // What is unpacked anyway is looked at whole.
    auto thorough = config;
    thorough.validate_records = true;
    KAAS_TRY_ASSIGN(batch, check_produced(records, thorough, now_ms, site, faults));
    // Nothing here is larger than what the records were just unpacked into.
    auto plain = wire::decompress(batch.header.compression(), batch.payload());
    if (!plain) return fail(ErrorCode::kInvalidRecord, std::move(plain).error().context);
    const auto codec = *config.compression;
    auto frame = wrap(batch, codec, wire::compress(codec, *plain, config.compression_level));
    KAAS_TRY(check_size(frame.bytes.size(), config));
    return Repacked{.frame = std::move(frame), .checked_ms = now_ms};
}

}  // namespace kaas::storage
