// Goal: whole messages become frames and come back; what a version cannot carry is refused, not
// lost. Method: a few messages by hand, bytes written out. tests/oracle compares all of them with
// Apache.
#include "wire/message.h"

#include "base/bytes.h"
#include "wire/api.h"
#include "wire/api_key.h"
#include "wire/error.h"
#include "wire/messages/api_versions.h"
#include "wire/messages/fetch.h"
#include "wire/messages/metadata.h"
#include "wire/messages/produce.h"
#include "wire/testing/octets.h"
#include "wire/types.h"
#include "wire/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace kaas::wire {
namespace {

using ::testing::ElementsAre;
using testing::ints;
using testing::octets;

TEST(Message, MetadataRequestAsOldAndNewVersionsWriteIt) {
    MetadataRequest request;
    request.topics->push_back({.name = "t"});
    Writer old;
    ASSERT_TRUE(encode(old, request, 1));
    EXPECT_THAT(ints(old.view()), ElementsAre(0, 0, 0, 1, 0, 1, 't'));
    Writer flexible;
    ASSERT_TRUE(encode(flexible, request, 9));
    EXPECT_THAT(ints(flexible.view()), ElementsAre(2, 2, 't', 0, 1, 0, 0, 0));
}

TEST(Message, NullIsRefusedInAVersionWithoutIt) {
    MetadataRequest request;
    request.topics = std::nullopt;
    Writer out;
    auto status = encode(out, request, 0);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, CodecError::kUnsupportedField);
    auto bytes = octets({0xFF, 0xFF, 0xFF, 0xFF});
    EXPECT_FALSE(decode_all<MetadataRequest>(ByteView(bytes), 0));
    auto decoded = decode_all<MetadataRequest>(ByteView(bytes), 1);
    ASSERT_TRUE(decoded);
    EXPECT_FALSE(decoded->topics);
}

TEST(Message, FieldThatMustNotBeLostIsRefused) {
    MetadataRequest request;
    request.allow_auto_topic_creation = false;
    Writer out;
    auto status = encode(out, request, 3);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, CodecError::kUnsupportedField);
    EXPECT_EQ(status.error().context,
              "MetadataRequest v3: MetadataRequest.allow_auto_topic_creation");
}

TEST(Message, IgnorableFieldIsSkipped) {
    FetchRequest request;
    request.rack_id = "somewhere";
    Writer out;
    EXPECT_TRUE(encode(out, request, 10));
}

TEST(Message, UnknownTaggedFieldsComeBack) {
    Writer out;
    MetadataRequest request;
    request.unknown_tags.add(7, Bytes(base::as_bytes("seven")));
    ASSERT_TRUE(encode(out, request, 9));
    auto decoded = decode_all<MetadataRequest>(out.view(), 9);
    ASSERT_TRUE(decoded);
    EXPECT_EQ(*decoded, request);
    Writer old;
    EXPECT_FALSE(encode(old, request, 8));
}

TEST(Message, DecodedTextBorrowsFromTheFrame) {
    auto frame = octets({0, 0, 0, 1, 0, 1, 't'});
    auto decoded = decode_all<MetadataRequest>(MutableBytes(frame), 0);
    ASSERT_TRUE(decoded);
    EXPECT_FALSE(decoded->topics->front().name->owned());
    frame.back() = std::byte{'u'};
    EXPECT_EQ(decoded->topics->front().name, "u");
}

TEST(Message, VersionsOutsideTheRangeAreRefused) {
    Writer out;
    EXPECT_EQ(encode(out, ProduceRequest{}, 2).error().code, CodecError::kUnsupportedVersion);
    EXPECT_EQ(decode_all<ProduceRequest>(ByteView(), 14).error().code,
              CodecError::kUnsupportedVersion);
}

TEST(Message, ProducedRecordsCanBePatchedInTheFrame) {
    ProduceRequest request;
    request.acks = -1;
    auto records = octets({1, 2, 3});
    auto& topic = request.topic_data.emplace_back();
    topic.name = "t";
    topic.partition_data.push_back({.index = 5, .records = Records::bytes(records)});
    Writer out;
    ASSERT_TRUE(encode(out, request, 9));
    Output frame = out.take();
    auto decoded = decode_all<ProduceRequest>(frame.bytes(), 9);
    ASSERT_TRUE(decoded);
    MutableBytes inside = decoded->topic_data[0].partition_data[0].records.writable();
    ASSERT_EQ(inside.size(), 3U);
    inside[0] = std::byte{9};
    EXPECT_THAT(ints(decoded->topic_data[0].partition_data[0].records.view()),
                ElementsAre(9, 2, 3));
}

