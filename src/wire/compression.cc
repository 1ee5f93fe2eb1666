#include "wire/compression.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/result.h"
#include "wire/error.h"
#include "wire/types.h"

#include <fmt/format.h>
#include <lz4frame.h>
#include <snappy.h>
#include <zlib.h>
#include <zstd.h>

#include <zconf.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::wire {
namespace {

using Buffer = std::vector<std::byte>;

std::unexpected<Error> refused(std::string_view codec, std::string_view why) {
    return base::fail(CodecError::kCompression, fmt::format("{}: {}", codec, why));
}

std::unexpected<Error> too_large(std::string_view codec, std::size_t limit) {
    return base::fail(CodecError::kTooLarge, fmt::format("{}: more than {} bytes", codec, limit));
}

/// Output that doubles as it fills, up to a limit.
class Growing {
public:
    Growing(std::size_t packed, std::size_t limit)
        : limit_(limit), buffer_(std::min(limit, std::max<std::size_t>(4096, packed * 4))) {}

    /// Makes room; false at the limit.
    [[nodiscard]] bool grow() {
        if (used_ < buffer_.size()) return true;
        if (buffer_.size() >= limit_) return false;
        buffer_.resize(std::min(limit_, buffer_.size() * 2));
        return true;
    }
    [[nodiscard]] std::byte* at() { return buffer_.data() + used_; }
    [[nodiscard]] std::size_t room() const { return buffer_.size() - used_; }
    void add(std::size_t bytes) { used_ += bytes; }
    [[nodiscard]] Buffer take() {
        buffer_.resize(used_);
        return std::move(buffer_);
    }

private:
    std::size_t limit_;
    Buffer buffer_;
    std::size_t used_ = 0;
};

bool starts_gzip_member(ByteView bytes) {
    return bytes.size() >= 2 && bytes[0] == std::byte{0x1F} && bytes[1] == std::byte{0x8B};
}

constexpr int kGzipWindowBits = 15 + 16;  // zlib: 16 asks for gzip's header

/// Members may follow each other, as in java.util.zip.GZIPInputStream; other bytes after one are
/// ignored.
Result<Buffer> gunzip(ByteView packed, std::size_t limit) {
    Growing out(packed.size(), limit);
    z_stream stream{};
    if (inflateInit2(&stream, kGzipWindowBits) != Z_OK) return refused("gzip", "no memory");
    auto end = [](z_stream* s) { inflateEnd(s); };
    std::unique_ptr<z_stream, decltype(end)> owner(&stream, end);
    for (;;) {
        if (!out.grow()) {
            // A full buffer may be all there is: only the trailer is left then.
            std::byte probe{};
            stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
            stream.avail_in = static_cast<uInt>(packed.size());
            stream.next_out = reinterpret_cast<Bytef*>(&probe);
            stream.avail_out = 1;
            int code = inflate(&stream, Z_NO_FLUSH);
            if (code == Z_STREAM_END && stream.avail_out == 1) return out.take();
            return too_large("gzip", limit);
        }
        std::size_t room = std::min<std::size_t>(out.room(), std::numeric_limits<uInt>::max());
        stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
        stream.avail_in = static_cast<uInt>(packed.size());
        stream.next_out = reinterpret_cast<Bytef*>(out.at());
        stream.avail_out = static_cast<uInt>(room);
        int code = inflate(&stream, Z_NO_FLUSH);
        out.add(room - stream.avail_out);
        packed = packed.last(stream.avail_in);
        if (code == Z_STREAM_END) {
            if (!starts_gzip_member(packed)) return out.take();
            if (inflateReset(&stream) != Z_OK) return refused("gzip", "no memory");
        } else if (code != Z_OK && !(code == Z_BUF_ERROR && stream.avail_out == 0)) {
            return refused("gzip", stream.msg != nullptr ? stream.msg : "the stream ends early");
        }
    }
}

Buffer gzip(ByteView plain, std::optional<int> level) {
    z_stream stream{};
    int code = deflateInit2(&stream, level.value_or(Z_DEFAULT_COMPRESSION), Z_DEFLATED,
                            kGzipWindowBits, 8, Z_DEFAULT_STRATEGY);
    KAAS_ASSERT(code == Z_OK);
    Buffer out(deflateBound(&stream, plain.size()));
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(plain.data()));
    stream.avail_in = static_cast<uInt>(plain.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    code = deflate(&stream, Z_FINISH);
    KAAS_ASSERT(code == Z_STREAM_END);
    out.resize(out.size() - stream.avail_out);
    deflateEnd(&stream);
    return out;
}

// snappy-java (xerial): magic, version 1, oldest compatible version 1; then blocks with a
// big-endian length before each.
constexpr std::array<std::uint8_t, 16> kXerialHeader = {0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0,
                                                        0,    0,   0,   1,   0,   0,   0,   1};
constexpr std::size_t kXerialMagicBytes = 8;
constexpr std::size_t kXerialBlockBytes = std::size_t{32} << 10;

bool is_xerial(ByteView bytes) {
    return bytes.size() >= kXerialHeader.size() &&
           std::memcmp(bytes.data(), kXerialHeader.data(), kXerialMagicBytes) == 0;
}

Result<void> unsnappy_block(ByteView block, std::size_t limit, Buffer& out) {
    const char* data = reinterpret_cast<const char*>(block.data());
    std::size_t size = 0;
    if (!snappy::GetUncompressedLength(data, block.size(), &size))
        return refused("snappy", "no length");
    if (size > limit - out.size()) return too_large("snappy", limit);
    // Sixty-four bytes come from three at best: a length far beyond that is a lie, found before it
    // costs memory.
    if (size / 32 > block.size()) return refused("snappy", "a length that the block cannot hold");
    std::size_t before = out.size();
    out.resize(before + size);
    if (!snappy::RawUncompress(data, block.size(), reinterpret_cast<char*>(out.data() + before))) {
        return refused("snappy", "a corrupt block");
    }
    return {};
}

Result<Buffer> unsnappy(ByteView packed, std::size_t limit) {
    Buffer out;
    if (!is_xerial(packed)) {
        KAAS_TRY(unsnappy_block(packed, limit, out));
        return out;
    }
    while (!packed.empty()) {
        if (is_xerial(packed)) {
            packed = packed.subspan(kXerialHeader.size());
            continue;
        }
        if (packed.size() < 4) return refused("snappy", "the stream ends early");
        auto size = base::load_be<std::uint32_t>(packed.data());
        packed = packed.subspan(4);
        if (size > packed.size()) return refused("snappy", "the stream ends early");
        KAAS_TRY(unsnappy_block(packed.first(size), limit, out));
        packed = packed.subspan(size);
    }
    return out;
}

Buffer snap(ByteView plain) {
    Buffer out(kXerialHeader.size());
    std::memcpy(out.data(), kXerialHeader.data(), out.size());
    std::string block;
    while (!plain.empty()) {
        ByteView chunk = plain.first(std::min(plain.size(), kXerialBlockBytes));
        snappy::Compress(reinterpret_cast<const char*>(chunk.data()), chunk.size(), &block);
        std::array<std::byte, 4> length{};
        base::store_be(length.data(), static_cast<std::uint32_t>(block.size()));
        out.insert(out.end(), length.begin(), length.end());
        ByteView bytes = base::as_bytes(block);
        out.insert(out.end(), bytes.begin(), bytes.end());
        plain = plain.subspan(chunk.size());
    }
    return out;
}

Result<Buffer> unlz4(ByteView packed, std::size_t limit) {
    Growing out(packed.size(), limit);
    LZ4F_dctx* raw = nullptr;
    if (LZ4F_isError(LZ4F_createDecompressionContext(&raw, LZ4F_VERSION))) {
        return refused("lz4", "no memory");
    }
    std::unique_ptr<LZ4F_dctx, decltype(&LZ4F_freeDecompressionContext)> context(
        raw, &LZ4F_freeDecompressionContext);
    for (;;) {
        std::byte probe{};
        const bool full = !out.grow();
        std::size_t produced = full ? 1 : out.room();
        std::size_t consumed = packed.size();
        std::size_t code = LZ4F_decompress(context.get(), full ? &probe : out.at(), &produced,
                                           packed.data(), &consumed, nullptr);
        if (LZ4F_isError(code)) return refused("lz4", LZ4F_getErrorName(code));
        if (full && produced > 0) return too_large("lz4", limit);
        if (!full) out.add(produced);
        packed = packed.subspan(consumed);
        if (code == 0) return out.take();  // one frame; Apache reads no further either
        if (consumed == 0 && produced == 0) return refused("lz4", "the stream ends early");
    }
}

/// Kafka's levels go to 17, which is what lz4-java calls its highest; the library's end before.
Buffer lz4(ByteView plain, std::optional<int> level) {
    LZ4F_preferences_t preferences{};
    preferences.frameInfo.blockMode = LZ4F_blockIndependent;  // all that Apache reads
    preferences.frameInfo.blockSizeID = LZ4F_max64KB;
    preferences.compressionLevel = std::min(level.value_or(0), LZ4F_compressionLevel_max());
    Buffer out(LZ4F_compressFrameBound(plain.size(), &preferences));
    std::size_t size =
        LZ4F_compressFrame(out.data(), out.size(), plain.data(), plain.size(), &preferences);
    KAAS_ASSERT(!LZ4F_isError(size));
    out.resize(size);
    return out;
}

Result<Buffer> unzstd(ByteView packed, std::size_t limit) {
    Growing out(packed.size(), limit);
    std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(), &ZSTD_freeDCtx);
    if (!context) return refused("zstd", "no memory");
    ZSTD_inBuffer in{packed.data(), packed.size(), 0};
    for (;;) {
        std::byte probe{};
        const bool full = !out.grow();
        ZSTD_outBuffer to{full ? &probe : out.at(), full ? 1 : out.room(), 0};
        const std::size_t before = in.pos;
        std::size_t code = ZSTD_decompressStream(context.get(), &to, &in);
        if (ZSTD_isError(code)) return refused("zstd", ZSTD_getErrorName(code));
        if (full && to.pos > 0) return too_large("zstd", limit);
        if (!full) out.add(to.pos);
        if (code == 0 && in.pos == in.size) return out.take();
        if (in.pos == before && to.pos == 0) return refused("zstd", "the stream ends early");
    }
}

