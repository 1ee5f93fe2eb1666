#pragma once

#include "base/result.h"

#include <cstdint>
#include <string_view>

namespace kaas::wire {

/// What can be wrong with bytes that are decoded, or with a message that is encoded. The codes that
/// go over the wire are `wire::ErrorCode` (`wire/error_code.h`).
enum class CodecError : std::uint8_t {
    kTruncated,           ///< the bytes end inside a field, or a length points past their end
    kInvalid,             ///< a length, count, varint or marker that no writer produces
    kTooLarge,            ///< more elements, or more memory for them, than a frame may ask for
    kUnknownApi,          ///< no such API key
    kUnsupportedVersion,  ///< the API exists, but not this version of it
    kUnsupportedField,    ///< a field is set that the version lacks and must not lose
    kCorrupt,             ///< a checksum does not match
    kUnsupportedMagic,    ///< a record batch of a format before v2 (or an unknown one)
    kCompression,         ///< compressed records that their codec refuses, or an unknown codec
};

[[nodiscard]] std::string_view to_string(CodecError code);

using Error = base::Error<CodecError>;

template <class T>
using Result = base::Result<T, CodecError>;

}  // namespace kaas::wire
