// Goal: text is told from bytes that are none. Method: the edges of RFC 3629's table.

#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string_view>

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

}  // namespace
}  // namespace kaas::base