TEST(Message, ExternalRecordsAreSplicesOfTheFrame) {
    FetchResponse response;
    auto& topic = response.responses.emplace_back();
    topic.topic = "t";
    topic.partitions.push_back({.records = Records::external(100, 77)});
    topic.partitions.push_back({.partition_index = 1, .records = Records::bytes({})});
    topic.partitions.push_back({.partition_index = 2, .records = Records::external(300, 78)});
    auto frame = encode_response(response, 11, 42);
    ASSERT_TRUE(frame);
    ASSERT_EQ(frame->splices().size(), 2U);
    EXPECT_EQ(frame->splices()[0].cookie, 77U);
    EXPECT_EQ(frame->splices()[1].length, 300U);
    EXPECT_EQ(frame->wire_size(), frame->bytes().size() + 400);
    EXPECT_EQ(base::load_be<std::int32_t>(frame->bytes().data()),
              static_cast<std::int32_t>(frame->wire_size() - 4));

    // A client sees what it would have seen had the bytes been there.
    auto& partitions = response.responses[0].partitions;
    std::vector<std::byte> first(100, std::byte{1});
    std::vector<std::byte> second(300, std::byte{2});
    partitions[0].records = Records::bytes(first);
    partitions[2].records = Records::bytes(second);
    auto whole = encode_response(response, 11, 42);
    ASSERT_TRUE(whole);
    std::vector<std::byte> joined;
    std::size_t from = 0;
    for (std::size_t i = 0; i < 2; ++i) {
        auto part = frame->bytes().subspan(from, frame->splices()[i].position - from);
        joined.insert(joined.end(), part.begin(), part.end());
        const auto& region = i == 0 ? first : second;
        joined.insert(joined.end(), region.begin(), region.end());
        from = frame->splices()[i].position;
    }
    auto rest = frame->bytes().subspan(from);
    joined.insert(joined.end(), rest.begin(), rest.end());
    EXPECT_EQ(ints(joined), ints(whole->bytes()));
}

TEST(Message, RequestHeaderVersionFollowsTheApi) {
    auto old = encode_request(ApiVersionsRequest{}, 2, 5, "me");
    ASSERT_TRUE(old);
    EXPECT_THAT(ints(old->bytes()),
                ElementsAre(0, 0, 0, 12, 0, 18, 0, 2, 0, 0, 0, 5, 0, 2, 'm', 'e'));
    auto flexible = encode_request(ApiVersionsRequest{}, 3, 5, std::nullopt);
    ASSERT_TRUE(flexible);
    EXPECT_THAT(ints(flexible->bytes()),
                ElementsAre(0, 0, 0, 14, 0, 18, 0, 3, 0, 0, 0, 5, 0xFF, 0xFF, 0, 1, 1, 0));

    Reader in(flexible->bytes().subspan(4));
    auto header = decode_request_header(in);
    ASSERT_TRUE(header);
    EXPECT_EQ(header->correlation_id, 5);
    EXPECT_EQ(in.remaining(), 3U);
}

TEST(Message, RequestHeaderOfAnUnknownApi) {
    auto bytes = octets({0, 4, 0, 0, 0, 0, 0, 1, 0xFF, 0xFF});
    Reader in{ByteView(bytes)};
    EXPECT_EQ(decode_request_header(in).error().code, CodecError::kUnknownApi);
}

TEST(Message, ApiVersionsResponseAlwaysHasTheOldHeader) {
    EXPECT_EQ(api(ApiKey::kApiVersions).response_header(4), 0);
    EXPECT_EQ(api(ApiKey::kApiVersions).request_header(4), 2);
    EXPECT_EQ(api(ApiKey::kFetch).response_header(12), 1);
    EXPECT_EQ(api(ApiKey::kFetch).response_header(11), 0);
}

TEST(Message, BytesAfterTheBodyAreLeftThere) {
    auto bytes = octets({0, 0, 0, 0, 1, 2});
    Reader in{ByteView(bytes)};
    EXPECT_TRUE(decode<MetadataRequest>(in, 0));
    EXPECT_EQ(in.remaining(), 2U);
}

TEST(Message, AResponseThatNoFrameCanHoldIsAnError) {
    FetchResponse response;
    auto& topic = response.responses.emplace_back();
    for (std::size_t i = 0; i < 2; ++i) {
        topic.partitions.emplace_back().records = Records::external(1'500'000'000, i);
    }
    auto output = encode_response(response, 17, 1);
    ASSERT_FALSE(output);
    EXPECT_EQ(output.error().code, CodecError::kTooLarge);
}

}  // namespace
}  // namespace kaas::wire
