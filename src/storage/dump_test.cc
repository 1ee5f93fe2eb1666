// Goal: `kaas log dump` shows every kind of file as it is, and says where one is broken.
// Method: files are written byte by byte, or by the classes that own them, on a MemoryVolume; the
// lines of the dump are compared whole.
#include "storage/dump.h"

#include "base/bytes.h"
#include "base/ids.h"
#include "storage/epoch_log.h"
#include "storage/memory_volume.h"
#include "storage/producer_state.h"
#include "storage/volume.h"
#include "wire/compression.h"
#include "wire/records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

using namespace std::string_view_literals;
using testing::_;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class DumpTest : public testing::Test {
protected:
    void put(const std::string& path, base::ByteView bytes) {
        auto file = volume_.create(path);
        ASSERT_TRUE(file);
        ASSERT_TRUE((*file)->write_at(0, {&bytes, 1}));
    }
    static std::vector<std::byte> numbers(std::initializer_list<std::pair<int, std::int64_t>> all) {
        std::vector<std::byte> bytes;
        for (auto [size, value] : all) {
            for (int shift = size - 1; shift >= 0; --shift) {
                bytes.push_back(static_cast<std::byte>(value >> (8 * shift)));
            }
        }
        return bytes;
    }
    std::vector<std::string> dump_lines(const std::string& path, const DumpOptions& options = {}) {
        std::vector<std::string> lines;
        auto done =
            dump(volume_, path, options, [&](std::string_view line) { lines.emplace_back(line); });
        if (!done) return {"error: " + done.error().context};
        summary_ = *done;
        return lines;
    }

    MemoryVolume volume_;
    DumpSummary summary_;
};

std::vector<std::byte> two_records(wire::Compression compression) {
    wire::BatchBuilder builder({.base_offset = 40,
                                .partition_leader_epoch = 3,
                                .compression = compression,
                                .producer_id = 7,
                                .producer_epoch = 1,
                                .base_sequence = 5});
    const wire::RecordHeader header{.key = "trace", .value = base::as_bytes("\x01\xff")};
    builder.add(1000, base::as_bytes("k"), base::as_bytes("hello"), {&header, 1});
    builder.add(2000, std::nullopt, base::as_bytes("\xff\xfe"));
    return builder.build();
}

TEST_F(DumpTest, BatchesShowTheirHeaders) {
    auto batch = two_records(wire::Compression::kZstd);
    put("00000000000000000040.log", batch);
    auto lines = dump_lines("00000000000000000040.log");
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines[0], "file: 00000000000000000040.log\n");
    for (const char* part :
         {"batch  position: 0  base_offset: 40  last_offset: 41  count: 2", "base_timestamp: 1000",
          "max_timestamp: 2000", "timestamp_type: \"create\"", "producer_id: 7  producer_epoch: 1",
          "base_sequence: 5  last_sequence: 6", "partition_leader_epoch: 3",
          "transactional: false  control: false  compression: \"zstd\"  magic: 2", "valid: true"}) {
        EXPECT_THAT(lines[1], HasSubstr(part));
    }
    EXPECT_EQ(summary_.damages, 0U);
}

TEST_F(DumpTest, RecordsAreUnpackedWhenAskedFor) {
    for (auto compression : {wire::Compression::kNone, wire::Compression::kGzip}) {
        std::string path = std::string(wire::to_string(compression)) + ".log";
        put(path, two_records(compression));
        auto lines = dump_lines(path, {.form = DumpOptions::Form::kJson, .records = true});
        ASSERT_EQ(lines.size(), 3U);
        EXPECT_EQ(lines[1], "{\"file\":\"" + path +
                                R"(","item":"record","offset":40,"timestamp":1000,"sequence":5,)"
                                R"("key":"k","value":"hello",)"
                                R"("headers":[{"key":"trace","value_hex":"01ff"}]})"
                                "\n");
        EXPECT_EQ(lines[2], "{\"file\":\"" + path +
                                R"(","item":"record","offset":41,"timestamp":2000,"sequence":6,)"
                                R"("key":null,"value_hex":"fffe"})"
                                "\n");
    }
}

TEST_F(DumpTest, MarkersAreNamed) {
    wire::BatchBuilder builder({.producer_id = 7, .transactional = true, .control = true});
    builder.add(1000, numbers({{2, 0}, {2, 1}}), numbers({{2, 0}, {4, 12}}));
    put("0.log", builder.build());
    auto lines = dump_lines("0.log", {.records = true});
    ASSERT_EQ(lines.size(), 3U);
    EXPECT_THAT(lines[2], HasSubstr("control: \"commit\"  coordinator_epoch: 12"));
}

