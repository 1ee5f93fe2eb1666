// Records of a hostile batch: refused, or read and built again the same. Unpacking stays in its
// limit. Input: codec, record count, payload.

#include "base/assert.h"
#include "base/bytes.h"
#include "base/metrics.h"
#include "wire/compression.h"
#include "wire/error.h"
#include "wire/record_batch.h"
#include "wire/records.h"
#include "wire/testing/fuzz_input.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace {

using namespace kaas;

constexpr std::size_t kLimitBytes = std::size_t{1} << 20;

std::vector<std::byte> with_payload(wire::Compression codec, std::int32_t count,
                                    const std::vector<std::byte>& payload) {
    wire::BatchBuilder builder({});
    builder.add(0, std::nullopt, std::nullopt);
    std::vector<std::byte> batch = builder.build();
    batch.resize(wire::BatchHeader::kBytes);
    batch.insert(batch.end(), payload.begin(), payload.end());
    base::store_be(batch.data() + 8, static_cast<std::int32_t>(batch.size() - 12));
    base::store_be(batch.data() + 21, static_cast<std::uint16_t>(codec));
    base::store_be(batch.data() + 57, count);
    return batch;
}

struct Read {
    std::unique_ptr<wire::RecordReader> reader;  // records borrow from it
    std::vector<wire::Record> records;
};

std::optional<Read> read(base::ByteView batch, wire::DecodeSite& site) {
    auto view = wire::first_batch(batch);
    KAAS_ASSERT(view);
    auto reader = wire::RecordReader::open(*view, site, {.batch_bytes = kLimitBytes});
    if (!reader) return std::nullopt;
    Read result{.reader = std::make_unique<wire::RecordReader>(std::move(*reader)), .records = {}};
    for (;;) {
        auto more = result.reader->next(result.records.emplace_back());
        if (!more) return std::nullopt;
        if (*more) continue;
        result.records.pop_back();
        return result;
    }
}

/// Builders number records upwards; a fuzzer need not.
bool offsets_rise(const std::vector<wire::Record>& records) {
    std::int64_t last = -1;
    for (const auto& record : records) {
        if (record.offset <= last) return false;
        last = record.offset;
    }
    return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static base::metrics::Registry registry;
    static wire::DecodeSite site(registry, "fuzz");
    wire::testing::FuzzInput input(data, size);
    const auto codec = wire::Compression(input.byte() % 8);
    const std::int32_t count = input.byte();
    std::vector<std::byte> batch = with_payload(codec, count, input.rest());
    auto once = read(batch, site);
    if (!once || once->records.empty() || !offsets_rise(once->records)) return 0;
    wire::BatchBuilder builder({});
    for (const auto& record : once->records) {
        builder.add_at(record.offset, record.timestamp_ms, record.key, record.value,
                       record.headers);
    }
    std::vector<std::byte> rebuilt = builder.build();
    auto twice = read(rebuilt, site);
    KAAS_ASSERT(twice && twice->records == once->records);
    return 0;
}
