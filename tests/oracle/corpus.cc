// Writes seeds for the fuzz targets: corpus KIND DIRECTORY. What the oracle test has compared with
// Apache's classes, a few of each.

#include "base/bytes.h"
#include "wire/api.h"
#include "wire/compression.h"
#include "wire/record_batch.h"
#include "wire/records.h"
#include "wire/testing/all_messages.h"
#include "wire/testing/random.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::wire::testing {
namespace {

constexpr std::uint64_t kSeed = 20'260'101;

class Corpus {
public:
    explicit Corpus(std::filesystem::path directory) : directory_(std::move(directory)) {
        std::filesystem::create_directories(directory_);
    }
    void add(std::string_view name, ByteView prefix, ByteView bytes) {
        std::ofstream out(directory_ / name, std::ios::binary);
        for (ByteView part : {prefix, bytes}) {
            auto text = base::as_text(part);
            out.write(text.data(), static_cast<std::streamsize>(text.size()));
        }
    }

private:
    std::filesystem::path directory_;
};

void messages(Corpus& corpus) {
    Random random(kSeed);
    const auto& all = all_messages();
    for (std::size_t index = 0; index < all.size(); ++index) {
        const auto& type = all[index];
        for (std::int16_t version : {type.min, type.max}) {
            auto made = type.make(&random, version);
            if (!made) continue;
            const std::array prefix = {static_cast<std::byte>(index),
                                       static_cast<std::byte>(version - type.min)};
            corpus.add(fmt::format("{}.{}", type.name, version), prefix, made->bytes());
        }
    }
}

void headers(Corpus& corpus) {
    Random random(kSeed);
    for (const Api& api : kApis) {
        for (const auto& type : all_messages()) {
            if (type.name != "RequestHeader") continue;
            auto made = type.make(&random, api.request_header(api.versions.max));
            if (!made) continue;
            base::store_be(made->bytes().data(), static_cast<std::int16_t>(api.key));
            base::store_be(made->bytes().data() + 2, api.versions.max);
            corpus.add(api.name, {}, made->bytes());
        }
    }
}

std::vector<std::byte> batch(Compression codec) {
    BatchBuilder builder(
        {.compression = codec, .producer_id = 1, .producer_epoch = 0, .base_sequence = 5});
    const std::array<RecordHeader, 1> with_headers = {{{"h", base::as_bytes("v")}}};
    builder.add(1000, base::as_bytes("key"), base::as_bytes("value"), with_headers);
    builder.add(1001, std::nullopt, std::nullopt);
    return builder.build();
}

constexpr std::array kCodecs = {Compression::kNone, Compression::kGzip, Compression::kSnappy,
                                Compression::kLz4, Compression::kZstd};

void batches(Corpus& corpus) {
    for (auto codec : kCodecs) corpus.add(to_string(codec), {}, batch(codec));
}

void records(Corpus& corpus) {
    for (auto codec : kCodecs) {
        const std::vector<std::byte> whole = batch(codec);
        const std::array prefix = {static_cast<std::byte>(codec), std::byte{2}};
        corpus.add(to_string(codec), prefix, ByteView(whole).subspan(BatchHeader::kBytes));
    }
}

int run(std::string_view kind, const char* directory) {
    Corpus corpus(directory);
    if (kind == "message") {
        messages(corpus);
    } else if (kind == "request_header") {
        headers(corpus);
    } else if (kind == "record_batch") {
        batches(corpus);
    } else if (kind == "records") {
        records(corpus);
    } else {
        fmt::print(stderr, "no corpus {}\n", kind);
        return 2;
    }
    return 0;
}

}  // namespace
}  // namespace kaas::wire::testing

int main(int argc, char** argv) {
    return argc == 3 ? kaas::wire::testing::run(argv[1], argv[2]) : 2;
}
