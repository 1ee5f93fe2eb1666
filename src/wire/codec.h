#pragma once

// What generated codecs are made of besides `Reader` and `Writer`: arrays and nullable structs.
// Included by generated sources only.

#include "wire/error_code.h"
#include "wire/reader.h"
#include "wire/types.h"
#include "wire/writer.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace kaas::wire {

inline void read_element(Reader& in, std::int8_t& to, std::int16_t, bool) { to = in.int8(); }
inline void read_element(Reader& in, std::int16_t& to, std::int16_t, bool) { to = in.int16(); }
inline void read_element(Reader& in, std::int32_t& to, std::int16_t, bool) { to = in.int32(); }
inline void read_element(Reader& in, std::int64_t& to, std::int16_t, bool) { to = in.int64(); }
inline void read_element(Reader& in, Uuid& to, std::int16_t, bool) { to = in.uuid(); }
inline void read_element(Reader& in, String& to, std::int16_t, bool flexible) {
    to = in.string(flexible);
}
inline void read_element(Reader& in, Bytes& to, std::int16_t, bool flexible) {
    to = in.bytes(flexible);
}
template <class T>
    requires requires(Reader& in, T& to) { to.decode(in, std::int16_t{}); }
void read_element(Reader& in, T& to, std::int16_t version, bool) {
    to.decode(in, version);
}

template <class T>
void read_elements(Reader& in, std::vector<T>& to, std::uint32_t count, std::int16_t version,
                   bool flexible) {
    to.clear();
    to.reserve(count);  // array_length has checked that they can be there
    for (; count > 0 && in.ok(); --count) read_element(in, to.emplace_back(), version, flexible);
}

template <class T>
void read_array(Reader& in, std::vector<T>& to, std::int16_t version, bool flexible,
                std::size_t wire_bytes_min) {
    read_elements(in, to, in.array_length_not_null(flexible, wire_bytes_min, sizeof(T)), version,
                  flexible);
}

template <class T>
void read_nullable_array(Reader& in, std::optional<std::vector<T>>& to, std::int16_t version,
                         bool flexible, std::size_t wire_bytes_min, bool may_be_null = true) {
    if (!may_be_null) return read_array(in, to.emplace(), version, flexible, wire_bytes_min);
    auto count = in.array_length(flexible, wire_bytes_min, sizeof(T));
    if (count) return read_elements(in, to.emplace(), *count, version, flexible);
    to.reset();
}

template <class T>
void read_nullable_struct(Reader& in, std::optional<T>& to, std::int16_t version) {
    if (in.int8() < 0) return to.reset();
    to.emplace().decode(in, version);
}

inline void write_element(Writer& out, std::int8_t v, std::int16_t, bool) { out.int8(v); }
inline void write_element(Writer& out, std::int16_t v, std::int16_t, bool) { out.int16(v); }
inline void write_element(Writer& out, std::int32_t v, std::int16_t, bool) { out.int32(v); }
inline void write_element(Writer& out, std::int64_t v, std::int16_t, bool) { out.int64(v); }
inline void write_element(Writer& out, const Uuid& v, std::int16_t, bool) { out.uuid(v); }
inline void write_element(Writer& out, const String& v, std::int16_t, bool flexible) {
    out.string(v, flexible);
}
inline void write_element(Writer& out, const Bytes& v, std::int16_t, bool flexible) {
    out.bytes(v, flexible);
}
template <class T>
    requires requires(Writer& out, const T& v) { v.encode(out, std::int16_t{}); }
void write_element(Writer& out, const T& v, std::int16_t version, bool) {
    v.encode(out, version);
}

template <class T>
void write_array(Writer& out, const std::vector<T>& from, std::int16_t version, bool flexible) {
    out.array_length(from.size(), flexible);
    for (const auto& element : from) write_element(out, element, version, flexible);
}

template <class T>
void write_nullable_array(Writer& out, const std::optional<std::vector<T>>& from,
                          std::int16_t version, bool flexible) {
    from ? write_array(out, *from, version, flexible) : out.null_array(flexible);
}

template <class T>
void write_nullable_struct(Writer& out, const std::optional<T>& from, std::int16_t version) {
    out.int8(from ? 1 : -1);
    if (from) from->encode(out, version);
}

inline void write_records(Writer& out, const Records& records, bool flexible, bool may_be_null,
                          const char* field) {
    if (records.is_null() && !may_be_null) return out.fail(CodecError::kUnsupportedField, field);
    out.records(records, flexible);
}

/// Null where the version has none is an error; the value passes through.
template <class T>
const std::optional<T>& check_null(Writer& out, const std::optional<T>& value, bool may_be_null,
                                   const char* field) {
    if (!value && !may_be_null) out.fail(CodecError::kUnsupportedField, field);
    return value;
}

}  // namespace kaas::wire
