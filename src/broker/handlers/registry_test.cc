// Goal: what is served, what is advertised and what protocol/ says is served are one list.
#include "broker/handlers/registry.h"

#include "wire/api.h"

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
    for (const auto& handler : handlers()) served.push_back(handler.key);
    EXPECT_EQ(served, said);
}

TEST(Registry, FindsEachHandlerByItsKeyAndNoOther) {
    for (const auto& handler : handlers()) {
        EXPECT_EQ(find_handler(static_cast<std::int16_t>(handler.key)), &handler);
    }
    EXPECT_EQ(find_handler(-1), nullptr);
    EXPECT_EQ(find_handler(4), nullptr);
    EXPECT_EQ(find_handler(999), nullptr);
}

TEST(Registry, AdvertisesNoLessThanItServes) {
    for (const auto& handler : handlers()) {
        const auto& api = wire::api(handler.key);
        EXPECT_LE(api.advertised.min, api.versions.min) << api.name;
        EXPECT_EQ(api.advertised.max, api.versions.max) << api.name;
    }
}

}  // namespace
}  // namespace kaas::broker
