// The first bytes that a stranger sends: refused, or a header that is written back the same.

#include "base/assert.h"
#include "base/bytes.h"
#include "wire/api.h"
#include "wire/message.h"
#include "wire/reader.h"
#include "wire/testing/fuzz_input.h"
#include "wire/writer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace kaas;
    std::vector<std::byte> bytes = wire::testing::FuzzInput(data, size).rest();
    wire::Reader in{base::ByteView(bytes)};
    auto header = wire::decode_request_header(in);
    if (!header) return 0;
    const wire::Api* api = wire::find_api(header->request_api_key);
    KAAS_ASSERT(api != nullptr);
    const std::int16_t version = api->request_header(header->request_api_version);
    wire::Writer out;
    if (!wire::encode(out, *header, version)) return 0;  // unknown tags out of order
    auto again = wire::decode_all<wire::RequestHeader>(out.view(), version);
    KAAS_ASSERT(again && *again == *header);
    return 0;
}
