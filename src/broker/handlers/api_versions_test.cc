// Goal: software names are Apache's to the letter.
#include "broker/handlers/api_versions.h"

#include <gtest/gtest.h>

#include <string>

namespace kaas::broker {
namespace {

TEST(SoftwareName, TakesLettersDigitsAndInnerMarks) {
    for (const char* name : {"a", "kaas", "apache-kafka-java", "4.4.0", "a.b-c", "A1"}) {
        EXPECT_TRUE(is_software_name(name)) << name;
    }
    EXPECT_TRUE(is_software_name(std::string(300, 'a')));
}

TEST(SoftwareName, RefusesEverythingElse) {
    for (const char* name :
         {"", "-a", "a-", ".a", "a.", "a b", "a_b", "a\nb", "k\xc3\xa4", "a/b"}) {
        EXPECT_FALSE(is_software_name(name)) << name;
    }
}

}  // namespace
}  // namespace kaas::broker
