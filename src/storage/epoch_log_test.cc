// Goal: an owner's lines come back to a taker as DESIGN 6 promises, whatever fails on the way.
// Method: tables of file texts and of injected faults, each row named by its fault; then a crash at
// every step of a whole life of a log. `epoch_log_simulation_test.cc` adds owners that overlap.
#include "storage/epoch_log.h"

#include "base/bytes.h"
#include "storage/epoch_reader.h"
#include "storage/line_checksum.h"
#include "storage/memory_volume.h"
#include "storage/testing_session.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <boost/json/value_to.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace kaas::storage {
namespace {

namespace json = boost::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::string_literals;

/// More than any scenario here takes.
constexpr std::uint64_t kManySteps = 200;

class EpochLogTest : public testing::Test {
protected:
    EpochLogTest() {
        EXPECT_TRUE(volume_.make_directory("p"));
        EXPECT_TRUE(volume_.sync_directory(""));
    }

    static json::object object(std::string_view text) { return json::parse(text).as_object(); }
    Result<EpochLog> create(std::int32_t epoch, std::string_view picture = R"({"who":"me"})") {
        return EpochLog::create(volume_, path_, epoch, object(picture), {.roll_floor_bytes = 0});
    }
    /// Puts a file there as if another process had written it.
    void plant(std::int32_t epoch, std::uint32_t number, std::string_view text) {
        std::ignore = volume_.make_directory(path_.epoch_directory(epoch));
        auto file = volume_.create(path_.file(epoch, number));
        ASSERT_TRUE(file);
        base::ByteView piece = base::as_bytes(text);
        ASSERT_TRUE((*file)->write_at(0, {&piece, 1}));
    }
    std::string text_of(std::int32_t epoch, std::uint32_t number) {
        auto text = read_whole(volume_, path_.file(epoch, number), 1 << 20);
        return text ? *text : "error: " + text.error().context;
    }
    /// The picture and the lines as text, or the error's code and context.
    std::vector<std::string> read(std::int32_t epoch) {
        return show(read_epoch(volume_, path_, epoch));
    }
    static std::vector<std::string> show(const Result<std::optional<EpochState>>& state) {
        if (!state) return {"error", state.error().context};
        if (!*state) return {"void"};
        std::vector<std::string> all = {json::serialize((*state)->picture)};
        for (const auto& line : (*state)->lines) all.push_back(json::serialize(line.object));
        return all;
    }
    Result<std::optional<TakenEpoch>> take(std::int32_t own, std::int32_t lowest = 0,
                                           bool written = false) {
        return take_over(path_, candidates_below(volume_, own, lowest, written));
    }

