// Goal: primitives come back as written, at their edges too; bad lengths cost nothing and read
// nothing. Method: bytes by hand, from the protocol guide and KIP-482.
#include "base/bytes.h"
#include "wire/error.h"
#include "wire/reader.h"
#include "wire/testing/octets.h"
#include "wire/types.h"
#include "wire/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::wire {
namespace {

using ::testing::ElementsAre;
using testing::ints;
using testing::octets;

TEST(Varint, UnsignedEdges) {
    const std::pair<std::uint32_t, std::vector<int>> rows[] = {
        {0, {0}},
        {127, {0x7F}},
        {128, {0x80, 1}},
        {16383, {0xFF, 0x7F}},
        {16384, {0x80, 0x80, 1}},
        {std::numeric_limits<std::uint32_t>::max(), {0xFF, 0xFF, 0xFF, 0xFF, 0x0F}},
    };
    for (const auto& [value, bytes] : rows) {
        Writer out;
        out.unsigned_varint(value);
        EXPECT_EQ(ints(out.view()), bytes) << value;
        Reader in(out.view());
        EXPECT_EQ(in.unsigned_varint(), value);
        EXPECT_EQ(in.remaining(), 0U);
    }
}

TEST(Varint, ZigzagEdges) {
    for (std::int32_t value : {0, -1, 1, -64, 64, std::numeric_limits<std::int32_t>::min(),
                               std::numeric_limits<std::int32_t>::max()}) {
        Writer out;
        out.varint(value);
        Reader in(out.view());
        EXPECT_EQ(in.varint(), value);
        EXPECT_TRUE(in.ok());
    }
    for (std::int64_t value :
         {std::int64_t{0}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::min(),
          std::numeric_limits<std::int64_t>::max()}) {
        Writer out;
        out.varlong(value);
        Reader in(out.view());
        EXPECT_EQ(in.varlong(), value);
        EXPECT_TRUE(in.ok());
    }
    Writer out;
    out.varint(-1);
    out.varint(1);
    out.varint(-2);
    EXPECT_THAT(ints(out.view()), ElementsAre(1, 2, 3));
}

TEST(Varint, SixBytesAreRefused) {
    auto bytes = octets({0x80, 0x80, 0x80, 0x80, 0x80, 1});
    Reader in{ByteView(bytes)};
    in.unsigned_varint();
    EXPECT_EQ(in.status().error().code, CodecError::kInvalid);
}

TEST(Varint, ElevenBytesAreRefused) {
    std::vector<std::byte> bytes(10, std::byte{0x80});
    bytes.push_back(std::byte{1});
    Reader in{ByteView(bytes)};
    in.varlong();
    EXPECT_EQ(in.status().error().code, CodecError::kInvalid);
}

TEST(Reader, FirstErrorSticksAndTellsItsPlace) {
    auto bytes = octets({0, 1, 2});
    Reader in{ByteView(bytes)};
    EXPECT_EQ(in.int16(), 1);
    EXPECT_EQ(in.int32(), 0);
    EXPECT_EQ(in.remaining(), 0U) << "nothing may be read behind an error";
    in.fail(CodecError::kTooLarge, "later");
    ASSERT_FALSE(in.status());
    EXPECT_EQ(in.status().error().code, CodecError::kTruncated);
    EXPECT_EQ(in.status().error().context, "the bytes end inside a field at byte 2");
}

TEST(Reader, FloatsAndUnsignedNumbers) {
    Writer out;
    out.float64(-1.5);
    out.uint16(65535);
    out.boolean(true);
    EXPECT_THAT(ints(out.view()), ElementsAre(0xBF, 0xF8, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 1));
    Reader in(out.view());
    EXPECT_EQ(in.float64(), -1.5);
    EXPECT_EQ(in.uint16(), 65535);
    EXPECT_TRUE(in.boolean());
}

TEST(Reader, AnyByteButZeroIsTrue) {
    auto bytes = octets({2});
    Reader in{ByteView(bytes)};
    EXPECT_TRUE(in.boolean());
}

struct BadString {
    const char* fault;
    bool flexible;
    std::vector<std::byte> bytes;
    CodecError expected;
};

TEST(Reader, BadStrings) {
    const BadString rows[] = {
        {"null", false, octets({0xFF, 0xFF}), CodecError::kInvalid},
        {"compact null", true, octets({0}), CodecError::kInvalid},
        {"length past the end", false, octets({0, 2, 'a'}), CodecError::kTruncated},
        {"compact length past the end", true, octets({3, 'a'}), CodecError::kTruncated},
        {"half a length", false, octets({0}), CodecError::kTruncated},
        {"compact length above 32767", true, octets({0x81, 0x80, 2}), CodecError::kInvalid},
        {"compact length of four billion", true, octets({0xFF, 0xFF, 0xFF, 0xFF, 0x0F}),
         CodecError::kInvalid},
    };
    for (const auto& row : rows) {
        Reader in{ByteView(row.bytes)};
        EXPECT_EQ(in.string(row.flexible), "") << row.fault;
        ASSERT_FALSE(in.status()) << row.fault;
        EXPECT_EQ(in.status().error().code, row.expected) << row.fault;
    }
}

TEST(Reader, ArrayOfMoreElementsThanBytesIsRefused) {
    auto bytes = octets({0, 0, 0, 3, 1, 2, 3, 4, 5});
    Reader in{ByteView(bytes)};
    EXPECT_EQ(in.array_length_not_null(false, 2, 8), 0U);
    EXPECT_EQ(in.status().error().code, CodecError::kTruncated);
}

TEST(Reader, ArrayOfTwoBillionElementsIsRefused) {
    auto bytes = octets({0x7F, 0xFF, 0xFF, 0xFF});
    Reader in{ByteView(bytes)};
    EXPECT_FALSE(in.array_length(false, 1, 8));
    EXPECT_EQ(in.status().error().code, CodecError::kTooLarge);
}

TEST(Reader, ArraysMayNotAmplify) {
    // Each element takes a byte of the frame and a kilobyte of memory.
    std::vector<std::byte> bytes(100'000, std::byte{1});
    base::store_be(bytes.data(), std::int32_t{90'000});
    Reader in{ByteView(bytes)};
    EXPECT_FALSE(in.array_length(false, 1, 1024));
    EXPECT_EQ(in.status().error().code, CodecError::kTooLarge);
}

TEST(Reader, TheMemoryOfAllArraysIsOneBudget) {
    std::vector<std::byte> bytes(64, std::byte{0});
    for (std::size_t at = 0; at < bytes.size(); at += 4)
        base::store_be(bytes.data() + at, std::int32_t{1});
    Reader in{ByteView(bytes)};
    int granted = 0;
    while (in.remaining() >= 4 && in.array_length(false, 0, 20'000)) ++granted;
    EXPECT_EQ(granted, 3) << "64 KiB and 16 bytes for each of the frame's";
    EXPECT_EQ(in.status().error().code, CodecError::kTooLarge);
}

TEST(Reader, TooManyTagsAreRefused) {
    std::vector<std::byte> bytes(20'000, std::byte{0});
    bytes[0] = std::byte{0x91};
    bytes[1] = std::byte{0x4E};  // 10,001
    Reader in{ByteView(bytes)};
    UnknownTags tags;
    in.unknown_tags(tags);
    EXPECT_EQ(in.status().error().code, CodecError::kTooLarge);
}

TEST(Reader, TagSizePastTheEndIsRefused) {
    auto bytes = octets({1, 9, 5, 'a'});
    Reader in{ByteView(bytes)};
    UnknownTags tags;
    in.unknown_tags(tags);
    EXPECT_EQ(in.status().error().code, CodecError::kTruncated);
    EXPECT_TRUE(tags.empty());
}

TEST(Writer, TagSizesOfEveryLength) {
    for (std::size_t length : {0UL, 1UL, 127UL, 128UL, 20'000UL}) {
        Writer out;
        const std::string content(length, 'x');
        const std::size_t begun = out.begin_tag(3);
        out.raw(base::as_bytes(content));
        out.end_tag(begun);
        Reader in(out.view());
        EXPECT_EQ(in.unsigned_varint(), 3U);
        ASSERT_EQ(in.unsigned_varint(), length);
        EXPECT_EQ(base::as_text(in.raw(length)), content);
        EXPECT_EQ(in.remaining(), 0U);
    }
}

TEST(Writer, UnknownTagsOutOfOrderAreRefused) {
    UnknownTags tags;
    tags.add(5, Bytes());
    tags.add(5, Bytes());
    Writer out;
    out.unknown_tags(tags, 0);
    EXPECT_FALSE(out.status());
    Writer known;
    known.unknown_tags(tags, 6);
    EXPECT_FALSE(known.status()) << "a tag that the struct knows";
}

TEST(Writer, StringThatIsTooLongIsRefused) {
    for (bool flexible : {false, true}) {
        Writer out;
        out.string(std::string(32'767, 'x'), flexible);
        EXPECT_TRUE(out.status());
        out.string(std::string(32'768, 'x'), flexible);
        EXPECT_FALSE(out.status());
    }
}

TEST(String, CopiesWhatIsNotALiteral) {
    std::string text = "from a variable";
    String copied = text;
    String borrowed = String::borrow(text);
    String literal = "literal";
    text[0] = 'F';
    EXPECT_EQ(copied, "from a variable");
    EXPECT_EQ(borrowed, "From a variable");
    EXPECT_TRUE(copied.owned());
    EXPECT_FALSE(borrowed.owned());
    EXPECT_FALSE(literal.owned());
}

TEST(String, OwnsThroughCopiesAndMoves) {
    auto first = std::make_optional<String>(std::string("text"));
    String second = *first;
    first.reset();
    EXPECT_EQ(second, "text");
    String third = std::move(second);
    EXPECT_EQ(third, "text");
    third = third.owned() ? String(std::string("other")) : String();
    EXPECT_EQ(third, std::string_view("other"));
    String& same = third;
    third = same;
    EXPECT_EQ(third, "other");
}

TEST(UnknownTags, CopiesAreTheirOwn) {
    UnknownTags tags;
    tags.add(1, Bytes(base::as_bytes("one")));
    UnknownTags copy = tags;
    copy.add(2, Bytes());
    EXPECT_EQ(tags.size(), 1U);
    EXPECT_EQ(copy.size(), 2U);
    EXPECT_FALSE(tags == copy);
}

}  // namespace
}  // namespace kaas::wire
