// Goal: ids read and write as Apache's org.apache.kafka.common.Uuid.
#include "base/uuid.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace kaas::base {
namespace {

TEST(Uuid, WritesUrlSafeBase64) {
    Uuid id;
    EXPECT_EQ(id.to_string(), "AAAAAAAAAAAAAAAAAAAAAA");
    id.bytes[15] = 1;  // Apache's METADATA_TOPIC_ID
    EXPECT_EQ(id.to_string(), "AAAAAAAAAAAAAAAAAAAAAQ");
    id.bytes.fill(0xFF);
    EXPECT_EQ(id.to_string(), "_____________________w");
}

TEST(Uuid, ReadsWhatItWrote) {
    for (int i = 0; i < 100; ++i) {
        Uuid id = Uuid::random();
        EXPECT_EQ(Uuid::parse(id.to_string()), id);
    }
}

TEST(Uuid, RefusesOtherText) {
    EXPECT_FALSE(Uuid::parse(""));
    EXPECT_FALSE(Uuid::parse("AAAAAAAAAAAAAAAAAAAAA"));
    EXPECT_FALSE(Uuid::parse("AAAAAAAAAAAAAAAAAAAAA+"));
    EXPECT_FALSE(Uuid::parse("AAAAAAAAAAAAAAAAAAAAAAA"));
}

TEST(Uuid, RandomOnesDifferAndNeverStartWithADash) {
    std::set<std::string> seen;
    for (int i = 0; i < 2000; ++i) {
        std::string text = Uuid::random().to_string();
        EXPECT_NE(text.front(), '-');
        EXPECT_TRUE(seen.insert(text).second);
    }
}

}  // namespace
}  // namespace kaas::base
