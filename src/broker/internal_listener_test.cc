// Goal: only brokers are served on the internal listener, and what is theirs alone. Method: a real
// listener with the broker's own dispatcher over a node on a volume in memory; the peer is the
// channel that brokers use, or a blocking client where odd requests are needed.

#include "base/bytes.h"
#include "broker/internal_listener_fixture.h"
#include "catalog/broker_identity.h"
#include "client/error.h"
#include "wire/error_code.h"
#include "wire/messages/add_partitions_to_txn.h"
#include "wire/messages/api_versions.h"
#include "wire/messages/sasl_authenticate.h"
#include "wire/messages/sasl_handshake.h"
#include "wire/messages/write_txn_markers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using testing::ElementsAre;
using wire::ErrorCode;

TEST_F(InternalListenerTest, IsToldToBrokersUnderANameThatNoClientAsksFor) {
    EXPECT_EQ(endpoint_.listener, "internal");
    EXPECT_EQ(endpoint_.host, "here");
    EXPECT_NE(endpoint_.port, 0);
}

TEST_F(InternalListenerTest, ServesABrokerThatKnowsTheSecret) {
    connect_as(std::string(catalog::kBrokerUser), "secret");
    const auto keys = call(
        wire::ApiVersionsRequest{.client_software_name = "kaas", .client_software_version = "1"}, 4,
        [](auto answer) {
            std::vector<int> keys;
            if (!answer) return keys;
            for (const auto& api : (*answer)->api_keys) keys.push_back(api.api_key);
            return keys;
        });
    EXPECT_THAT(keys, ElementsAre(2, 17, 18, 24, 27, 36, 58, 62, 63, 67));
    EXPECT_TRUE(
        call(wire::WriteTxnMarkersRequest{}, 1, [](auto answer) { return answer.has_value(); }));
    EXPECT_EQ(call(wire::SaslHandshakeRequest{.mechanism = "SCRAM-SHA-512"}, 1,
                   [](auto answer) { return (*answer)->error_code; }),
              ErrorCode::kIllegalSaslState);
    EXPECT_EQ(
        call(wire::SaslAuthenticateRequest{}, 2, [](auto answer) { return (*answer)->error_code; }),
        ErrorCode::kIllegalSaslState);
}

TEST_F(InternalListenerTest, DeniesWhoDoesNot) {
    for (const auto& [user, password] : {std::pair("__broker", "guess"), {"admin", "secret"}}) {
        connect_as(user, password);
        EXPECT_EQ(call(wire::WriteTxnMarkersRequest{}, 1,
                       [](auto answer) { return answer.error().code; }),
                  client::ErrorCode::kDenied);
    }
}

TEST_F(InternalListenerTest, ServesAStrangerNothingButItsFirstSteps) {
    auto peer = stranger();
    std::string frame;
    ask(peer, wire::ApiVersionsRequest{}, 0);
    EXPECT_EQ(answer<wire::ApiVersionsResponse>(peer, 0, frame)->api_keys.size(), 10U);
    ask(peer, wire::WriteTxnMarkersRequest{}, 1);
    EXPECT_TRUE(peer.at_end());
    auto early = stranger();
    ask(early, wire::SaslAuthenticateRequest{}, 2);
    EXPECT_TRUE(early.at_end());
}

TEST_F(InternalListenerTest, NamesItsMechanismToWhoAsksForAnother) {
    auto peer = stranger();
    std::string frame;
    ask(peer, wire::SaslHandshakeRequest{.mechanism = "PLAIN"}, 1);
    const auto response = answer<wire::SaslHandshakeResponse>(peer, 1, frame);
    ASSERT_TRUE(response);
    EXPECT_EQ(response->error_code, ErrorCode::kUnsupportedSaslMechanism);
    EXPECT_THAT(response->mechanisms, ElementsAre("SCRAM-SHA-512"));
    EXPECT_TRUE(peer.at_end());
}

TEST_F(InternalListenerTest, TakesAddPartitionsOnlyAsBrokersSendIt) {
    connect_as(std::string(catalog::kBrokerUser), "secret");
    EXPECT_TRUE(
        call(wire::AddPartitionsToTxnRequest{}, 4, [](auto answer) { return answer.has_value(); }));
    EXPECT_EQ(call(wire::AddPartitionsToTxnRequest{.v3_and_below_transactional_id = "id"}, 3,
                   [](auto answer) { return answer.error().code; }),
              client::ErrorCode::kDown);
    connect_as(std::string(catalog::kBrokerUser), "secret");
    const auto least = call(
        wire::ApiVersionsRequest{.client_software_name = "kaas", .client_software_version = "1"}, 4,
        [](auto answer) {
            for (const auto& api : (*answer)->api_keys) {
                if (api.api_key == 24) return api.min_version;
            }
            return std::int16_t(-1);
        });
    EXPECT_EQ(least, 4);
}

TEST_F(InternalListenerTest, ASecondHandshakeAndABadTokenEndTheConnection) {
    const wire::SaslHandshakeRequest handshake{.mechanism = "SCRAM-SHA-512"};
    std::string frame;
    auto twice = stranger();
    ask(twice, handshake, 1);
    EXPECT_EQ(answer<wire::SaslHandshakeResponse>(twice, 1, frame)->error_code, ErrorCode::kNone);
    ask(twice, handshake, 1);
    EXPECT_EQ(answer<wire::SaslHandshakeResponse>(twice, 1, frame)->error_code,
              ErrorCode::kIllegalSaslState);
    EXPECT_TRUE(twice.at_end());

    auto bad = stranger();
    ask(bad, handshake, 0);
    EXPECT_EQ(answer<wire::SaslHandshakeResponse>(bad, 0, frame)->error_code, ErrorCode::kNone);
    ask(bad, wire::SaslAuthenticateRequest{.auth_bytes = base::as_bytes("no token")}, 0);
    const auto refused = answer<wire::SaslAuthenticateResponse>(bad, 0, frame);
    EXPECT_EQ(refused->error_code, ErrorCode::kSaslAuthenticationFailed);
    EXPECT_TRUE(refused->error_message);
    EXPECT_TRUE(bad.at_end());
}

}  // namespace
}  // namespace kaas::broker
