// Our side of the oracle test: see Oracle.java and test_oracle.py for who asks whom.
//
//   facts                        what the registry says, a line an item
//   answer IN OUT SEED N         reads Apache's messages of IN: each must give the same bytes
//   again; writes to
//                                OUT what it read in them, and N random messages of each type and
//                                version
//   answer-batches IN OUT SEED N the same for record batches

#include "base/bytes.h"
#include "base/metrics.h"
#include "base/result.h"
#include "wire/api.h"
#include "wire/compression.h"
#include "wire/error.h"
#include "wire/error_code.h"
#include "wire/record_batch.h"
#include "wire/records.h"
#include "wire/testing/all_messages.h"
#include "wire/testing/random.h"
#include "wire/types.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <ios>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::wire::testing {
namespace {

using Memory = std::vector<std::byte>;

int checks = 0;
int failures = 0;

void fail(const std::string& text) {
    if (++failures <= 20) fmt::print(stderr, "FAIL {}\n", text);
}

std::string hex(ByteView bytes) {
    std::string result;
    for (std::byte b : bytes) result += fmt::format("{:02x}", std::to_integer<int>(b));
    return result;
}

struct Case {
    std::string name;
    std::int16_t version = 0;
    Memory bytes;
    std::string text;
};

class CaseFile {
public:
    explicit CaseFile(const char* path) {
        std::ifstream in(path, std::ios::binary);
        std::string all(std::istreambuf_iterator<char>(in), {});
        ByteView bytes = base::as_bytes(all);
        memory_.assign(bytes.begin(), bytes.end());
    }

    std::optional<Case> next() {
        if (at_ == memory_.size()) return std::nullopt;
        Case one;
        one.name = base::as_text(block());
        one.version = base::load_be<std::int16_t>(take(2).data());
        ByteView bytes = block();
        one.bytes.assign(bytes.begin(), bytes.end());
        one.text = base::as_text(block());
        return one;
    }

private:
    ByteView take(std::size_t count) {
        if (count > memory_.size() - at_) {
            fmt::print(stderr, "a broken file of cases\n");
            std::exit(2);
        }
        at_ += count;
        return ByteView(memory_).subspan(at_ - count, count);
    }
    ByteView block() { return take(base::load_be<std::uint32_t>(take(4).data())); }

    Memory memory_;
    std::size_t at_ = 0;
};

class CaseWriter {
public:
    explicit CaseWriter(const char* path) : out_(path, std::ios::binary) {}

    void write(std::string_view name, std::int16_t version, ByteView bytes, std::string_view text) {
        block(base::as_bytes(name));
        number(version);
        block(bytes);
        block(base::as_bytes(text));
        ++checks;
    }

private:
    template <class T>
    void number(T value) {
        std::byte memory[sizeof(T)];
        base::store_be(memory, value);
        raw(memory);
    }
    void raw(ByteView bytes) {
        auto text = base::as_text(bytes);
        out_.write(text.data(), static_cast<std::streamsize>(text.size()));
    }
    void block(ByteView bytes) {
        number(static_cast<std::uint32_t>(bytes.size()));
        raw(bytes);
    }

    std::ofstream out_;
};

void facts() {
    for (const Api& api : kApis) {
        std::string advertised = api.advertised.empty()
                                     ? "none"
                                     : fmt::format("{}-{}", api.advertised.min, api.advertised.max);
        fmt::print("api {} {} {} {} {} {} {} {} {}", static_cast<int>(api.key), api.name,
                   api.versions.min, api.versions.max, advertised, (api.listeners & kOnBroker) != 0,
                   (api.listeners & kOnController) != 0, api.forwardable, api.cluster_action);
        for (std::int16_t v = 0; v <= api.versions.max + 2; ++v) {
            fmt::print(" {}/{}", api.request_header(v), api.response_header(v));
        }
        fmt::print("\n");
    }
    for (const auto& type : all_messages()) {
        fmt::print("message {} {} {}\n", type.name, type.min, type.max);
    }
    for (int code = -32768; code < 32768; ++code) {
        auto error = ErrorCode(static_cast<std::int16_t>(code));
        if (to_string(error) == "UNKNOWN") continue;
        fmt::print("error {} {} {}\n", code, to_string(error), is_retriable(error));
    }
}

void answer_one(const MessageType& type, std::int16_t version, Memory bytes, CaseWriter& out) {
    const std::string what = fmt::format("{} v{}", type.name, version);
    const Memory before = bytes;
    auto recoded = type.recode(bytes, version);
    if (!recoded) return fail(fmt::format("{} on {}", recoded.error().context, hex(before)));
    if (recoded->left != 0) fail(fmt::format("{}: {} bytes were not read", what, recoded->left));
    ByteView again = recoded->output.bytes();
    if (!std::ranges::equal(again, before)) {
        fail(fmt::format("{}: read {}, wrote {}", what, hex(before), hex(again)));
    }
    out.write(type.name, version, before, recoded->json);
}

void answer(const char* in_path, const char* out_path, std::uint64_t seed, int count) {
    std::map<std::string_view, const MessageType*> types;
    for (const auto& type : all_messages()) types[type.name] = &type;
    CaseFile in(in_path);
    CaseWriter out(out_path);
    while (auto one = in.next()) {
        auto type = types.find(one->name);
        if (type == types.end()) {
            fail("no message of ours: " + one->name);
        } else {
            answer_one(*type->second, one->version, std::move(one->bytes), out);
        }
    }
    for (const auto& type : all_messages()) {
        Random random(seed ^ std::hash<std::string_view>{}(type.name));
        for (std::int16_t version = type.min; version <= type.max; ++version) {
            for (int i = -1; i < count; ++i) {  // first one of defaults
                auto made = type.make(i < 0 ? nullptr : &random, version);
                if (!made) {
                    fail(made.error().context);
                    continue;
                }
                ByteView bytes = made->bytes();
                answer_one(type, version, Memory(bytes.begin(), bytes.end()), out);
            }
        }
    }
}

std::string shown(const std::optional<ByteView>& bytes) {
    return bytes ? "x" + hex(*bytes) : "null";
}

/// The same text that Oracle.java makes of a batch.
Result<std::string> batch_text(ByteView bytes, DecodeSite& site) {
    KAAS_TRY_ASSIGN(view, first_batch(bytes));
    KAAS_TRY(check_crc(view));
    const BatchHeader& h = view.header;
    std::string out =
        fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {}\n", h.base_offset, h.last_offset(),
                    h.partition_leader_epoch, h.max_timestamp,
                    h.timestamp_type() == TimestampType::kLogAppendTime, h.producer_id,
                    h.producer_epoch, h.base_sequence, h.last_sequence(), h.transactional(),
                    h.control(), h.count, to_string(h.compression()));
    KAAS_TRY_ASSIGN(reader, RecordReader::open(view, site));
    Record record;
    for (;;) {
        KAAS_TRY_ASSIGN(more, reader.next(record));
        if (!more) return out;
        out += fmt::format("{} {} {} {} {}", record.offset, record.timestamp_ms, record.sequence,
                           shown(record.key), shown(record.value));
        for (const auto& header : record.headers) {
            out += fmt::format(" x{}={}", hex(base::as_bytes(header.key)), shown(header.value));
        }
        out += '\n';
    }
}

