// Goal: a server.properties means what Java's Properties.load reads from it. Method: texts named by
// the fault they catch; expectations as Java 17 gives them.

#include "broker/config/properties.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <string_view>

namespace kaas::broker {
namespace {

using catalog::ConfigMap;

struct Case {
    std::string_view fault;
    std::string text;
    ConfigMap entries;
};
std::ostream& operator<<(std::ostream& out, const Case& one) { return out << one.fault; }

class ParseProperties : public ::testing::TestWithParam<Case> {};

TEST_P(ParseProperties, ReadsAsJavaDoes) {
    auto parsed = parse_properties(GetParam().text);
    ASSERT_TRUE(parsed) << parsed.error().context;
    EXPECT_EQ(*parsed, GetParam().entries);
}

INSTANTIATE_TEST_SUITE_P(
    Texts, ParseProperties,
    ::testing::Values(
        Case{"Empty", "", {}}, Case{"OnlyBlankLines", "\n \t\r\n\f\n", {}},
        Case{"EqualsColonOrBlank",
             "a=1\nb:2\nc 3\nd = 4\ne : 5\nf\t6",
             {{"a", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"}, {"e", "5"}, {"f", "6"}}},
        Case{"OnlyTheFirstSeparatorCounts", "a==b\nc: =d", {{"a", "=b"}, {"c", "=d"}}},
        Case{"KeyWithoutValue", "a\nb=\nc:", {{"a", ""}, {"b", ""}, {"c", ""}}},
        Case{"Comments", "# a=1\n ! b=2\nc=3 # not a comment", {{"c", "3 # not a comment"}}},
        Case{"LaterWins", "a=1\na=2", {{"a", "2"}}},
        Case{"BlanksBehindTheValueStay", "a=1 \t", {{"a", "1 \t"}}},
        Case{"Continuation",
             "a=one,\\\n    two,\\\r\n\tthree\nb=4",
             {{"a", "one,two,three"}, {"b", "4"}}},
        Case{"ContinuationAtTheEnd", "a=1\\", {{"a", "1"}}},
        Case{"ContinuationIntoAComment", "a=1\\\n#2", {{"a", "1#2"}}},
        Case{"CommentIsNotContinued", "# x\\\na=1", {{"a", "1"}}},
        Case{"EscapedBackslashAtTheEnd", "a=1\\\\\nb=2", {{"a", "1\\"}, {"b", "2"}}},
        Case{"EscapedSeparators", "a\\=b\\:c\\ d=1", {{"a=b:c d", "1"}}},
        Case{"EscapedCharacters", "a=\\t\\n\\r\\f\\\\\\q", {{"a", "\t\n\r\f\\q"}}},
        Case{"Unicode",
             "a=\\u00e9\\u20ac\\u0041",
             {{"a",
               "\xC3\xA9\xE2\x82\xAC"
               "A"}}},
        Case{"SurrogatePair", "a=\\ud83d\\ude00", {{"a", "\xF0\x9F\x98\x80"}}},
        Case{"LoneSurrogate", "a=\\ud83dx", {{"a", "\xEF\xBF\xBDx"}}},
        Case{"OldMacLineEnds", "a=1\rb=2", {{"a", "1"}, {"b", "2"}}},
        Case{"Utf8AsItIs", "a=\xC3\xA9", {{"a", "\xC3\xA9"}}}),
    [](const auto& info) { return std::string(info.param.fault); });

TEST(ParsePropertiesRefuses, BrokenUnicodeByItsLine) {
    for (const char* text :
         {"a=1\n\nb=\\u12", "a=1\n\nb=\\u12g4", "a=1\n\n\\u=1", "a=1\n\nb=\\u+123"}) {
        auto parsed = parse_properties(text);
        ASSERT_FALSE(parsed) << text;
        EXPECT_THAT(parsed.error().context, ::testing::HasSubstr("line 3")) << text;
    }
}

}  // namespace
}  // namespace kaas::broker