TEST_F(DumpTest, DamageIsNamedByOffsetAndTheRestIsShown) {
    auto batch = two_records(wire::Compression::kNone);
    std::vector<std::byte> bytes = batch;
    bytes.insert(bytes.end(), batch.begin(), batch.end());
    bytes[batch.size() + 70] ^= std::byte{1};  // in the second one's records
    bytes.insert(bytes.end(), batch.begin(), batch.end() - 1);
    put("0.log", bytes);
    auto lines = dump_lines("0.log");
    ASSERT_EQ(lines.size(), 5U);
    EXPECT_THAT(lines[1], HasSubstr("valid: true"));
    EXPECT_THAT(lines[2], HasSubstr("valid: false"));
    EXPECT_THAT(lines[3], HasSubstr(fmt::format("DAMAGE  why: \"at byte {}: ", batch.size())));
    EXPECT_THAT(lines[4], HasSubstr(fmt::format("at byte {} of {}: the file ends inside a batch",
                                                2 * batch.size(), bytes.size())));
    EXPECT_EQ(summary_.damages, 2U);
}

TEST_F(DumpTest, HugeLengthTakesNoMemory) {
    auto batch = two_records(wire::Compression::kNone);
    base::store_be<std::int32_t>(batch.data() + 8, 0x7fffffff);
    put("0.log", batch);
    EXPECT_THAT(dump_lines("0.log").at(1), HasSubstr("DAMAGE"));
}

TEST_F(DumpTest, IndexesShowAbsoluteOffsets) {
    put("00000000000000000100.index", numbers({{4, 9}, {4, 4096}, {4, 19}, {4, 8192}}));
    put("00000000000000000100.timeindex", numbers({{8, 1700}, {4, 19}}));
    put("00000000000000000100.txnindex", numbers({{2, 0}, {8, 7}, {8, 101}, {8, 105}, {8, 100}}));
    EXPECT_THAT(
        dump_lines("00000000000000000100.index"),
        ElementsAre("file: 00000000000000000100.index\n", "index  offset: 109  position: 4096\n",
                    "index  offset: 119  position: 8192\n"));
    EXPECT_EQ(dump_lines("00000000000000000100.timeindex").at(1),
              "timeindex  timestamp: 1700  offset: 119\n");
    EXPECT_EQ(dump_lines("00000000000000000100.txnindex").at(1),
              "aborted  version: 0  producer_id: 7  first_offset: 101  last_offset: 105  "
              "last_stable_offset: 100\n");
}

TEST_F(DumpTest, EntriesThatFallAreDamageAndToldOnce) {
    put("0.index", numbers({{4, 9}, {4, 4096}, {4, 8}, {4, 5000}, {4, -7}, {4, 6000}}));
    put("0.timeindex", numbers({{8, 1700}, {4, 19}, {8, 1600}, {4, 20}, {8, 1500}, {4, 21}}));
    EXPECT_THAT(dump_lines("0.index"),
                ElementsAre(_, _, _, HasSubstr("DAMAGE  why: \"at byte 8: an entry"), _));
    EXPECT_THAT(dump_lines("0.timeindex"),
                ElementsAre(_, _, _, HasSubstr("DAMAGE  why: \"at byte 12: an entry"), _));
    put("1.index", numbers({{4, -1}, {4, 0}}));
    EXPECT_THAT(dump_lines("1.index"), Contains(HasSubstr("DAMAGE")));
}

TEST_F(DumpTest, IndexIsHeldAgainstItsLog) {
    auto batch = two_records(wire::Compression::kNone);
    const auto size = static_cast<std::int64_t>(batch.size());
    std::vector<std::byte> bytes = batch;
    bytes.insert(bytes.end(), batch.begin(), batch.end());
    base::store_be<std::int64_t>(bytes.data() + size, 42);
    put("00000000000000000040.log", bytes);
    // The last one points behind the log's end, which a crash may have taken.
    put("00000000000000000040.index",
        numbers({{4, 1}, {4, 0}, {4, 3}, {4, size}, {4, 9}, {4, 999}}));
    dump_lines("00000000000000000040.index");
    EXPECT_EQ(summary_.damages, 0U);

    ASSERT_TRUE(volume_.make_directory("a"));
    put("a/00000000000000000040.log", bytes);
    put("a/00000000000000000040.index", numbers({{4, 1}, {4, 0}, {4, 3}, {4, size - 1}}));
    EXPECT_THAT(dump_lines("a/00000000000000000040.index"),
                Contains(HasSubstr("at byte 8: no batch with this last offset is there")));
}

TEST_F(DumpTest, FilesOfAVolumeItselfAreNoDamage) {
    put("kaas.json", base::as_bytes("{\"format\":1,\"cluster\":\"c\"}"));
    put("kaas.lock", base::as_bytes("4711"));
    EXPECT_THAT(dump_lines(""),
                ElementsAre("file: kaas.json\n", "identity  format: 1  cluster: \"c\"\n",
                            "file: kaas.lock\n", "lock  pid: \"4711\"\n"));
    EXPECT_EQ(summary_.damages, 0U);
    ASSERT_TRUE(volume_.make_directory("a"));
    put("a/kaas.json", base::as_bytes("{\"format\":"));
    EXPECT_THAT(dump_lines("a/kaas.json"), Contains(HasSubstr("DAMAGE")));
}

