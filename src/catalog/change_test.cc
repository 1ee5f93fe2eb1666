// Goal: lines that no version of ours wrote are refused by name, never misread and never a crash.
// Method: a table of faulty lines and pictures; good lines are covered by image_test.cc.

#include "catalog/change.h"

#include "catalog/error.h"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include <string>

namespace kaas::catalog {
namespace {

Result<Change> parsed(const std::string& text) {
    return parse_change(boost::json::parse(text).as_object());
}

TEST(Change, FaultyLinesAreRefusedWithTheirFault) {
    const struct {
        std::string line;
        std::string fault;
    } rows[] = {
        {R"({})", "change has no 'change'"},
        {R"({"change":7})", "change has no text 'change'"},
        {R"({"change":"topic-deleted"})", "topic-deleted has no 'topic'"},
        {R"({"change":"topic-deleted","topic":"short"})", "topic-deleted has no good id 'topic'"},
        {R"({"change":"broker-gone","broker":"1"})", "broker-gone has no good integer 'broker'"},
        {R"({"change":"broker-gone","broker":3000000000})",
         "broker-gone has no good integer 'broker'"},
        {R"({"change":"broker-gone","broker":1.5})", "broker-gone has no good integer 'broker'"},
        {R"({"change":"topic-created","topic":[]})", "topic is not an object"},
        {R"({"change":"released","partitions":[7]})", "partition's epoch is not an object"},
        {R"({"change":"released","partitions":{}})", "released has no list 'partitions'"},
        {R"({"change":"asked-back","partitions":[{}]})", "partition's epoch has no 'topic'"},
        {R"({"change":"replicas-changed","partitions":[{}]})",
         "partition's replicas has no 'topic'"},
        {R"({"change":"broker-draining"})", "broker-draining has no 'broker'"},
        {R"({"change":"configs-changed","broker":1,"values":{"a":1}})",
         "configs-changed has no text 'a'"},
    };
    for (const auto& row : rows) {
        auto refused = parsed(row.line);
        ASSERT_FALSE(refused) << row.line;
        EXPECT_EQ(refused.error().code, ErrorCode::kMalformed) << row.line;
        EXPECT_EQ(refused.error().context, row.fault) << row.line;
    }
}

TEST(Change, KindOfALaterVersionIsSaidToBeOne) {
    auto refused = parsed(R"({"change":"moon-landed"})");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kNewerFormat);
}

TEST(Change, PictureOfALaterFormatIsRefused) {
    auto refused = parse_picture(boost::json::parse(R"({"format":2,"cluster":"c"})").as_object());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kNewerFormat);
}

TEST(Change, PictureWithAFaultyTopicIsRefused) {
    auto refused = parse_picture(
        boost::json::parse(
            R"({"format":1,"cluster":"c","controller_epoch":1,"changes":0,"controller":1,
            "topics":[{"name":"t","id":"AAAAAAAAAAAAAAAAAAAAAQ","partitions":[{"replicas":[1]}]}]})")
            .as_object());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().context, "partition has no 'leader'");
}

}  // namespace
}  // namespace kaas::catalog
