// Goal: what the roll call tells of brokers, for metrics and DescribeQuorum, is what it has seen.
// Method: as roll_call_test.cc.

#include "base/ids.h"
#include "base/uuid.h"
#include "catalog/image.h"
#include "cluster/error.h"
#include "cluster/link_messages.h"
#include "cluster/roll_call_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kaas::cluster {
namespace {

TEST_F(RollCallTest, ADeathIsToldWithItsSilenceAndALeaveIsNone) {
    join(7);
    add_bystander();
    pass(kTimeout);
    EXPECT_THAT(deaths_, ::testing::ElementsAre(kTimeout));
    end_mark();
    turn();
    const auto next = join(8);
    report(8, next.life, {.intent = Report::Intent::kLeave});
    turn();
    EXPECT_EQ(deaths_.size(), 1U) << "it has said that it leaves";
}

TEST_F(RollCallTest, WhatAnEarlierLifeSaysIsCounted) {
    const auto registration = join(7);
    EXPECT_TRUE(good(report(7, registration.life)));
    EXPECT_EQ(stale_, 0);
    const BrokerLife earlier{kOther, base::Uuid::random()};
    EXPECT_TRUE(refused(report(8, earlier), ErrorCode::kStaleBroker));
    (void)watch(8, earlier, image()->version());
    EXPECT_EQ(stale_, 2);
}

TEST_F(RollCallTest, SightsSayWhatEachBrokerHas) {
    const auto registration = join(7);
    const auto has = [&](base::BrokerId id) {
        for (const auto& sight : roll_call_->sights()) {
            if (sight.broker == id) return sight.has;
        }
        return catalog::ImageVersion{};
    };
    EXPECT_EQ(has(kOther), catalog::ImageVersion{}) << "it has asked for nothing yet";
    const auto before = image()->version();
    (void)watch(7, registration.life, before);
    create("t");
    EXPECT_EQ(has(kOther), before);
    EXPECT_EQ(has(kSelf), image()->version());
}

}  // namespace
}  // namespace kaas::cluster