Memory random_batch(Random& random, Compression codec) {
    BatchBuilder::Options options{
        .base_offset = random.chance(3) ? 0 : random.integer(0, 1LL << 50),
        .partition_leader_epoch = static_cast<std::int32_t>(random.below(1000)),
        .compression = codec};
    if (random.chance(4)) {
        options.timestamp_type = TimestampType::kLogAppendTime;
        options.log_append_time_ms = 1'700'000'000'000;
    }
    if (random.chance(2)) {
        options.producer_id = random.below(1'000'000);
        options.producer_epoch = static_cast<std::int16_t>(random.below(30'000));
        options.base_sequence = static_cast<std::int32_t>(random.integer(0, 0x7FFF'FFFF));
        options.transactional = random.chance(2);
    }
    BatchBuilder builder(options);
    std::int64_t offset = options.base_offset;
    for (std::uint32_t left = 1 + random.below(20); left > 0; --left) {
        const Memory key = random.bytes();
        const Memory value = random.bytes();
        const std::string name = random.text();
        std::vector<RecordHeader> headers;
        for (std::uint32_t h = random.below(3); h > 0; --h) {
            headers.push_back(
                {name, random.chance(3) ? std::nullopt : std::optional<ByteView>(key)});
        }
        builder.add_at(offset, 1'600'000'000'000 + random.below(1'000'000),
                       random.chance(3) ? std::nullopt : std::optional<ByteView>(key),
                       random.chance(5) ? std::nullopt : std::optional<ByteView>(value), headers);
        offset += random.chance(5) ? 1 + random.below(1000) : 1;
    }
    return builder.build();
}

void answer_batches(const char* in_path, const char* out_path, std::uint64_t seed, int count) {
    base::metrics::Registry registry;
    DecodeSite site(registry, "oracle");
    CaseFile in(in_path);
    CaseWriter out(out_path);
    while (auto one = in.next()) {
        auto text = batch_text(one->bytes, site);
        if (!text) {
            fail(fmt::format("batch {}: {}", one->name, text.error().context));
        } else if (*text != one->text) {
            fail(fmt::format("batch {}: Apache reads\n{}kaas reads\n{}", one->name, one->text,
                             *text));
        }
        ++checks;
    }
    Random random(seed);
    for (auto codec : {Compression::kNone, Compression::kGzip, Compression::kSnappy,
                       Compression::kLz4, Compression::kZstd}) {
        for (int i = 0; i < count; ++i) {
            Memory batch = random_batch(random, codec);
            auto text = batch_text(batch, site);
            if (!text) {
                fail(text.error().context);
                continue;
            }
            out.write(to_string(codec), 2, batch, *text);
        }
    }
}

int run(int argc, char** argv) {
    const std::string_view command = argc > 1 ? argv[1] : "";
    if (command == "facts") {
        facts();
        return 0;
    }
    if (argc != 6) {
        fmt::print(stderr, "peer facts | answer IN OUT SEED N | answer-batches IN OUT SEED N\n");
        return 2;
    }
    const std::uint64_t seed = std::strtoull(argv[4], nullptr, 10);
    const int count = std::atoi(argv[5]);
    if (command == "answer") answer(argv[2], argv[3], seed, count);
    if (command == "answer-batches") answer_batches(argv[2], argv[3], seed, count);
    fmt::print("{} checks\n", checks);
    if (failures > 0) fmt::print(stderr, "{} failures\n", failures);
    return failures > 0 ? 1 : 0;
}

}  // namespace
}  // namespace kaas::wire::testing

int main(int argc, char** argv) { return kaas::wire::testing::run(argc, argv); }
