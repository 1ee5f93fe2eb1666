#pragma once

#include "wire/error.h"
#include "wire/types.h"
#include "wire/writer.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kaas::wire::testing {

class Random;

enum class Kind { kRequest, kResponse, kHeader, kRecord };

/// What came out of decoding and encoding again.
struct Recoded {
    Output output;
    std::string json;      ///< of the message, as Apache's JsonConverter writes it
    std::size_t left = 0;  ///< bytes behind the message
};

/// Any message, for tests that go over all of them.
struct MessageType {
    std::string_view name;
    Kind kind;
    std::int16_t key;  ///< -1 for headers and stored records
    std::int16_t min;
    std::int16_t max;
    Result<Recoded> (*recode)(MutableBytes bytes, std::int16_t version);
    Result<void> (*decode_only)(MutableBytes bytes, std::int16_t version);
    /// A filled message; with a null `random`, one that has every default.
    Result<Output> (*make)(Random* random, std::int16_t version);
};

/// By name.
const std::vector<MessageType>& all_messages();

}  // namespace kaas::wire::testing
