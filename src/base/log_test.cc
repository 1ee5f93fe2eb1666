// Goal: a line of the log is one line, and in JSON valid JSON, whatever the message holds.
#include "base/log.h"

#include <gtest/gtest.h>

#include <optional>

namespace kaas::base::log {
namespace {

TEST(LogJson, EscapesQuotesControlCharactersAndBackslashes) {
    EXPECT_EQ(to_json("t", Level::kWarn, "net", "a \"b\"\\\n\x01"),
              R"({"timestamp":"t","level":"warn","target":"net",)"
              R"("fields":{"message":"a \"b\"\\\n\u0001"}})");
}

TEST(LogText, StaysOneLineWhateverAClientNamesItsGroup) {
    EXPECT_EQ(to_text("group", "\"a\\b\"\nerror net: \x1b[31m\x7f"),
              R"(group: "a\b"\nerror net: \u001b[31m\u007f)");
}

TEST(LogLevel, ParsesItsNamesOnly) {
    EXPECT_EQ(parse_level("debug"), Level::kDebug);
    EXPECT_EQ(parse_level("error"), Level::kError);
    EXPECT_EQ(parse_level("INFO"), std::nullopt);
    EXPECT_EQ(parse_level(""), std::nullopt);
}

TEST(LogLevel, DecidesWhatIsEnabled) {
    configure({.level = Level::kWarn, .format = Format::kText});
    EXPECT_FALSE(enabled(Level::kInfo));
    EXPECT_TRUE(enabled(Level::kError));
    configure({});
    EXPECT_TRUE(enabled(Level::kInfo));
}

}  // namespace
}  // namespace kaas::base::log
