// Goal: nobody is taken out of the cluster, or replaced in it, before its sessions are marked; who
// is silent or gone is taken out in time, and who comes back is not; brokers are told everything,
// in order. Method: a roll call over a real controller on a volume in memory; time is moved by
// hand, and marks and probes end when the test says so.

#include "cluster/roll_call.h"

#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/uuid.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/admin.h"
#include "cluster/controller.h"
#include "cluster/error.h"
#include "cluster/link_messages.h"
#include "cluster/reign.h"
#include "cluster/roll_call_fixture.h"
#include "cluster/testing_members.h"
#include "storage/memory_volume.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace kaas::cluster {
namespace {

using namespace std::chrono_literals;

TEST_F(RollCallTest, RegistrationIsAnsweredWhenTheBrokerStandsInTheImage) {
    auto registration = life(broker_of({2}));
    auto outcome = ask_to_join(7, registration);
    EXPECT_FALSE(*outcome) << "nothing is durable yet";
    controller_->step();
    EXPECT_TRUE(good(outcome));
    EXPECT_EQ(image()->broker(kOther)->sessions, registration.broker.sessions);
    EXPECT_TRUE(marks_.empty());
}

TEST_F(RollCallTest, SameRegistrationAgainIsAnsweredWithoutALine) {
    auto registration = join(7);
    const auto before = image()->version();
    EXPECT_TRUE(good(ask_to_join(8, registration)));
    controller_->step();
    EXPECT_EQ(image()->version(), before);
}

TEST_F(RollCallTest, ABrokerOfAnotherClusterIsRefused) {
    auto registration = life(broker_of({2}));
    registration.cluster_id = "another";
    EXPECT_TRUE(refused(ask_to_join(7, registration), ErrorCode::kWrongCluster));
}

TEST_F(RollCallTest, AnIdThatIsInUseIsRefused) {
    join(7);
    EXPECT_TRUE(refused(ask_to_join(8, life(broker_of({2}))), ErrorCode::kDuplicateBroker));
    EXPECT_TRUE(refused(ask_to_join(9, life(broker_of({1}))), ErrorCode::kDuplicateBroker))
        << "the controller's own";
    EXPECT_TRUE(marks_.empty());
}

TEST_F(RollCallTest, SilentBrokerIsTakenOutAfterTheTimeoutAndItsMark) {
    add_bystander();
    auto registration = join(7);
    pass(kTimeout - 1ms);
    ASSERT_TRUE(marks_.empty());
    pass(1ms);
    ASSERT_EQ(marks_.size(), 1U);
    EXPECT_EQ(marks_[0].incarnation, registration.broker.sessions.at("main"));
    EXPECT_TRUE(lives()) << "nothing is published before the mark counts";
    end_mark();
    controller_->step();
    EXPECT_FALSE(lives());
}

// A controller whose own network is gone hears nobody, and must not take everybody else out.
TEST_F(RollCallTest, WhenAllAreSilentAtOnceNobodyIsTakenOut) {
    const auto second = join(7);
    const auto third = join(8, {3});
    pass(kTimeout - 1ms);
    EXPECT_FALSE(roll_call_->hears_nobody());
    clock_.advance(1ms);
    report(8, third.life);
    turn();
    EXPECT_FALSE(roll_call_->hears_nobody());
    EXPECT_EQ(marks_.size(), 1U) << "the second alone";
    end_mark();
    pass(kTimeout);
    EXPECT_TRUE(roll_call_->hears_nobody());
    EXPECT_TRUE(marks_.empty());
    report(8, third.life);
    turn();
    EXPECT_FALSE(roll_call_->hears_nobody()) << "it was late";
}

TEST_F(RollCallTest, VolumeThatDoesNotAnswerABrokerIsTakenFromItAlone) {
    const auto registration = join(7, {2, {"a", "b"}});
    report(7, {kOther, base::Uuid::random()}, {.unwell = {"b"}});
    EXPECT_TRUE(marks_.empty()) << "that is another life's word";
    report(7, registration.life, {.unwell = {"b", "nowhere"}});
    ASSERT_EQ(marks_.size(), 1U);
    EXPECT_EQ(marks_[0].incarnation, registration.broker.sessions.at("b"));
    report(7, registration.life, {.unwell = {"b"}});
    EXPECT_EQ(marks_.size(), 1U) << "that is under way";
    end_mark();
    report(7, registration.life, {.unwell = {"b"}});
    EXPECT_TRUE(marks_.empty()) << "it is done, though the image may not show it yet";
    turn();
    EXPECT_TRUE(image()->broker(kOther)->sessions.contains("a"));
    EXPECT_FALSE(image()->broker(kOther)->sessions.contains("b"));
}

TEST_F(RollCallTest, ControllersOwnVolumeThatDoesNotAnswerIsOutOfReach) {
    join(7, {2, {"main"}});
    roll_call_->unwell(kSelf, {"main", "nowhere"});
    EXPECT_TRUE(marks_.empty()) << "it would hang, too";
    EXPECT_EQ(roll_call_->out_of_reach(), std::vector<std::string>{"main"});
}

TEST_F(RollCallTest, EachReportPutsTheEndOff) {
    auto registration = join(7);
    for (int i = 0; i < 5; ++i) {
        pass(kTimeout - 1ms);
        EXPECT_TRUE(good(report(7, registration.life)));
    }
    turn();
    EXPECT_TRUE(marks_.empty());
}

TEST_F(RollCallTest, BrokerWhoseConnectionClosedIsTakenOutAfterTheGrace) {
    join(7);
    roll_call_->disconnected(7);
    pass(kGrace - 1ms);
    ASSERT_TRUE(marks_.empty());
    pass(1ms);
    EXPECT_EQ(marks_.size(), 1U);
}

TEST_F(RollCallTest, BrokerThatComesBackWithinTheGraceStays) {
    auto registration = join(7);
    roll_call_->disconnected(7);
    pass(kGrace - 1ms);
    EXPECT_TRUE(good(report(8, registration.life)));
    pass(kGrace);
    EXPECT_TRUE(marks_.empty());
    roll_call_->disconnected(8);
    pass(kGrace);
    EXPECT_EQ(marks_.size(), 1U) << "its new connection counts like the first";
}

TEST_F(RollCallTest, ALaterEndOfAnEarlierConnectionIsNoEnd) {
    auto registration = join(7);
    EXPECT_TRUE(good(report(8, registration.life)));
    roll_call_->disconnected(7);
    pass(kGrace);
    EXPECT_TRUE(marks_.empty());
}

TEST_F(RollCallTest, WaitingForNewsIsNoSignOfLifeThatOutlastsReports) {
    auto registration = join(7);
    auto heard = watch(9, registration.life, image()->version());
    roll_call_->disconnected(7);
    pass(kGrace);
    EXPECT_EQ(marks_.size(), 1U) << "a parked wait does not see that its peer is gone";
}

TEST_F(RollCallTest, AMarkThatFailsIsTriedAgainAndNothingIsRemovedMeanwhile) {
    add_bystander();
    join(7);
    pass(kTimeout);
    end_mark(not_proven());
    turn();
    EXPECT_TRUE(lives());
    EXPECT_TRUE(marks_.empty()) << "not at once";
    pass(kRetry);
    ASSERT_EQ(marks_.size(), 1U);
    EXPECT_TRUE(lives());
    end_mark();
    turn();
    EXPECT_FALSE(lives());
}

TEST_F(RollCallTest, OfTwoVolumesOnlyTheMarkedOneIsTakenAway) {
    add_bystander();
    join(7, {2, {"a", "b"}});
    pass(kTimeout);
    ASSERT_EQ(marks_.size(), 2U);
    end_mark();
    end_mark(not_proven());
    turn();
    ASSERT_TRUE(lives());
    EXPECT_FALSE(image()->broker(kOther)->sessions.contains("a"));
    EXPECT_TRUE(image()->broker(kOther)->sessions.contains("b"));
    pass(kRetry);
    ASSERT_EQ(marks_.size(), 1U) << "the other is done";
    EXPECT_EQ(marks_[0].volume, "b");
}

TEST_F(RollCallTest, NextLifeWaitsForTheMarksOfTheEarlierOne) {
    auto earlier = join(7);
    roll_call_->disconnected(7);
    auto next = life(broker_of({2}));
    auto outcome = ask_to_join(8, next);
    turn();
    ASSERT_EQ(marks_.size(), 1U);
    EXPECT_EQ(marks_[0].incarnation, earlier.broker.sessions.at("main"));
    EXPECT_FALSE(*outcome);
    EXPECT_EQ(image()->broker(kOther)->sessions, earlier.broker.sessions);
    EXPECT_TRUE(refused(report(7, earlier.life), ErrorCode::kStaleBroker));
    end_mark();
    EXPECT_TRUE(marks_.empty()) << "one mark is enough, also before the image says so";
    turn();
    EXPECT_TRUE(good(outcome));
    EXPECT_EQ(image()->broker(kOther)->sessions, next.broker.sessions);
}

TEST_F(RollCallTest, NextLifeIsToldWhenAMarkCannotBeProven) {
    auto earlier = join(7);
    roll_call_->disconnected(7);
    auto outcome = ask_to_join(8, life(broker_of({2})));
    end_mark(not_proven());
    EXPECT_TRUE(refused(outcome, ErrorCode::kStorage));
    turn();
    EXPECT_EQ(image()->broker(kOther)->sessions, earlier.broker.sessions);
}

TEST_F(RollCallTest, NextLifeComesAfterAnEndThatIsUnderWay) {
    add_bystander();
    join(7);
    pass(kTimeout);
    auto next = life(broker_of({2}));
    auto outcome = ask_to_join(8, next);
    ASSERT_EQ(marks_.size(), 1U);
    EXPECT_FALSE(*outcome);
    end_mark();
    EXPECT_TRUE(marks_.empty());
    turn();
    EXPECT_TRUE(good(outcome));
    EXPECT_EQ(image()->broker(kOther)->sessions, next.broker.sessions);
}

// The image knows the sessions of the first only when the controller has stepped: whoever replaces
// them before they could be seen there would leave them unmarked, and their broker writing.
TEST_F(RollCallTest, ALifeIsNotReplacedBeforeTheImageShowsWhatToMark) {
    auto first = life(broker_of({2}));
    auto first_outcome = ask_to_join(7, first);
    roll_call_->disconnected(7);
    auto second = life(broker_of({2}));
    auto second_outcome = ask_to_join(8, second);
    controller_->step();
    EXPECT_TRUE(good(first_outcome));
    ASSERT_EQ(marks_.size(), 1U);
    EXPECT_EQ(marks_[0].incarnation, first.broker.sessions.at("main"));
    controller_->step();
    EXPECT_EQ(image()->broker(kOther)->sessions, first.broker.sessions);
    end_mark();
    turn();
    EXPECT_TRUE(good(second_outcome));
    EXPECT_EQ(image()->broker(kOther)->sessions, second.broker.sessions);
}

// It would stand in the catalog for ever, with nobody looking after it.
TEST_F(RollCallTest, WhoGoesWhileItIsRegisteredIsTakenOutAfterwards) {
    ask_to_join(7, life(broker_of({2})));
    roll_call_->disconnected(7);
    clock_.advance(kGrace);
    roll_call_->turn();
    controller_->step();
    ASSERT_TRUE(lives());
    turn();
    ASSERT_EQ(marks_.size(), 1U);
    end_mark();
    turn();
    EXPECT_FALSE(lives());
}

TEST_F(RollCallTest, WhoseConnectionClosesBeforeItIsAdmittedHasTheGraceFromThen) {
    auto registration = join(7);
    roll_call_->disconnected(7);
    auto next = life(broker_of({2}));
    auto outcome = ask_to_join(8, next);
    ASSERT_EQ(marks_.size(), 1U) << "of the earlier life";
    roll_call_->disconnected(8);
    EXPECT_TRUE(refused(outcome, ErrorCode::kNotController)) << "to nobody";
    end_mark();
    pass(kGrace);
    EXPECT_FALSE(lives());
    EXPECT_TRUE(marks_.empty()) << "it never stood in the image";
}

TEST_F(RollCallTest, NewSessionOnOneVolumeEndsTheEarlierOneThereAlone) {
    auto registration = join(7, {2, {"a", "b"}});
    const auto earlier = registration.broker.sessions.at("a");
    registration.broker.sessions["a"] = {base::Uuid::random()};
    auto outcome = ask_to_join(7, registration);
    ASSERT_EQ(marks_.size(), 1U);
    EXPECT_EQ(marks_[0].incarnation, earlier);
    end_mark();
    turn();
    EXPECT_TRUE(good(outcome));
    EXPECT_EQ(image()->broker(kOther)->sessions, registration.broker.sessions);
}

TEST_F(RollCallTest, MarkedSessionIsNotTakenAgain) {
    add_bystander();
    auto registration = join(7);
    pass(kTimeout);
    end_mark();
    EXPECT_TRUE(refused(ask_to_join(8, registration), ErrorCode::kStaleBroker)) << "before";
    controller_->step();
    EXPECT_TRUE(refused(ask_to_join(8, registration), ErrorCode::kStaleBroker)) << "and after";
    EXPECT_TRUE(refused(report(8, registration.life), ErrorCode::kStaleBroker));
    auto heard = watch(9, registration.life, image()->version());
    ASSERT_TRUE(*heard && !**heard);
    EXPECT_EQ((**heard).error().code, ErrorCode::kStaleBroker);
}

TEST_F(RollCallTest, WhoIsUnknownHasToIntroduceItself) {
    auto registration = join(7);
    EXPECT_TRUE(refused(report(7, {kOther, base::Uuid::random()}), ErrorCode::kStaleBroker));
    EXPECT_TRUE(refused(report(7, {base::BrokerId(3), registration.life.process}),
                        ErrorCode::kStaleBroker));
}

TEST_F(RollCallTest, WhoLeavesIsTakenOutWithoutGrace) {
    auto registration = join(7);
    EXPECT_TRUE(good(report(7, registration.life, {.intent = Report::Intent::kLeave})));
    turn();
    ASSERT_EQ(marks_.size(), 1U);
    EXPECT_TRUE(lives());
    end_mark();
    turn();
    EXPECT_FALSE(lives());
}

TEST_F(RollCallTest, ItsNextLifeMayLeaveToo) {
    auto earlier = join(7);
    report(7, earlier.life, {.intent = Report::Intent::kLeave});
    turn();
    auto next = life(broker_of({2}));
    ask_to_join(8, next);
    end_mark();
    turn();
    ASSERT_TRUE(lives());
    report(8, next.life, {.intent = Report::Intent::kLeave});
    turn();
    ASSERT_EQ(marks_.size(), 1U);
    EXPECT_EQ(marks_[0].incarnation, next.broker.sessions.at("main"));
}

TEST_F(RollCallTest, WhoDrainsIsSaidToInTheImage) {
    auto registration = join(7);
    EXPECT_TRUE(good(report(7, registration.life, {.intent = Report::Intent::kDrain})));
    turn();
    EXPECT_TRUE(image()->broker(kOther)->draining);
    EXPECT_TRUE(lives());
}

TEST_F(RollCallTest, MarksOfAnEarlierReignChangeNothing) {
    add_bystander();
    auto registration = join(7);
    pass(kTimeout);
    ASSERT_EQ(marks_.size(), 1U);
    controller_->resign();
    roll_call_->end();
    reign();
    ASSERT_TRUE(good(ask_to_join(8, registration)));
    end_mark();
    turn();
    EXPECT_TRUE(lives());
    EXPECT_TRUE(good(report(8, registration.life)));
    pass(kTimeout);
    EXPECT_EQ(marks_.size(), 1U) << "this reign makes its own";
}

TEST_F(RollCallTest, NewReignGivesEverybodyTheTimeoutToShowUp) {
    add_bystander();
    auto registration = join(7);
    controller_->resign();
    roll_call_->end();
    EXPECT_TRUE(refused(report(7, registration.life), ErrorCode::kNotController));
    reign();
    EXPECT_TRUE(refused(report(7, registration.life), ErrorCode::kStaleBroker))
        << "it has to introduce itself";
    turn();
    ASSERT_EQ(probes_.size(), 1U);
    EXPECT_EQ(probes_[0].broker, kOther);
    probes_[0].answer(false);
    pass(kGrace - 1ms);
    EXPECT_EQ(probes_.size(), 1U);
    pass(kTimeout - kGrace);
    EXPECT_TRUE(marks_.empty());
    EXPECT_EQ(probes_.size(), 2U) << "one at a time, a grace apart";
    pass(1ms);
    EXPECT_EQ(marks_.size(), 1U);
}

TEST_F(RollCallTest, UnseenBrokerThatDiesLaterIsMissedByTheNextProbe) {
    join(7);
    controller_->resign();
    roll_call_->end();
    reign();
    turn();
    ASSERT_EQ(probes_.size(), 1U);
    probes_[0].answer(false);
    pass(kGrace);
    ASSERT_EQ(probes_.size(), 2U);
    probes_[1].answer(true);
    pass(kGrace);
    EXPECT_EQ(marks_.size(), 1U);
    EXPECT_EQ(probes_.size(), 2U) << "it is known";
}

TEST_F(RollCallTest, NobodyListensWhereAnUnseenBrokerWas) {
    join(7);
    controller_->resign();
    roll_call_->end();
    reign();
    turn();
    ASSERT_EQ(probes_.size(), 1U);
    probes_[0].answer(true);
    pass(kGrace - 1ms);
    EXPECT_TRUE(marks_.empty());
    pass(1ms);
    EXPECT_EQ(marks_.size(), 1U);
}

TEST_F(RollCallTest, AProbeSaysNothingOfWhoHasShownUpMeanwhile) {
    auto registration = join(7);
    controller_->resign();
    roll_call_->end();
    reign();
    turn();
    ASSERT_EQ(probes_.size(), 1U);
    ASSERT_TRUE(good(ask_to_join(8, registration)));
    probes_[0].answer(true);
    pass(kGrace);
    EXPECT_TRUE(marks_.empty());
}

TEST_F(RollCallTest, ControllerThatIsMissedHasTheGrace) {
    join(7);
    controller_->resign();
    roll_call_->end();
    reign({kOther});
    pass(kGrace - 1ms);
    EXPECT_TRUE(marks_.empty());
    pass(1ms);
    EXPECT_EQ(marks_.size(), 1U);
}

TEST_F(RollCallTest, NewsAreThePushesSinceInOrder) {
    auto registration = join(7);
    const auto before = image();
    auto heard = watch(8, registration.life, before->version());
    EXPECT_FALSE(*heard);
    create("first");
    ASSERT_TRUE(*heard && **heard);
    create("second");
    auto later = watch(8, registration.life, before->version());
    ASSERT_TRUE(*later && **later);
    auto pushes = std::get<std::vector<PushedLinesPtr>>(***later);
    ASSERT_EQ(pushes.size(), 2U);
    auto mine = before;
    for (const auto& push : pushes) {
        auto next = apply_lines(*mine, *push);
        ASSERT_TRUE(next) << next.error().context;
        mine = *next;
    }
    EXPECT_EQ(mine->version(), image()->version());
    EXPECT_EQ(mine->topic("second")->id, image()->topic("second")->id);
    auto nothing = watch(8, registration.life, image()->version());
    EXPECT_FALSE(*nothing);
}

TEST_F(RollCallTest, WhoIsTooFarBehindGetsAPicture) {
    create("early");
    auto registration = join(7);
    for (const auto& have :
         {catalog::ImageVersion{}, catalog::ImageVersion{base::ControllerEpoch(9), 1},
          catalog::ImageVersion{image()->version().epoch, image()->version().changes + 100}}) {
        create("topic" + std::to_string(have.changes) + std::to_string(have.epoch.value()));
        auto heard = watch(8, registration.life, have);
        EXPECT_FALSE(*heard) << "pictures are made on the control thread";
        turn();
        ASSERT_TRUE(*heard && **heard);
        auto text = std::get<std::shared_ptr<const std::string>>(***heard);
        auto picture = parse_picture_text(*text);
        ASSERT_TRUE(picture) << picture.error().context;
        EXPECT_EQ((*picture)->version(), image()->version());
        EXPECT_EQ((*picture)->topic("early")->id, image()->topic("early")->id);
    }
}

TEST_F(RollCallTest, APictureIsOfTheImageThatStandsWhenItIsAskedFor) {
    auto registration = join(7);
    auto heard = watch(8, registration.life, {});
    turn();
    ASSERT_TRUE(*heard);
    create("later");
    heard = watch(8, registration.life, {});
    turn();
    ASSERT_TRUE(*heard && **heard);
    auto picture = parse_picture_text(*std::get<std::shared_ptr<const std::string>>(***heard));
    ASSERT_TRUE(picture);
    EXPECT_NE((*picture)->topic("later"), nullptr);
}

TEST_F(RollCallTest, EndAnswersAllWhoWait) {
    auto registration = join(7);
    roll_call_->disconnected(7);
    auto waiting = ask_to_join(8, life(broker_of({2})));
    auto third = life(broker_of({3}));
    auto third_outcome = ask_to_join(9, third);
    controller_->step();
    ASSERT_TRUE(good(third_outcome));
    auto heard = watch(10, third.life, image()->version());
    ASSERT_FALSE(*waiting);
    ASSERT_FALSE(*heard);
    controller_->resign();
    roll_call_->end();
    EXPECT_TRUE(refused(waiting, ErrorCode::kNotController));
    ASSERT_TRUE(*heard && !**heard);
    EXPECT_EQ((**heard).error().code, ErrorCode::kNotController);
    EXPECT_TRUE(refused(ask_to_join(11, life(broker_of({4}))), ErrorCode::kNotController));
    end_mark();
    EXPECT_TRUE(marks_.empty());
}

TEST_F(RollCallTest, AClosedConnectionIsToldNothing) {
    auto registration = join(7);
    auto heard = watch(8, registration.life, image()->version());
    roll_call_->disconnected(8);
    create("topic");
    EXPECT_FALSE(*heard);
    EXPECT_TRUE(good(report(7, registration.life))) << "its reports go on";
}

// Another controller could do it at once; this one would keep its partitions from everybody.
TEST_F(RollCallTest, VolumeOnWhichMarksFailIsOutOfReachIfOthersUseIt) {
    join(7, {2, {"a", "b"}});
    join(8, {3, {"b"}});
    roll_call_->disconnected(7);
    pass(kGrace);
    ASSERT_EQ(marks_.size(), 2U);
    end_mark(not_proven());  // on a, where nobody else is
    EXPECT_TRUE(roll_call_->out_of_reach().empty());
    end_mark(not_proven());
    EXPECT_EQ(roll_call_->out_of_reach(), std::vector<std::string>{"b"});
    pass(kRetry);
    ASSERT_EQ(marks_.size(), 2U);
    end_mark();
    end_mark();
    EXPECT_TRUE(roll_call_->out_of_reach().empty()) << "proven after all";
}

TEST_F(RollCallTest, MarkThatHangsIsOutOfReachAfterTheSessionTimeout) {
    join(7, {2, {"b"}});
    const auto other = join(8, {3, {"b"}});
    roll_call_->disconnected(7);
    pass(kGrace);
    ASSERT_EQ(marks_.size(), 1U);
    clock_.advance(kTimeout - 1ms);
    report(8, other.life);
    EXPECT_TRUE(roll_call_->out_of_reach().empty());
    clock_.advance(1ms);
    EXPECT_EQ(roll_call_->out_of_reach(), std::vector<std::string>{"b"});
    roll_call_->disconnected(8);
    EXPECT_TRUE(roll_call_->out_of_reach().empty()) << "nobody is there to do better";
}

TEST_F(RollCallTest, SightsSayWhoIsThereAndWhoIsSilent) {
    join(7);
    clock_.advance(100ms);
    roll_call_->disconnected(7);
    for (const auto& sight : roll_call_->sights()) {
        EXPECT_EQ(sight.connected, sight.broker == kSelf);
        if (sight.broker == kOther) {
            EXPECT_EQ(sight.silent, 100ms);
        }
    }
    EXPECT_EQ(roll_call_->sights().size(), 2U);
}

}  // namespace
}  // namespace kaas::cluster
