// Bytes in text files must come back as they were, and damaged text must not pass for bytes. The
// values are RFC 4648's.

#include "base/base64.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace kaas::base {
namespace {

TEST(Base64, WritesWhatTheStandardSays) {
    const std::pair<std::string_view, std::string_view> rows[] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
    };
    for (const auto& [bytes, text] : rows) {
        EXPECT_EQ(to_base64(bytes), text);
        EXPECT_EQ(from_base64(text), bytes);
    }
}

TEST(Base64, EveryByteComesBack) {
    std::string bytes;
    for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
    for (std::size_t i = 0; i < 6; ++i) {
        EXPECT_EQ(from_base64(to_base64(std::string_view(bytes).substr(i))), bytes.substr(i));
    }
}

TEST(Base64, RefusesWhatNobodyWrote) {
    for (const std::string_view text :
         {"Z", "Zg", "Zg=", "Zg==Zg==", "Z===", "====", "Zh==", "Zm9=", "Z-9v", "Zm 9", "Zg=v"}) {
        EXPECT_EQ(from_base64(text), std::nullopt) << text;
    }
}

}  // namespace
}  // namespace kaas::base
