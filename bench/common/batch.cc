#include "common/batch.h"

#include "common/bytes.h"

#include <isa-l/crc.h>

#include <endian.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>

namespace kaas::bench {
namespace {

std::string random_bytes(std::mt19937_64& random, size_t count) {
    std::string bytes(count, '\0');
    for (auto& byte : bytes) byte = static_cast<char>(random());
    return bytes;
}

std::string make_record(int offset_delta, std::string_view value) {
    Writer body;
    body.i8(0);      // attributes
    body.varint(0);  // timestamp delta
    body.varint(offset_delta);
    body.varint(-1);  // no key
    body.varint(static_cast<int64_t>(value.size()));
    body.raw(value);
    body.varint(0);  // no headers
    Writer record;
    record.varint(static_cast<int64_t>(body.size()));
    record.raw(body.bytes());
    return record.take();
}

constexpr uint16_t kTransactional = 0x10;

template <typename T>
void patch(std::string& batch, size_t at, T big_endian) {
    std::memcpy(batch.data() + at, &big_endian, sizeof big_endian);
}

}  // namespace

uint32_t batch_crc(std::string_view batch) {
    const auto covered = batch.substr(kBatchAttributesAt);
    // ISA-L takes a mutable pointer but only reads.
    auto* bytes = reinterpret_cast<unsigned char*>(const_cast<char*>(covered.data()));
    return ~crc32_iscsi(bytes, static_cast<int>(covered.size()), ~0U);
}

std::string make_batch(int records, size_t value_bytes, uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
                         std::chrono::system_clock::now().time_since_epoch())
                         .count();
    Writer batch;
    batch.i64(0);            // base offset: the broker's to give
    batch.i32(0);            // length, patched below
    batch.i32(-1);           // leader epoch
    batch.i8(2);             // magic
    batch.i32(0);            // CRC, patched below
    batch.i16(0);            // attributes: no codec, create time
    batch.i32(records - 1);  // last offset delta
    batch.i64(now);          // base timestamp
    batch.i64(now);          // largest timestamp
    batch.i64(-1);           // producer id
    batch.i16(-1);           // producer epoch
    batch.i32(-1);           // base sequence
    batch.i32(records);
    for (int i = 0; i < records; ++i) batch.raw(make_record(i, random_bytes(random, value_bytes)));
    batch.patch_i32(kBatchLengthAt, static_cast<int32_t>(batch.size() - kBatchLengthPrefix));
    batch.patch_i32(kBatchCrcAt, static_cast<int32_t>(batch_crc(batch.bytes())));
    return batch.take();
}

void make_transactional(std::string& batch, const BatchProducer& producer) {
    patch(batch, kBatchAttributesAt, htobe16(kTransactional));
    patch(batch, kBatchProducerIdAt, htobe64(static_cast<uint64_t>(producer.id)));
    patch(batch, kBatchProducerEpochAt, htobe16(static_cast<uint16_t>(producer.epoch)));
    patch(batch, kBatchBaseSequenceAt, htobe32(static_cast<uint32_t>(producer.base_sequence)));
    patch(batch, kBatchCrcAt, htobe32(batch_crc(batch)));
}

}  // namespace kaas::bench
