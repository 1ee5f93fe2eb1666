// Bytes of any kind are refused or decoded; what was decoded and written is read and written the
// same again. Input: index of the message type, version, body.

#include "base/assert.h"
#include "base/bytes.h"
#include "wire/testing/all_messages.h"
#include "wire/testing/fuzz_input.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

using kaas::wire::testing::all_messages;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    kaas::wire::testing::FuzzInput input(data, size);
    const auto& type = all_messages()[input.byte() % all_messages().size()];
    const auto version =
        static_cast<std::int16_t>(type.min + input.byte() % (type.max - type.min + 1));
    std::vector<std::byte> body = input.rest();
    auto first = type.recode(body, version);
    if (!first) return 0;
    kaas::base::ByteView written = first->output.bytes();
    std::vector<std::byte> again(written.begin(), written.end());
    auto second = type.recode(again, version);
    KAAS_ASSERT(second);
    KAAS_ASSERT(second->left == 0);
    KAAS_ASSERT(std::ranges::equal(second->output.bytes(), written));
    KAAS_ASSERT(second->json == first->json);
    return 0;
}
