// Goal: what is served, what is advertised and what protocol/ says is served are one list.
#include "broker/handlers/registry.h"

#include "net/exchange.h"
#include "wire/api.h"
#include "wire/api_key.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace kaas::broker {
namespace {

TEST(Registry, ServesExactlyTheApisThatProtocolSaysAreServed) {
    std::vector<wire::ApiKey> said;
    for (const auto& api : wire::kApis) {
        if (!api.since.empty()) said.push_back(api.key);
    }
    std::vector<wire::ApiKey> served;
    for (const auto& handler : handlers(Audience::kClients)) served.push_back(handler.key);
    EXPECT_EQ(served, said);
}

TEST(Registry, ServesClientsNothingThatApacheServesControllersAlone) {
    for (const auto& handler : handlers(Audience::kClients)) {
        EXPECT_NE(wire::api(handler.key).listeners & wire::kOnBroker, 0)
            << wire::api(handler.key).name;
    }
}

TEST(Registry, ServesBrokersWhatTheyNeedOfEachOther) {
    std::vector<std::int16_t> served;
    for (const auto& handler : handlers(Audience::kBrokers)) {
        served.push_back(static_cast<std::int16_t>(handler.key));
    }
    EXPECT_EQ(served, (std::vector<std::int16_t>{2, 17, 18, 24, 27, 36, 58, 62, 63, 67}));
}

TEST(Registry, OpensTheInternalListenerToBrokersAlone) {
    net::Peer client;
    client.listener = "INTERNAL";
    net::Peer peer;
    peer.listener = "internal";
    EXPECT_EQ(audience_of(client), Audience::kClients);
    EXPECT_EQ(audience_of(peer), Audience::kBrokers);
    for (const auto& handler : handlers(Audience::kClients)) {
        EXPECT_TRUE(is_open_to(client, handler.key));
    }
    EXPECT_TRUE(is_open_to(peer, wire::ApiKey::kApiVersions));
    EXPECT_TRUE(is_open_to(peer, wire::ApiKey::kSaslHandshake));
    EXPECT_TRUE(is_open_to(peer, wire::ApiKey::kSaslAuthenticate));
    EXPECT_FALSE(is_open_to(peer, wire::ApiKey::kWriteTxnMarkers));
    peer.principal = "User:broker";
    EXPECT_FALSE(is_open_to(peer, wire::ApiKey::kWriteTxnMarkers));
    peer.principal = "User:__broker";
    EXPECT_TRUE(is_open_to(peer, wire::ApiKey::kWriteTxnMarkers));
}

TEST(Registry, FindsEachHandlerByItsKeyAndNoOther) {
    for (const Audience audience : kAudiences) {
        for (const auto& handler : handlers(audience)) {
            EXPECT_EQ(find_handler(static_cast<std::int16_t>(handler.key), audience), &handler);
        }
        EXPECT_EQ(find_handler(-1, audience), nullptr);
        EXPECT_EQ(find_handler(4, audience), nullptr);
        EXPECT_EQ(find_handler(999, audience), nullptr);
    }
    EXPECT_EQ(find_handler(36, Audience::kClients), nullptr);
    EXPECT_EQ(find_handler(0, Audience::kBrokers), nullptr);
}

TEST(Registry, AdvertisesNoLessThanItServes) {
    for (const auto& handler : handlers(Audience::kClients)) {
        const auto& api = wire::api(handler.key);
        EXPECT_LE(api.advertised.min, api.versions.min) << api.name;
        EXPECT_EQ(api.advertised.max, api.versions.max) << api.name;
    }
}

}  // namespace
}  // namespace kaas::broker
