// Goal: names that Apache refuses are refused, in its words; directories fit every file system.
// Method: tables; the sentences were read off Apache 4.4.0 (`Topic.validate`).

#include "catalog/topic_name.h"

#include "base/ids.h"
#include "base/uuid.h"

#include <gtest/gtest.h>

#include <string>

namespace kaas::catalog {
namespace {

TEST(TopicName, FaultsAreApaches) {
    const std::string longest(kMaxTopicName, 'x');
    const struct {
        std::string name;
        std::string fault;
    } rows[] = {
        {"orders", ""},
        {"A.b_c-9", ""},
        {"...", ""},
        {longest, ""},
        {"", "Topic name is invalid: the empty string is not allowed"},
        {".", "Topic name is invalid: '.' is not allowed"},
        {"..", "Topic name is invalid: '..' is not allowed"},
        {longest + "x", "Topic name is invalid: the length of '" + longest +
                            "x' is longer than the max allowed length 249"},
        {"a b",
         "Topic name is invalid: 'a b' contains one or more characters other than ASCII "
         "alphanumerics, '.', '_' and '-'"},
        {"a/../b",
         "Topic name is invalid: 'a/../b' contains one or more characters other than ASCII "
         "alphanumerics, '.', '_' and '-'"},
        {"gr\xc3\xbc",
         "Topic name is invalid: 'gr\xc3\xbc' contains one or more characters other than "
         "ASCII alphanumerics, '.', '_' and '-'"},
    };
    for (const auto& row : rows) EXPECT_EQ(topic_name_fault(row.name), row.fault) << row.name;
}

TEST(TopicName, CollisionsTakeDotsForUnderscores) {
    EXPECT_TRUE(has_collision_characters("a.b"));
    EXPECT_TRUE(has_collision_characters("a_b"));
    EXPECT_FALSE(has_collision_characters("a-b"));
    EXPECT_EQ(unified_topic_name("a.b_c"), "a_b_c");
}

TEST(TopicName, DirectoryOfTheLongestNameFitsAndKeepsTheIdentity) {
    const base::TopicId id{base::Uuid::random()};
    EXPECT_EQ(topic_directory("orders", id), "orders." + id.uuid.to_string());
    const auto longest = topic_directory(std::string(kMaxTopicName, 'x'), id);
    EXPECT_EQ(longest.size(), 255U);
    EXPECT_TRUE(longest.ends_with("." + id.uuid.to_string()));
}

TEST(TopicName, CoordinatorsTopicsAreInternal) {
    EXPECT_TRUE(is_internal_topic("__consumer_offsets"));
    EXPECT_TRUE(is_internal_topic("__transaction_state"));
    EXPECT_FALSE(is_internal_topic("__mine"));
}

}  // namespace
}  // namespace kaas::catalog
