// Goal: text is told from bytes that are none. Method: the edges of RFC 3629's table.

#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

namespace kaas::base {
namespace {

using namespace std::string_view_literals;

TEST(Utf8, EdgesOfEachLengthAreText) {
    for (auto text : {""sv, "a\0b"sv, "\x7f"sv, "\xC2\x80"sv, "\xDF\xBF"sv, "\xE0\xA0\x80"sv,
                      "\xED\x9F\xBF"sv, "\xEE\x80\x80"sv, "\xEF\xBF\xBF"sv, "\xF0\x90\x80\x80"sv,
                      "\xF4\x8F\xBF\xBF"sv, "Z\xC3\xBCrich"sv}) {
        EXPECT_TRUE(is_utf8(text)) << testing::PrintToString(text);
    }
}

TEST(Utf8, WhatRfc3629ForbidsIsNotText) {
    for (auto text :
         {"\xFF"sv, "\x80"sv, "\xC1\xBF"sv, "\xC2"sv, "\xC2\x41"sv, "\xE0\x9F\xBF"sv,
          "\xED\xA0\x80"sv, "\xE2\x82"sv, "\xE2\x82\x41"sv, "\xF0\x8F\xBF\xBF"sv,
          "\xF4\x90\x80\x80"sv, "\xF5\x80\x80\x80"sv, "\xF0\x90\x80\x41"sv, "good\xFE"sv}) {
        EXPECT_FALSE(is_utf8(text)) << testing::PrintToString(text);
    }
}

// What Java's decoder makes of such bytes; each digit is one U+FFFD.
TEST(Utf8, BytesThatAreNoTextAreReplacedAsJavaDoes) {
    const std::pair<std::string_view, std::string_view> rows[] = {
        {"a\xFF\x62", "a1b"},         {"\xE2\x82", "1"},
        {"\xE2\x82\x41", "1A"},       {"\xED\xA0\x80", "1"},
        {"\xF0\x9F\x98", "1"},        {"\xF0\x9F\x98\x41", "1A"},
        {"\xC0\x80", "11"},           {"\xE0\x80\x80", "111"},
        {"\xF5\x80\x80\x80", "1111"}, {"\xF4\x90\x80\x80", "1111"},
        {"\x80\x80", "11"},           {"\xF0\x80\x80\x80", "1111"},
        {"\xE2\x28\xA1", "1(1"},      {"\xC3\x28", "1("},
        {"\xF0\x90\x28\xBC", "1(1"},  {"Z\xC3\xBCrich", "Z\xC3\xBCrich"},
    };
    for (const auto& [bytes, expected] : rows) {
        std::string text;
        for (const char c : expected) text += c == '1' ? "\xEF\xBF\xBD" : std::string(1, c);
        EXPECT_EQ(to_utf8(bytes), text) << testing::PrintToString(bytes);
    }
}

}  // namespace
}  // namespace kaas::base