TEST_F(DumpTest, HalfAnEntryIsDamage) {
    put("0.index", numbers({{4, 9}, {4, 4096}, {2, 1}}));
    auto lines = dump_lines("0.index");
    ASSERT_EQ(lines.size(), 3U);
    EXPECT_EQ(lines[2], "DAMAGE  why: \"2 bytes behind the last entry\"\n");
}

TEST_F(DumpTest, SnapshotsShowProducers) {
    ProducerImage producer{.id = base::ProducerId(7), .entry = {}};
    producer.entry.epoch = base::ProducerEpoch(1);
    producer.entry.last_timestamp_ms = 1700;
    producer.entry.add({.last_sequence = 9,
                        .offset_delta = 4,
                        .last_offset = base::Offset(41),
                        .timestamp_ms = 1700});
    put("00000000000000000042.snapshot", encode_snapshot({&producer, 1}));
    auto lines = dump_lines("00000000000000000042.snapshot");
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_THAT(lines[1], HasSubstr("producer  producer_id: 7  producer_epoch: 1"));
    EXPECT_THAT(lines[1], HasSubstr(R"("first_sequence":5,"last_sequence":9,"first_offset":37,)"
                                    R"("last_offset":41,"timestamp":1700})"));
    put("1.snapshot", numbers({{8, 0}}));
    EXPECT_THAT(dump_lines("1.snapshot").at(1), HasSubstr("DAMAGE"));
}

TEST_F(DumpTest, PartitionIsShownWholeInOrder) {
    ASSERT_TRUE(volume_.make_directory("t"));
    ASSERT_TRUE(volume_.make_directory("t/0"));
    auto log = EpochLog::create(volume_, {.directory = "t/0", .kind = "manifest"}, 3, {{"a", 1}});
    ASSERT_TRUE(log && log->append({{"b", 2}}));
    put("t/0/00000003/00000000000000000000.log", two_records(wire::Compression::kNone));
    put("t/0/00000003/notes", {});
    auto lines = dump_lines("t/0", {.form = DumpOptions::Form::kJson});
    ASSERT_EQ(lines.size(), 4U);
    EXPECT_THAT(lines[0], HasSubstr(R"("t/0/00000003/00000000000000000000.log","item":"batch")"));
    EXPECT_THAT(lines[1], HasSubstr(R"("item":"line","position":0,"line":{"log":{"kind")"));
    EXPECT_THAT(lines[2], HasSubstr(R"("line":{"b":2})"));
    EXPECT_THAT(lines[3], HasSubstr("not a file of a partition"));
    EXPECT_EQ(summary_.files, 3U);
    EXPECT_EQ(summary_.damages, 1U);
}

TEST_F(DumpTest, TornEndOfAManifestIsNoDamage) {
    put("manifest-1.jsonl", base::as_bytes("{\"log\":{}}\n{\"b\":"));
    EXPECT_THAT(dump_lines("manifest-1.jsonl"),
                ElementsAre("file: manifest-1.jsonl\n", "line  position: 0  line: {\"log\":{}}\n",
                            "torn end  position: 11  size: 5\n"));
    EXPECT_EQ(summary_.damages, 0U);
}

TEST_F(DumpTest, AFileThatIsNoEpochLogIsDamage) {
    const std::string nuls(100, '\0');
    for (std::string_view text : {std::string_view(nuls), "\x81garbage\xff"sv,
                                  R"({"a":{"a":{"a":)"sv, "no JSON\nat all\n"sv}) {
        put("manifest-1.jsonl", base::as_bytes(text));
        EXPECT_THAT(dump_lines("manifest-1.jsonl"), Contains(HasSubstr("DAMAGE")));
        ASSERT_TRUE(volume_.unlink("manifest-1.jsonl"));
    }
}

TEST_F(DumpTest, OnlyTheLastLineCanBeTorn) {
    const std::string good = "{\"log\":{}}\n";
    for (std::string_view end : {"{\"b\":"sv, "\0\0\0"sv, "{\"b\0\0"sv, "{\"b\0x\n"sv}) {
        put("m-1.jsonl", base::as_bytes(good + std::string(end)));
        EXPECT_THAT(dump_lines("m-1.jsonl"), Contains(HasSubstr("torn end")));
        EXPECT_EQ(summary_.damages, 0U);
        ASSERT_TRUE(volume_.unlink("m-1.jsonl"));
    }
    put("m-1.jsonl", base::as_bytes(good + "x\ny\n"));
    EXPECT_THAT(dump_lines("m-1.jsonl"), Contains(HasSubstr("at byte 11: no JSON object")));
    put("m-2.jsonl", base::as_bytes("{\"lo"));  // the picture itself
    EXPECT_THAT(dump_lines("m-2.jsonl"), Contains(HasSubstr("torn end")));
}

TEST_F(DumpTest, AbsentPathIsAnError) {
    EXPECT_THAT(dump_lines("gone.log").at(0), HasSubstr("error: gone.log"));
}

}  // namespace
}  // namespace kaas::storage