    MemoryVolume volume_;
    EpochLogPath path_{.directory = "p", .kind = "manifest"};
    TestingSession session_;
};

TEST(EpochName, OnlyItsOwnFormIsRead) {
    EXPECT_EQ(epoch_name(31), "0000001f");
    EXPECT_EQ(parse_epoch_name("0000001f"), 31);
    for (const auto* stranger :
         {"", "1f", "0000001F", "0000001g", "-000001f", "ffffffff", "00000001f"})
        EXPECT_EQ(parse_epoch_name(stranger), std::nullopt) << stranger;
}

TEST_F(EpochLogTest, FileIsReadableText) {
    auto log = create(7, R"({"owner":{"broker":1},"segments":[]})");
    ASSERT_TRUE(log) << log.error().context;
    const std::vector<json::object> changes = {object(R"({"roll":10})"), object(R"({"drop":1})")};
    ASSERT_TRUE(log->append(changes));
    ASSERT_TRUE(log->sync());
    ASSERT_TRUE(log->append(changes));
    ASSERT_TRUE(log->sync());
    ASSERT_TRUE(log->append_synced(object(R"({"up_to":10})")));
    ASSERT_TRUE(log->append_synced(object(R"({"up_to":20})")));
    ASSERT_TRUE(log->append(changes.back()));
    ASSERT_TRUE(log->release());
    EXPECT_EQ(
        text_of(7, 1),
        R"({"log":{"kind":"manifest","epoch":7,"file":1},"owner":{"broker":1},"segments":[],"crc":"4ab1f7b4"}
{"roll":10,"crc":"5eb94c1a"}
{"drop":1,"crc":"17eaaf8c"}
{"log":{"change":156},"roll":10,"crc":"6ffa530e"}
{"drop":1,"crc":"17eaaf8c"}
{"log":{"synced":234},"up_to":10,"crc":"618d6142"}
{"log":{"synced":234},"up_to":20,"crc":"8ba3a131"}
{"drop":1,"crc":"17eaaf8c"}
{"log":{"released":364},"crc":"53da0089"}
)");
    EXPECT_EQ(path_.file(0x1f, 2), "p/0000001f/manifest-2.jsonl");
}

TEST_F(EpochLogTest, UnknownKeysAreKept) {
    auto log = create(1, R"({"who":"me","from_the_future":[1,{"a":null}]})");
    ASSERT_TRUE(log->append(object(R"({"roll":1,"why":"x"})")));
    EXPECT_THAT(read(1), ElementsAre(R"({"who":"me","from_the_future":[1,{"a":null}]})",
                                     R"({"roll":1,"why":"x"})"));
}

TEST_F(EpochLogTest, EpochsAndFilesAreExclusive) {
    ASSERT_TRUE(create(1));
    EXPECT_EQ(create(1).error().code, ErrorCode::kExists);
    ASSERT_TRUE(volume_.make_directory(path_.epoch_directory(2)));
    EXPECT_EQ(create(2).error().code, ErrorCode::kExists);
    EXPECT_TRUE(
        EpochLog::create(volume_, path_, 2, {}, {.directory = EpochLogOptions::Directory::kMade}));
}

TEST_F(EpochLogTest, DeletedDirectoryIsNotMadeAgain) {
    ASSERT_TRUE(volume_.rename("p", "p.deleted"));
    EXPECT_EQ(create(1).error().code, ErrorCode::kNotFound);
    EXPECT_EQ(take(1).error().code, ErrorCode::kNotFound);
    EXPECT_THAT(*volume_.list(""), ElementsAre("p.deleted"));
}

struct Text {
    const char* fault;
    std::string text;
    std::vector<std::string> lines;
    std::string refused;  ///< part of the error's context
};

TEST_F(EpochLogTest, TextsAreReadUpToTheirLastGoodLine) {
    const Text table[] = {
        {"EmptyFile", "", {}, ""},
        {"OnlyNuls", "\0\0\0"s, {}, ""},
        {"OnlyBlank", "\n \r\n", {}, ""},
        {"Whole", "{\"a\":1}\n{\"b\":2}\n", {"{\"a\":1}", "{\"b\":2}"}, ""},
        {"LastNewlineMissing", "{\"a\":1}\n{\"b\":2}", {"{\"a\":1}", "{\"b\":2}"}, ""},
        {"EditorsLineEnds", "{\"a\":1}\r\n\r\n{\"b\":2}\r\n", {"{\"a\":1}", "{\"b\":2}"}, ""},
        {"TornLastLine", "{\"a\":1}\n{\"b\":", {"{\"a\":1}"}, ""},
        {"TornFirstLine", "{\"a\":", {}, ""},
        {"NulTail", "{\"a\":1}\n\0\0\0"s, {"{\"a\":1}"}, ""},
        {"NulTailBehindTornLine", "{\"a\":1}\n{\"b\":\0\0"s, {"{\"a\":1}"}, ""},
        {"NulInPlaceOfNewline", "{\"a\":1}\0"s, {"{\"a\":1}"}, ""},
        {"GarbageTailOfManyLines", "{\"a\":1}\nxx\n\0y\n}\n"s, {}, "f at byte 8"},
        {"NoObjectAtTheEnd", "{\"a\":1}\n[1]\n17\n", {}, "f at byte 8"},
        {"NotUtf8AtTheEnd", "{\"a\":1}\n{\"b\":\"\xff\"}\n", {}, "f at byte 8"},
        {"TooDeepAtTheEnd",
         "{\"a\":" + std::string(40, '[') + std::string(40, ']') + "}",
         {},
         "f at byte 0"},
        {"LastNewlineChanged", "{\"a\":1}\n{\"b\":2}x", {}, "f at byte 8"},
        {"TornLineThatGotAnEnd", "{\"a\":1}\n{\"b\":\n", {}, "f at byte 8"},
        {"NoBeginningOfALine", "{\"a\":1}\n\"b\":2", {}, "f at byte 8"},
        {"Checksummed",
         with_checksum("{\"a\":1}") + "\n" + with_checksum("{}") + "\r\n",
         {"{\"a\":1}", "{}"},
         ""},
        {"ChecksumOfOtherText",
         "{\"a\":1}\n{\"b\":3" + with_checksum("{\"b\":2}").substr(6) + "\n",
         {},
         "f at byte 8"},
        {"ChecksumOfOtherTextBehindAHole",
         "{\"a\":1}\n\0\0{\"b\":3"s + with_checksum("{\"b\":2}").substr(6) + "\n",
         {},
         "f at byte 10"},
        {"ChecksumThatIsNone", R"({"a":1,"crc":17})", {}, "f at byte 0"},
        {"ChecksumThatWasMoved", R"({"crc":"00000000","a":1})", {}, "f at byte 0"},
        // What stands behind a bad line came to the disk before it, if nothing says otherwise.
        {"LostLineBeforeAKeptOne", "{\"a\":1}\n\0\0\0\0{\"b\":2}\n"s, {"{\"a\":1}"}, ""},
        {"LostLineBeforeAKeptHint",
         "{\"a\":1}\n\0\0\0\0{\"log\":{\"synced\":8}}\n"s,
         {"{\"a\":1}"},
         ""},
        {"TornLineBeforeAKeptHint",
         "{\"a\":1}\n{\"b\":\0\0{\"log\":{\"change\":8},\"c\":3}\n"s,
         {"{\"a\":1}"},
         ""},
        {"HoleWithoutProof", "{\"a\":1}\n\0\0\n{\"log\":{\"synced\":\"9\"}}\n"s, {"{\"a\":1}"}, ""},
        {"HoleInWhatWasFsynced",
         "{\"a\":1}\n\0\0\0\0{\"log\":{\"synced\":9}}\n"s,
         {},
         "f at byte 8"},
        {"GarbageInWhatWasFsynced",
         "{\"a\":1}\nxx\n{\"b\":2}\n{\"log\":{\"change\":11},\"c\":3}\n",
         {},
         "f at byte 8"},
        {"TornLineInWhatWasFsynced",
         "{\"a\":1}\n{\"b\":\n{\"log\":{\"released\":14}}\n",
         {},
         "f at byte 8"},
        {"HoleBeforeTheNextFile",
         "{\"a\":1}\n\0\0\0\0{\"log\":{\"next\":12},\"file\":2}\n"s,
         {},
         "f at byte 8"},
        {"HoleThatSwallowedAnFsyncedNewline",
         "{\"a\":1}\0\0\0{\"log\":{\"synced\":8}}\n"s,
         {},
         "f at byte 7"},
        {"TornFirstLineBeforeGoodOnes", "{\"a\":\n{\"b\":2}\n", {}, "f at byte 0"},
        {"HoleAtTheStart", "\0\0\0\n{\"b\":2}\n"s, {}, "f at byte 0"},
    };
    for (const auto& row : table) {
        SCOPED_TRACE(row.fault);
        auto file = parse_epoch_file(row.text, "f");
        if (!row.refused.empty()) {
            ASSERT_FALSE(file);
            EXPECT_EQ(file.error().code, ErrorCode::kCorrupt);
            EXPECT_THAT(file.error().context, HasSubstr(row.refused));
            continue;
        }
        ASSERT_TRUE(file) << file.error().context;
        std::vector<std::string> lines;
        for (const auto& line : file->lines) lines.push_back(json::serialize(line));
        EXPECT_EQ(lines, row.lines);
    }
}

TEST_F(EpochLogTest, DamageToWhatWasFsyncedIsRefused) {
    auto log = create(1);
    ASSERT_TRUE(log->append(object("{\"a\":1}")));
    ASSERT_TRUE(log->roll(object("{\"a\":1}")));
    ASSERT_TRUE(log->append(object("{\"b\":1}")));
    ASSERT_TRUE(log->roll(object("{\"a\":1,\"b\":1}")));
    ASSERT_TRUE(log->append(object("{\"c\":1}")));
    ASSERT_TRUE(log->sync());
    ASSERT_TRUE(log->append(object("{\"d\":1}")));
    ASSERT_TRUE(log->append_synced());
    ASSERT_TRUE(log->release());
    for (std::uint32_t number : {1U, 3U}) {
        const auto text = text_of(1, number);
        std::size_t lines = 0;
        for (std::size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1) {
            SCOPED_TRACE(fmt::format("{} at {}", number, begin));
            ++lines;
            const bool is_last = text.find('\n', begin) + 1 == text.size();
            auto file = volume_.open(path_.file(1, number), OpenMode::kReadWrite);
            auto damaged = text;
            damaged[begin] = 'x';
            base::ByteView piece = base::as_bytes(damaged);
            ASSERT_TRUE((*file)->write_at(0, {&piece, 1}));
            auto state = read_epoch(volume_, path_, 1);
            if (!is_last) {
                ASSERT_FALSE(state);
                EXPECT_THAT(state.error().context, HasSubstr(fmt::format("at byte {}:", begin)));
            }
            piece = base::as_bytes(text);
            ASSERT_TRUE((*file)->write_at(0, {&piece, 1}));
        }
        EXPECT_GE(lines, 4U);
    }
}

TEST_F(EpochLogTest, WrongLinesAreRefusedByFileAndOffset) {
    const std::string stamp = R"({"log":{"kind":"manifest","epoch":1,"file":1}})"
                              "\n";
    const struct {
        const char* fault;
        std::string text;
        std::size_t offset;
    } table[] = {
        {"NoStamp", "{\"who\":\"me\"}\n", 0},
        {"OtherKind", R"({"log":{"kind":"slot","epoch":1,"file":1}})", 0},
        {"OtherEpoch", R"({"log":{"kind":"manifest","epoch":2,"file":1}})", 0},
        {"OtherFile", R"({"log":{"kind":"manifest","epoch":1,"file":2}})", 0},
        {"UnknownOwnLine", stamp + R"({"log":{"frobnicate":1}})", stamp.size()},
        {"OwnKeyIsNoMark", stamp + R"({"log":"synced"})", stamp.size()},
        {"SecondPicture", stamp + stamp, stamp.size()},
        {"LineBehindRelease", stamp + R"({"log":{"released":9}})" + "\n{\"a\":1}",
         stamp.size() + 23},
        {"NextNamesNoFile", stamp + R"({"log":{"next":9}})", stamp.size()},
        {"NextNamesItself", stamp + R"({"log":{"next":9},"file":1})", stamp.size()},
        {"NextGoesBack",
         stamp + R"({"log":{"next":9},"file":3})" + "\n" + R"({"log":{"next":9},"file":2})",
         stamp.size() + 28},
        {"ChangeBehindNext", stamp + R"({"log":{"next":9},"file":2})" + "\n{\"a\":1}",
         stamp.size() + 28},
    };
    for (const auto& row : table) {
        SCOPED_TRACE(row.fault);
        MemoryVolume fresh;
        ASSERT_TRUE(fresh.make_directory("p"));
        ASSERT_TRUE(fresh.make_directory(path_.epoch_directory(1)));
        auto file = fresh.create(path_.file(1, 1));
        base::ByteView piece = base::as_bytes(row.text);
        ASSERT_TRUE((*file)->write_at(0, {&piece, 1}));
        auto state = read_epoch(fresh, path_, 1);
        ASSERT_FALSE(state);
        EXPECT_EQ(state.error().code, ErrorCode::kCorrupt);
        EXPECT_THAT(state.error().context, HasSubstr(path_.file(1, 1)));
        EXPECT_THAT(state.error().context, HasSubstr(fmt::format("at byte {}:", row.offset)));
    }
}

TEST_F(EpochLogTest, OnlyWhatStandsAboveASyncedLineIsVouchedFor) {
    auto log = create(1);
    auto counts = [&] {
        auto state = read_epoch(volume_, path_, 1);
        return std::vector<std::size_t>{(*state)->picture_vouched, (*state)->vouched_lines,
                                        (*state)->lines.size(), (*state)->settled()};
    };
    EXPECT_THAT(counts(), ElementsAre(0, 0, 0, 0)) << "a picture was only read";
    EXPECT_TRUE(log->wants_synced_line());
    ASSERT_TRUE(log->append_synced());
    EXPECT_FALSE(log->wants_synced_line());
    EXPECT_THAT(counts(), ElementsAre(1, 1, 1, 1));
    ASSERT_TRUE(log->append(object("{\"a\":1}")));
    EXPECT_FALSE(log->wants_synced_line()) << "not while something is unsynced";
    EXPECT_THAT(counts(), ElementsAre(1, 1, 2, 0));
    ASSERT_TRUE(log->sync());
    EXPECT_TRUE(log->wants_synced_line());
    ASSERT_TRUE(log->roll(object("{\"a\":1}")));
    EXPECT_FALSE(log->wants_synced_line());
    EXPECT_THAT(counts(), ElementsAre(1, 0, 0, 1)) << "file 1 names it, so it was fsynced";
    ASSERT_TRUE(log->append(object("{\"b\":1}")));
    EXPECT_THAT(counts(), ElementsAre(1, 0, 1, 0));
    ASSERT_TRUE(log->release());
    EXPECT_THAT(counts(), ElementsAre(1, 2, 2, 1));
}

TEST_F(EpochLogTest, SyncedLineSyncsChangesAndNoHints) {
    auto log = create(1);
    std::uint64_t syncs = 0;
    volume_.set_hook([&](const MemoryVolume::Step& step) -> std::optional<Fault> {
        if (step.operation == Operation::kSync) ++syncs;
        return std::nullopt;
    });
    ASSERT_TRUE(log->append_synced(object("{\"up_to\":1}")));
    ASSERT_TRUE(log->append_synced(object("{\"up_to\":2}")));
    EXPECT_EQ(syncs, 0U);
    EXPECT_TRUE(log->has_unsynced());
    ASSERT_TRUE(log->append(object("{\"a\":1}")));
    ASSERT_TRUE(log->append_synced(object("{\"up_to\":3}")));
    EXPECT_EQ(syncs, 1U);
    ASSERT_TRUE(log->sync());
    EXPECT_EQ(syncs, 2U);
    EXPECT_FALSE(log->has_unsynced());
    ASSERT_TRUE(log->append(std::span<const json::object>()));
    EXPECT_FALSE(log->has_unsynced()) << "no change, no line";
}

TEST_F(EpochLogTest, ReleasedLogTakesNothing) {
    auto log = create(1);
    ASSERT_TRUE(log->release(object("{\"end\":5}")));
    EXPECT_EQ(log->append(object("{\"a\":1}")).error().code, ErrorCode::kClosed);
    EXPECT_EQ(log->release().error().code, ErrorCode::kClosed);
    EXPECT_FALSE(log->wants_synced_line());
    auto state = read_epoch(volume_, path_, 1);
    EXPECT_TRUE((*state)->released);
    EXPECT_EQ((*state)->lines.back().kind, EpochLine::Kind::kReleased);
    EXPECT_EQ(json::serialize((*state)->lines.back().object), "{\"end\":5}");
}

TEST_F(EpochLogTest, LineThatWouldNotReadBackIsNotWritten) {
    auto log = create(1);
    json::object bad;
    bad["name"] = "\xff\xfe";
    const json::object both[] = {object("{\"a\":1}"), bad};
    EXPECT_EQ(log->append(both).error().code, ErrorCode::kUnwritable);
    EXPECT_EQ(log->roll(bad).error().code, ErrorCode::kUnwritable);
    EXPECT_FALSE(log->ended_by());
    EXPECT_FALSE(log->has_unsynced());
    ASSERT_TRUE(log->append(object("{\"b\":1}")));
    EXPECT_THAT(read(1), ElementsAre(R"({"who":"me"})", R"({"b":1})"));
    EXPECT_EQ(EpochLog::create(volume_, path_, 2, bad).error().code, ErrorCode::kUnwritable);
}

TEST_F(EpochLogTest, ChangesThatOutweighThePictureAskForARoll) {
    auto log =
        EpochLog::create(volume_, path_, 1, object(R"({"who":"me"})"), {.roll_floor_bytes = 200});
    std::string value(100, 'x');
    json::object change{{"v", value}};
    ASSERT_TRUE(log->append(change));
    EXPECT_FALSE(log->wants_roll());
    ASSERT_TRUE(log->append(change));
    EXPECT_TRUE(log->wants_roll());
    ASSERT_TRUE(log->roll({{"v", std::string(500, 'y')}}));
    EXPECT_FALSE(log->wants_roll());
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(log->append(change));
    EXPECT_FALSE(log->wants_roll()) << "above the floor, below the picture";
    ASSERT_TRUE(log->append(change));
    EXPECT_TRUE(log->wants_roll());
}

TEST_F(EpochLogTest, RollsKeepTheFirstFileAndTheCurrent) {
    auto log = create(1);
    for (int i = 2; i <= 4; ++i) {
        ASSERT_TRUE(log->append({{"lost with file", i - 1}}));
        ASSERT_TRUE(log->roll({{"picture", i}}));
    }
    ASSERT_TRUE(log->append(object("{\"a\":1}")));
    ASSERT_TRUE(log->sync());
    EXPECT_EQ(volume_.list("p/00000001")->size(), 4U);
    ASSERT_TRUE(log->remove_superseded(session_));
    ASSERT_TRUE(log->remove_superseded(session_));
    EXPECT_EQ(session_.checks, 1) << "without anything to remove there is nothing to check";
    EXPECT_THAT(*volume_.list("p/00000001"), ElementsAre("manifest-1.jsonl", "manifest-4.jsonl"));
    volume_.crash();
    EXPECT_THAT(read(1), ElementsAre("{\"picture\":4}", "{\"a\":1}"));
}

TEST_F(EpochLogTest, FencedOwnerRemovesNothing) {
    auto log = create(1);
    ASSERT_TRUE(log->roll({{"picture", 2}}));
    ASSERT_TRUE(log->roll({{"picture", 3}}));
    session_.fenced = true;
    EXPECT_EQ(log->remove_superseded(session_).error().code, ErrorCode::kFenced);
    EXPECT_EQ(remove_epoch(volume_, path_, 1, session_).error().code, ErrorCode::kFenced);
    EXPECT_EQ(volume_.list("p/00000001")->size(), 3U);
}

TEST_F(EpochLogTest, ReaderFollowsAnOwnerThatGoesOn) {
    auto log = create(1);
    ASSERT_TRUE(log->roll({{"picture", 2}}));
    bool once = true;
    volume_.set_hook([&](const MemoryVolume::Step& step) -> std::optional<Fault> {
        if (once && step.operation == Operation::kOpen && step.path == path_.file(1, 2)) {
            once = false;
            EXPECT_TRUE(log->roll({{"picture", 3}}));
            EXPECT_TRUE(log->remove_superseded(session_));
        }
        return std::nullopt;
    });
    EXPECT_THAT(read(1), ElementsAre("{\"picture\":3}"));
    EXPECT_FALSE(once);
}

TEST_F(EpochLogTest, MissingOrTornCurrentFileIsRefused) {
    auto log = create(1);
    ASSERT_TRUE(log->roll({{"picture", 2}}));
    ASSERT_TRUE(volume_.unlink(path_.file(1, 2)));
    EXPECT_EQ(read_epoch(volume_, path_, 1).error().code, ErrorCode::kNotFound);
    plant(1, 2, "{\"log\":{\"kind\":\"man");
    auto state = read_epoch(volume_, path_, 1);
    ASSERT_FALSE(state);
    EXPECT_EQ(state.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(state.error().context, HasSubstr(path_.file(1, 2)));
}

TEST_F(EpochLogTest, TakerClosesWhatIsMissingAndStopsAtTheFirstPicture) {
    ASSERT_TRUE(create(1, "{\"e\":1}"));
    ASSERT_TRUE(create(2, "{\"e\":2}"));
    plant(4, 1, "{\"log\":{\"ki");
    auto taken = take(6);
    ASSERT_TRUE(taken) << taken.error().context;
    ASSERT_TRUE(*taken);
    EXPECT_EQ((*taken)->state.epoch, 2);
    EXPECT_EQ((*taken)->volume, &volume_);
    EXPECT_EQ(json::serialize((*taken)->state.picture), "{\"e\":2}");
    for (std::int32_t closed : {3, 4, 5})
        EXPECT_EQ(create(closed).error().code, ErrorCode::kExists);
    EXPECT_TRUE(create(6)) << "one's own epoch stays open";
}

TEST_F(EpochLogTest, NothingWrittenGivesNothing) {
    auto taken = take(3);
    ASSERT_TRUE(taken);
    EXPECT_FALSE(*taken);
    EXPECT_EQ(volume_.list("p")->size(), 3U);
    ASSERT_TRUE(take(0));
    ASSERT_TRUE(*take(4) == std::nullopt) << "and again, reading the voids";
}

TEST_F(EpochLogTest, OwnerThatWakesBehindAVoidIsTooLate) {
    // Its directory is made, its first file is not: the void is in between.
    ASSERT_TRUE(volume_.make_directory(path_.epoch_directory(1)));
    ASSERT_TRUE(take(2));
    auto woken =
        EpochLog::create(volume_, path_, 1, {}, {.directory = EpochLogOptions::Directory::kMade});
    ASSERT_FALSE(woken);
    EXPECT_EQ(woken.error().code, ErrorCode::kExists);
}

TEST_F(EpochLogTest, OwnerAndTakerRaceAtEveryStep) {
    // The taker's whole walk runs before each step of the owner's creation.
    for (std::uint64_t at = 0; at < 6; ++at) {
        SCOPED_TRACE(at);
        MemoryVolume volume;
        ASSERT_TRUE(volume.make_directory("p"));
        std::uint64_t first = volume.steps();
        Result<std::optional<TakenEpoch>> taken;
        volume.set_hook([&](const MemoryVolume::Step& step) -> std::optional<Fault> {
            if (step.number == first + at) {
                taken = take_over(path_, candidates_below(volume, 2, 1, false));
            }
            return std::nullopt;
        });
        auto log = EpochLog::create(volume, path_, 1, object("{\"e\":1}"));
        ASSERT_TRUE(taken);
        // Before its file 1 is there the owner loses; afterwards the taker finds the picture or a
        // file without one, and the owner's session is what stops it.
        EXPECT_EQ(log.has_value(), at >= 2) << (log ? "" : log.error().context);
        EXPECT_EQ(taken->has_value(), at >= 3);
    }
}

TEST_F(EpochLogTest, CachedAbsenceIsNotBelieved) {
    ASSERT_TRUE(create(1, "{\"e\":1}"));
    ASSERT_TRUE(create(2, "{\"e\":2}"));
    volume_.fail_nth(Operation::kOpen, 1, {.code = ErrorCode::kNotFound});
    auto taken = take(3);
    ASSERT_TRUE(taken) << taken.error().context;
    EXPECT_EQ((*taken)->state.epoch, 2);
}

TEST_F(EpochLogTest, AbsenceThatNeverEndsIsAnError) {
    ASSERT_TRUE(create(1));
    volume_.set_hook([](const MemoryVolume::Step& step) -> std::optional<Fault> {
        if (step.operation == Operation::kOpen) return Fault{.code = ErrorCode::kNotFound};
        return std::nullopt;
    });
    EXPECT_EQ(take(2).error().code, ErrorCode::kIo);
}

TEST_F(EpochLogTest, WrittenEpochThatIsGoneMeansSuperseded) {
    EXPECT_EQ(take(3, 1, true).error().code, ErrorCode::kNotFound);
    EXPECT_THAT(*volume_.list("p"), ElementsAre("00000002"))
        << "what is called written is not voided";
    plant(1, 1, "");
    EXPECT_EQ(take(3, 1, true).error().code, ErrorCode::kNotFound);
}

TEST_F(EpochLogTest, EachEpochIsLookedForOnItsOwnVolume) {
    MemoryVolume other;
    ASSERT_TRUE(other.make_directory("p"));
    ASSERT_TRUE(create(1, "{\"e\":1}"));
    ASSERT_TRUE(EpochLog::create(other, path_, 2, object("{\"e\":2}")));
    const EpochCandidate candidates[] = {{.volume = &volume_, .epoch = 3},
                                         {.volume = &other, .epoch = 2, .written = true}};
    auto taken = take_over(path_, candidates);
    ASSERT_TRUE(taken);
    EXPECT_EQ((*taken)->volume, &other);
    EXPECT_EQ((*taken)->state.epoch, 2);
    EXPECT_THAT(*volume_.list("p"), ElementsAre("00000001", "00000003"));
}

TEST_F(EpochLogTest, RemovalTakesEverythingAndResumes) {
    auto log = create(1);
    ASSERT_TRUE(log->roll({{"picture", 2}}));
    ASSERT_TRUE(volume_.create("p/00000001/00000000000000000000.log"));
    ASSERT_TRUE(volume_.make_directory("p/00000001/c1"));
    ASSERT_TRUE(volume_.create("p/00000001/c1/00000000000000000000.log"));
    for (std::uint64_t nth = 1; nth <= 4; ++nth) {
        volume_.fail_nth(Operation::kUnlink, 2, {});
        std::ignore = remove_epoch(volume_, path_, 1, session_);
    }
    ASSERT_TRUE(remove_epoch(volume_, path_, 1, session_));
    EXPECT_THAT(*volume_.list("p"), IsEmpty());
    EXPECT_TRUE(remove_epoch(volume_, path_, 1, session_)) << "nothing left is done";
}

TEST_F(EpochLogTest, RemovalKeepsTheFirstFileLastThroughACrash) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        for (std::uint64_t cut = 0; cut <= kManySteps; ++cut) {
            ASSERT_LT(cut, kManySteps) << "it never comes to its end";
            SCOPED_TRACE(fmt::format("seed {} cut {}", seed, cut));
            MemoryVolume volume;
            ASSERT_TRUE(volume.make_directory("p"));
            ASSERT_TRUE(volume.sync_directory(""));
            auto log = EpochLog::create(volume, path_, 1, {});
            ASSERT_TRUE(volume.create("p/00000001/x.log"));
            ASSERT_TRUE(log->roll({}));
            volume.halt_at(volume.steps() + cut);
            bool done = remove_epoch(volume, path_, 1, session_).has_value();
            volume.crash({.seed = seed});
            auto left = volume.list("p/00000001");
            if (left && !left->empty()) EXPECT_EQ(left->front(), "manifest-1.jsonl");
            if (done) break;
        }
    }
}

}  // namespace
}  // namespace kaas::storage
