#include "wire/error.h"

#include <string_view>

namespace kaas::wire {

std::string_view to_string(CodecError code) {
    switch (code) {
        case CodecError::kTruncated: return "truncated";
        case CodecError::kInvalid: return "invalid";
        case CodecError::kTooLarge: return "too large";
        case CodecError::kUnknownApi: return "unknown API";
        case CodecError::kUnsupportedVersion: return "unsupported version";
        case CodecError::kUnsupportedField: return "unsupported field";
        case CodecError::kCorrupt: return "corrupt";
        case CodecError::kUnsupportedMagic: return "unsupported magic";
        case CodecError::kCompression: return "compression";
    }
    return "unknown";
}

}  // namespace kaas::wire
