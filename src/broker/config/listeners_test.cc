// Goal: a broker listens where, and is reached as, its author meant. Method: listener texts, named
// by the fault; the rules are those of Apache's AbstractKafkaConfig.

#include "broker/config/listeners.h"

#include "broker/config/environment.h"
#include "catalog/config/value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const ProtocolMap kMap = {{"PLAINTEXT", SecurityProtocol::kPlaintext},
                          {"INTERNAL", SecurityProtocol::kPlaintext},
                          {"SECURE", SecurityProtocol::kSaslSsl}};

struct Case {
    std::string_view fault;
    std::string text;
    std::string result;  ///< the listeners written again, or a piece of the message
    bool good = true;
};
std::ostream& operator<<(std::ostream& out, const Case& one) { return out << one.fault; }

class ParseListeners : public ::testing::TestWithParam<Case> {};

TEST_P(ParseListeners, GivesThemOrSaysWhyNot) {
    auto listeners = parse_listeners(catalog::split_list(GetParam().text), kMap);
    ASSERT_EQ(listeners.has_value(), GetParam().good);
    if (!listeners) {
        EXPECT_THAT(listeners.error().context, HasSubstr(GetParam().result));
        return;
    }
    std::string written;
    for (const auto& listener : *listeners)
        written += (written.empty() ? "" : ",") + to_string(listener);
    EXPECT_EQ(written, GetParam().result);
}

INSTANTIATE_TEST_SUITE_P(
    Good, ParseListeners,
    ::testing::Values(Case{"LowerCaseName", "plaintext://h:1", "PLAINTEXT://h:1"},
                      Case{"EmptyHost", "PLAINTEXT://:9092", "PLAINTEXT://:9092"},
                      Case{"Ipv6", "PLAINTEXT://[::1]:9092", "PLAINTEXT://[::1]:9092"},
                      Case{"Ipv6Zone", "PLAINTEXT://[fe80::1%eth0]:9092",
                           "PLAINTEXT://[fe80::1%eth0]:9092"},
                      Case{"Ipv6WithoutBrackets", "PLAINTEXT://::1:9092", "PLAINTEXT://[::1]:9092"},
                      Case{"AnyFreePortTwice", "PLAINTEXT://h:0,INTERNAL://h:0",
                           "PLAINTEXT://h:0,INTERNAL://h:0"},
                      Case{"OnePortForBothFamilies", "PLAINTEXT://127.0.0.1:1,INTERNAL://[::1]:1",
                           "PLAINTEXT://127.0.0.1:1,INTERNAL://[::1]:1"},
                      Case{"SecureProtocol", "SECURE://h:1", "SECURE://h:1"}),
    [](const auto& info) { return std::string(info.param.fault); });

INSTANTIATE_TEST_SUITE_P(
    Refused, ParseListeners,
    ::testing::Values(
        Case{"NoName", "h:9092", "NAME://host:port", false},
        Case{"EmptyName", "://h:9092", "NAME://host:port", false},
        Case{"NoPort", "PLAINTEXT://h", "NAME://host:port", false},
        Case{"EmptyPort", "PLAINTEXT://h:", "0 to 65535", false},
        Case{"PortTooLarge", "PLAINTEXT://h:65536", "0 to 65535", false},
        Case{"NegativePort", "PLAINTEXT://h:-1", "0 to 65535", false},
        Case{"PathBehindThePort", "PLAINTEXT://h:1/x", "0 to 65535", false},
        Case{"OpenBracket", "PLAINTEXT://[::1:9092", "NAME://host:port", false},
        Case{"NoPortBehindBrackets", "PLAINTEXT://[::1]", "NAME://host:port", false},
        Case{"BlankInHost", "PLAINTEXT://my host:1", "has a character that no host has", false},
        Case{"UnknownName", "EXTERNAL://h:1", "add EXTERNAL:PLAINTEXT", false},
        Case{"OneNameTwice", "PLAINTEXT://h:1,plaintext://h:2",
             "two listeners are called PLAINTEXT", false},
        Case{"OnePortTwice", "PLAINTEXT://h:1,INTERNAL://i:1", "share port 1", false},
        Case{"OnePortTwiceInOneFamily", "PLAINTEXT://127.0.0.1:1,INTERNAL://127.0.0.2:1",
             "share port 1", false}),
    [](const auto& info) { return std::string(info.param.fault); });

TEST(ParseProtocolMap, ReadsNamesInAnyCase) {
    auto map = parse_protocol_map("a:plaintext, B : SASL_SSL");
    ASSERT_TRUE(map);
    EXPECT_THAT(*map, ElementsAre(std::pair("A", SecurityProtocol::kPlaintext),
                                  std::pair("B", SecurityProtocol::kSaslSsl)));
}

TEST(ParseProtocolMap, RefusesWhatIsNoPairOrNoProtocol) {
    EXPECT_THAT(parse_protocol_map("PLAINTEXT").error().context, HasSubstr("NAME:PROTOCOL"));
    EXPECT_THAT(parse_protocol_map("A:TLS").error().context, HasSubstr("TLS is not a protocol"));
}

TEST(ParseAdvertised, NamesMustBeAmongTheListeners) {
    std::vector<Listener> listeners = {{"PLAINTEXT", SecurityProtocol::kPlaintext, "", 1}};
    auto advertised = parse_advertised({"INTERNAL://h:1"}, kMap, listeners);
    ASSERT_FALSE(advertised);
    EXPECT_THAT(advertised.error().context, HasSubstr("INTERNAL is not one of listeners"));
    EXPECT_TRUE(parse_advertised({"PLAINTEXT://h:1"}, kMap, listeners));
}

TEST(ParseAdvertised, PortsMayBeShared) {
    std::vector<Listener> listeners = {{"PLAINTEXT", SecurityProtocol::kPlaintext, "", 1},
                                       {"INTERNAL", SecurityProtocol::kPlaintext, "", 2}};
    EXPECT_TRUE(parse_advertised({"PLAINTEXT://a:9", "INTERNAL://b:9"}, kMap, listeners));
}

TEST(Routable, AddressesOfEveryInterfaceAreRefused) {
    for (const char* host : {"0.0.0.0", "::"}) {
        auto reached =
            routable({{"PLAINTEXT", SecurityProtocol::kPlaintext, host, 9092}}, "worker-3");
        ASSERT_FALSE(reached);
        EXPECT_THAT(reached.error().context,
                    HasSubstr("advertised.listeners=PLAINTEXT://worker-3:9092"));
    }
}

TEST(ConfigOfVariable, FollowsTheRulesOfApachesImage) {
    EXPECT_EQ(config_of_variable("KAFKA_LOG_SEGMENT_BYTES"), "log.segment.bytes");
    EXPECT_EQ(config_of_variable("KAFKA_A__B___C____D"), "a_b-c-.d");
    EXPECT_EQ(config_of_variable("KAFKA_KAAS_LOG_LEVEL"), "kaas.log.level");
    EXPECT_EQ(config_of_variable("KAFKA_HEAP_OPTS"), std::nullopt);
    EXPECT_EQ(config_of_variable("kafka_log_dirs"), std::nullopt);
    EXPECT_EQ(config_of_variable("PATH"), std::nullopt);
}

}  // namespace
}  // namespace kaas::broker
