#include "wire/types.h"

#include "base/assert.h"
#include "base/bytes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>

namespace kaas::wire {
namespace detail {

Blob Blob::borrow(const std::byte* data, std::size_t size) {
    KAAS_ASSERT(size <= std::numeric_limits<std::uint32_t>::max());
    Blob blob;
    blob.data_ = data;
    blob.size_ = static_cast<std::uint32_t>(size);
    return blob;
}

const std::byte* Blob::clone(const std::byte* data, std::size_t size) {
    auto* memory = new std::byte[size];
    std::memcpy(memory, data, size);
    return memory;
}

Blob Blob::copy(const std::byte* data, std::size_t size) {
    if (size == 0) return {};
    Blob blob = borrow(clone(data, size), size);
    blob.owned_ = true;
    return blob;
}

}  // namespace detail

String::String(std::string_view text) {
    auto bytes = base::as_bytes(text);
    blob_ = detail::Blob::copy(bytes.data(), bytes.size());
}

String String::borrow(std::string_view text) {
    String string;
    auto bytes = base::as_bytes(text);
    string.blob_ = detail::Blob::borrow(bytes.data(), bytes.size());
    return string;
}

Bytes::Bytes(ByteView bytes) : blob_(detail::Blob::copy(bytes.data(), bytes.size())) {}

Bytes Bytes::borrow(ByteView bytes) {
    Bytes result;
    result.blob_ = detail::Blob::borrow(bytes.data(), bytes.size());
    return result;
}

bool operator==(const Bytes& a, const Bytes& b) { return std::ranges::equal(a.view(), b.view()); }

Records Records::bytes(ByteView view) {
    // Never written through: writable() asserts on the kind.
    Records records = in_frame({const_cast<std::byte*>(view.data()), view.size()});
    records.kind_ = Kind::kBytes;
    return records;
}

Records Records::in_frame(MutableBytes frame) {
    KAAS_ASSERT(frame.size() <= std::numeric_limits<std::int32_t>::max());
    Records records;
    records.data_ = frame.data();
    records.size_ = static_cast<std::uint32_t>(frame.size());
    records.kind_ = Kind::kInFrame;
    return records;
}

Records Records::external(std::uint32_t length, std::uint64_t cookie) {
    KAAS_ASSERT(length <= static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max()));
    Records records;
    records.cookie_ = cookie;
    records.size_ = length;
    records.kind_ = Kind::kExternal;
    return records;
}

ByteView Records::view() const {
    KAAS_ASSERT(kind_ != Kind::kExternal);
    return {data_, size_};
}

MutableBytes Records::writable() const {
    KAAS_ASSERT(kind_ == Kind::kInFrame || kind_ == Kind::kNull);
    return {data_, size_};
}

std::uint64_t Records::cookie() const {
    KAAS_ASSERT(kind_ == Kind::kExternal);
    return cookie_;
}

bool operator==(const Records& a, const Records& b) {
    if (a.is_null() != b.is_null() || a.is_external() != b.is_external()) return false;
    if (a.is_external()) return a.size_ == b.size_ && a.cookie_ == b.cookie_;
    return std::ranges::equal(a.view(), b.view());
}

bool operator==(const UnknownTags& a, const UnknownTags& b) {
    return std::ranges::equal(a.all(), b.all());
}

}  // namespace kaas::wire
