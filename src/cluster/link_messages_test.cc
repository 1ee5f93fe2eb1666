// Goal: what brokers and the controller say to each other arrives as it was said, and what does not
// is refused whole. Method: each message there and back; texts that lack or twist a part.

#include "cluster/link_messages.h"

#include "base/ids.h"
#include "base/uuid.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/error.h"
#include "cluster/link_wire.h"
#include "cluster/testing_members.h"
#include "wire/message.h"
#include "wire/messages/broker_heartbeat.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::cluster {
namespace {

base::Uuid uuid(char last) { return *base::Uuid::parse(std::string(20, 'A') + last + "A"); }
base::TopicPartition partition(int index) {
    return {base::TopicId{uuid('t')}, base::PartitionId(index)};
}
const BrokerLife kLife{base::BrokerId(3), uuid('p')};

TEST(LinkMessages, RegistrationArrivesAsItWasSaid) {
    Registration said{.life = kLife, .cluster_id = "the cluster", .broker = broker_of({3})};
    said.broker.sessions = {{"a", {uuid('a')}}, {"b", {uuid('b')}}};
    said.broker.volumes["a"] = {.path = "/data/a", .labels = {{"disk", "fast"}}};
    said.broker.endpoints = {{"PLAINTEXT", "PLAINTEXT", "host", 9092}};
    said.broker.rack = "r1";
    said.broker.draining = true;
    auto heard = parse_registration(to_text(said));
    ASSERT_TRUE(heard) << heard.error().context;
    EXPECT_EQ(heard->life, said.life);
    EXPECT_EQ(heard->cluster_id, "the cluster");
    EXPECT_TRUE(catalog::same_registration(heard->broker, said.broker));
}

TEST(LinkMessages, ProofsArriveAsTheyWereSaid) {
    Registration said{.life = kLife, .cluster_id = "c", .broker = broker_of({3})};
    EXPECT_FALSE(parse_registration(to_text(said))->proof);
    said.proof =
        VolumeProof{.tickets = {{"a", {uuid('a'), uuid('x')}}, {"b", {uuid('b'), uuid('y')}}}};
    auto heard = parse_registration(to_text(said));
    ASSERT_TRUE(heard && heard->proof);
    EXPECT_EQ(heard->proof->tickets, said.proof->tickets);
    EXPECT_FALSE(heard->proof->witnessed);
    said.proof->witnessed = true;
    EXPECT_TRUE(parse_registration(to_text(said))->proof->witnessed);
    EXPECT_EQ(parse_tickets(to_text(said.proof->tickets)), said.proof->tickets);
    for (const auto* wrong : {"", "{}", "7", "[7]", R"([{"volume":"a","probe":"p"}])"}) {
        const auto refused = parse_tickets(wrong);
        ASSERT_FALSE(refused) << wrong;
        EXPECT_EQ(refused.error().code, ErrorCode::kMalformed);
    }
}

TEST(LinkMessages, ReportArrivesAsItWasSaid) {
    Report said;
    said.applied = {{{base::ControllerEpoch(2), 5}, false}, {{base::ControllerEpoch(2), 9}, true}};
    said.released = {{partition(0), base::LeaderEpoch(4)}};
    said.opened = {{partition(1), base::LeaderEpoch(6), base::LeaderEpoch(5)}};
    said.moved = {{partition(2), base::LeaderEpoch(7), "b"}};
    said.reclaimed = {base::TopicId{uuid('x')}};
    said.unwell = {"main", "more"};
    said.intent = Report::Intent::kDrain;
    auto heard = parse_heartbeat(to_text(Heartbeat{kLife, said}));
    ASSERT_TRUE(heard) << heard.error().context;
    EXPECT_EQ(heard->life, kLife);
    const auto& report = std::get<Report>(heard->body);
    EXPECT_EQ(report.applied, said.applied);
    EXPECT_EQ(report.released, said.released);
    EXPECT_EQ(report.opened, said.opened);
    ASSERT_EQ(report.moved.size(), 1U);
    EXPECT_EQ(report.moved[0].partition, partition(2));
    EXPECT_EQ(report.moved[0].epoch, base::LeaderEpoch(7));
    EXPECT_EQ(report.moved[0].volume, "b");
    EXPECT_EQ(report.reclaimed, said.reclaimed);
    EXPECT_EQ(report.unwell, said.unwell);
    EXPECT_EQ(report.intent, Report::Intent::kDrain);
}

TEST(LinkMessages, EachIntentArrives) {
    for (const auto intent :
         {Report::Intent::kStay, Report::Intent::kDrain, Report::Intent::kLeave}) {
        Report said;
        said.intent = intent;
        auto heard = parse_heartbeat(to_text(Heartbeat{kLife, said}));
        ASSERT_TRUE(heard);
        EXPECT_EQ(std::get<Report>(heard->body).intent, intent);
        EXPECT_TRUE(std::get<Report>(heard->body).empty());
    }
}

TEST(LinkMessages, WaitForNewsIsNoReport) {
    const catalog::ImageVersion have{base::ControllerEpoch(3), 17};
    auto heard = parse_heartbeat(to_text(Heartbeat{kLife, have}));
    ASSERT_TRUE(heard);
    EXPECT_EQ(std::get<catalog::ImageVersion>(heard->body), have);
}

TEST(LinkMessages, WhatWasNotHeardIsSaidAgainBeforeTheRest) {
    Report first;
    first.applied = {{{base::ControllerEpoch(1), 1}}};
    first.released = {{partition(0), base::LeaderEpoch(1)}};
    first.intent = Report::Intent::kDrain;
    Report second;
    second.applied = {{{base::ControllerEpoch(1), 2}}};
    second.released = {{partition(0), base::LeaderEpoch(1)}, {partition(1), base::LeaderEpoch(2)}};
    second.add(std::move(first));
    ASSERT_EQ(second.applied.size(), 2U);
    EXPECT_EQ(second.applied[0].version.changes, 1U);
    EXPECT_EQ(second.released.size(), 2U) << "once each";
    EXPECT_EQ(second.intent, Report::Intent::kDrain) << "who drains does not come to stay again";
}

TEST(LinkMessages, MalformedHeartbeatsAreRefused) {
    const std::string who = R"("broker_id":3,"process":"AAAAAAAAAAAAAAAAAAAAAA")";
    ASSERT_TRUE(parse_heartbeat("{" + who + R"(,"report":{}})"));
    for (const auto& text : std::vector<std::string>{
             "",
             "{",
             "[]",
             "{}",
             "{" + who + "}",
             R"({"broker_id":3,"report":{}})",
             R"({"broker_id":"3","process":"AAAAAAAAAAAAAAAAAAAAAA","report":{}})",
             R"({"broker_id":3,"process":"short","report":{}})",
             R"({"broker_id":3000000000,"process":"AAAAAAAAAAAAAAAAAAAAAA","report":{}})",
             "{" + who + R"(,"report":[]})",
             "{" + who + R"(,"report":{"intent":"stay a while"}})",
             "{" + who + R"(,"report":{"intent":1}})",
             "{" + who + R"(,"report":{"applied":[{"epoch":1}]}})",
             "{" + who + R"(,"report":{"applied":[1]}})",
             "{" + who + R"(,"report":{"released":{}}})",
             "{" + who + R"(,"report":{"released":{"change":"broker-gone","broker":1}}})",
             "{" + who + R"(,"report":{"moved":[{"partition":1}]}})",
             "{" + who + R"(,"report":{"reclaimed":[1]}})",
             "{" + who + R"(,"report":{"unwell":[1]}})",
             "{" + who + R"(,"newer_than":{"epoch":1}})",
             "{" + who + R"(,"newer_than":7})",
         }) {
        auto heard = parse_heartbeat(text);
        ASSERT_FALSE(heard) << text;
        EXPECT_EQ(heard.error().code, ErrorCode::kMalformed) << text;
    }
}

TEST(LinkMessages, MalformedRegistrationsAreRefused) {
    Registration said{.life = kLife, .cluster_id = "c", .broker = broker_of({4})};
    auto heard = parse_registration(to_text(said));
    ASSERT_FALSE(heard) << "one broker speaks for another";
    EXPECT_EQ(heard.error().code, ErrorCode::kMalformed);
    said.broker = broker_of({3});
    const auto text = to_text(said);
    for (std::size_t size = 0; size < text.size(); ++size) {
        ASSERT_FALSE(parse_registration(std::string_view(text).substr(0, size))) << size;
    }
    ASSERT_TRUE(parse_registration(text));
    EXPECT_FALSE(parse_registration("{}"));
    EXPECT_FALSE(parse_registration("7"));
}

PushedLines push_of(const catalog::Image& base, const catalog::Change& change) {
    catalog::ImageEditor editor(base);
    EXPECT_TRUE(editor.apply(change));
    return {editor.image().version(), {boost::json::serialize(catalog::to_json(change))}};
}

TEST(LinkMessages, PushesArriveInOrderAndLeadToTheSameImage) {
    const auto base = cluster({{1}, {2}});
    const auto first = push_of(*base, catalog::BrokerDraining{base::BrokerId(1)});
    const auto between = *apply_lines(*base, first);
    const auto second = push_of(*between, catalog::BrokerGone{base::BrokerId(2)});
    const News said = std::vector<PushedLinesPtr>{std::make_shared<PushedLines>(first),
                                                  std::make_shared<PushedLines>(second)};
    auto heard = parse_news(to_text(said));
    ASSERT_TRUE(heard) << heard.error().context;
    const auto& pushes = std::get<std::vector<PushedLinesPtr>>(*heard);
    ASSERT_EQ(pushes.size(), 2U);
    EXPECT_EQ(pushes[0]->version, first.version);
    EXPECT_EQ(pushes[0]->lines, first.lines);
    EXPECT_EQ(pushes[1]->version, second.version);
    auto mine = apply_lines(*base, *pushes[0]);
    ASSERT_TRUE(mine) << mine.error().context;
    mine = apply_lines(**mine, *pushes[1]);
    ASSERT_TRUE(mine) << mine.error().context;
    EXPECT_TRUE((*mine)->broker(base::BrokerId(1))->draining);
    EXPECT_EQ((*mine)->version(), second.version);
}

TEST(LinkMessages, LinesThatDoNotFitAreRefused) {
    const auto base = cluster({{1}, {2}});
    auto push = push_of(*base, catalog::BrokerDraining{base::BrokerId(1)});
    const auto after = *apply_lines(*base, push);
    EXPECT_FALSE(apply_lines(*after, push)) << "once more, they lead to another version";
    push.version.changes += 1;
    EXPECT_FALSE(apply_lines(*base, push)) << "one is missing";
    EXPECT_FALSE(apply_lines(*base, {after->version(), {"[]"}}));
    EXPECT_FALSE(apply_lines(*base, {after->version(), {"{\"change\":\"nonsense\"}"}}));
}

TEST(LinkMessages, PictureArrivesAsItWasSaid) {
    const auto base = cluster({{1}, {2}});
    const News said =
        std::make_shared<const std::string>(boost::json::serialize(catalog::to_picture(*base)));
    auto heard = parse_news(to_text(said));
    ASSERT_TRUE(heard);
    auto picture = parse_picture_text(*std::get<std::shared_ptr<const std::string>>(*heard));
    ASSERT_TRUE(picture) << picture.error().context;
    EXPECT_EQ((*picture)->version(), base->version());
    EXPECT_EQ((*picture)->brokers().size(), 2U);
    EXPECT_FALSE(parse_picture_text("[]"));
    EXPECT_FALSE(parse_picture_text(""));
}

TEST(LinkMessages, MalformedNewsAreRefused) {
    ASSERT_TRUE(parse_news("push 1 2\n{}\n"));
    for (const auto* text : {"push 1 2", "push 1\n", "push 1 \n", "push 1 2 \n", "push x 2\n",
                             "push 1 -2\n", "push 99999999999 2\n", "{}\n", "push 1 2\n{}"}) {
        EXPECT_FALSE(parse_news(text)) << text;
    }
}

TEST(LinkMessages, TextTravelsBesideWhatApacheHas) {
    wire::BrokerHeartbeatRequest request;
    request.broker_id = 3;
    const std::string text = "some text";
    set_link_text(request, text);
    wire::Writer out;
    ASSERT_TRUE(wire::encode(out, request, 1));
    wire::Reader in(out.view());
    auto heard = wire::decode<wire::BrokerHeartbeatRequest>(in, 1);
    ASSERT_TRUE(heard);
    EXPECT_EQ(heard->broker_id, 3);
    EXPECT_EQ(link_text(*heard), "some text");
    EXPECT_EQ(link_text(wire::BrokerHeartbeatRequest{}), "");
}

}  // namespace
}  // namespace kaas::cluster
