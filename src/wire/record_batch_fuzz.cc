// What the hot path reads of a batch: any bytes give an error or a header whose claims hold.

#include "base/assert.h"
#include "base/bytes.h"
#include "wire/record_batch.h"
#include "wire/testing/fuzz_input.h"

#include <cstddef>
#include <cstdint>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace kaas;
    std::vector<std::byte> bytes = wire::testing::FuzzInput(data, size).rest();
    base::MutableBytes rest = bytes;
    while (auto batch = wire::first_batch(rest)) {
        KAAS_ASSERT(batch->bytes.size() == batch->header.size());
        (void)batch->header.last_offset();
        (void)batch->header.last_sequence();
        (void)batch->header.delete_horizon_ms();
        if (wire::check_from_client(batch->header)) {
            KAAS_ASSERT(batch->header.count > 0);
            KAAS_ASSERT(!batch->header.has_producer_id() || batch->header.last_sequence() >= 0);
        }
        const bool valid = wire::check_crc(*batch).has_value();
        base::MutableBytes own = rest.first(batch->bytes.size());
        wire::set_base_offset(own, 42);
        wire::set_partition_leader_epoch(own, 7);
        auto patched = wire::first_batch(own);
        KAAS_ASSERT(patched && patched->header.base_offset == 42);
        KAAS_ASSERT(wire::check_crc(*patched).has_value() == valid);
        rest = rest.subspan(own.size());
    }
    return 0;
}