Buffer zstd(ByteView plain, std::optional<int> level) {
    Buffer out(ZSTD_compressBound(plain.size()));
    std::size_t size = ZSTD_compress(out.data(), out.size(), plain.data(), plain.size(),
                                     level.value_or(ZSTD_CLEVEL_DEFAULT));
    KAAS_ASSERT(!ZSTD_isError(size));
    out.resize(size);
    return out;
}

}  // namespace

std::string_view to_string(Compression codec) {
    switch (codec) {
        case Compression::kNone: return "none";
        case Compression::kGzip: return "gzip";
        case Compression::kSnappy: return "snappy";
        case Compression::kLz4: return "lz4";
        case Compression::kZstd: return "zstd";
    }
    return "unknown";
}

Result<std::vector<std::byte>> decompress(Compression codec, ByteView packed,
                                          std::size_t limit_bytes) {
    // No batch is as large as that, and zlib counts in 32 bits.
    KAAS_ASSERT(packed.size() <= std::numeric_limits<std::uint32_t>::max());
    switch (codec) {
        case Compression::kNone: return Buffer(packed.begin(), packed.end());
        case Compression::kGzip: return gunzip(packed, limit_bytes);
        case Compression::kSnappy: return unsnappy(packed, limit_bytes);
        case Compression::kLz4: return unlz4(packed, limit_bytes);
        case Compression::kZstd: return unzstd(packed, limit_bytes);
    }
    return base::fail(CodecError::kCompression,
                      fmt::format("unknown codec {}", static_cast<int>(codec)));
}

std::vector<std::byte> compress(Compression codec, ByteView plain, std::optional<int> level) {
    KAAS_ASSERT(plain.size() <= std::numeric_limits<std::uint32_t>::max());
    switch (codec) {
        case Compression::kNone: return {plain.begin(), plain.end()};
        case Compression::kGzip: return gzip(plain, level);
        case Compression::kSnappy: return snap(plain);
        case Compression::kLz4: return lz4(plain, level);
        case Compression::kZstd: return zstd(plain, level);
    }
    KAAS_ASSERT(false);
    return {};
}

}  // namespace kaas::wire
