// Goal: what only the controller decides is decided once, whichever broker was asked and whoever
// reigns meanwhile. Method: the calls of a broker that does not reign, to one that does over a real
// internal listener, on a volume that fails when the test wants it.
#include "broker/controller_calls.h"

#include "base/bytes.h"
#include "base/ids.h"
#include "base/uuid.h"
#include "broker/internal_listener_fixture.h"
#include "catalog/image.h"
#include "cluster/admin.h"
#include "cluster/controller.h"
#include "cluster/controller_address.h"
#include "cluster/error.h"
#include "cluster/link_messages.h"
#include "storage/error.h"
#include "storage/memory_volume.h"
#include "wire/error_code.h"
#include "wire/message.h"
#include "wire/messages/create_topics.h"
#include "wire/messages/default_principal_data.h"
#include "wire/messages/envelope.h"
#include "wire/messages/response_header.h"
#include "wire/reader.h"
#include "wire/types.h"
#include "wire/writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using storage::MemoryVolume;
using wire::ErrorCode;

constexpr std::int16_t kCreateVersion = 7;

class ControllerCallsTest : public InternalListenerTest {
protected:
    using Created = cluster::Result<std::vector<cluster::CreatedTopic>>;

    ControllerCallsTest() : away_({.config = {}, .push = [](const cluster::Push&) {}}) {
        connect_as("__broker", "secret");
    }

    [[nodiscard]] ControllerCalls calls(int unknown_for = 0) {
        return ControllerCalls(
            {.controller = &away_,
             .link = &listener_.reactor(),
             .address = [this, unknown_for,
                         asked = 0]() mutable -> std::optional<cluster::ControllerAddress> {
                 if (asked++ < unknown_for) return std::nullopt;
                 return cluster::ControllerAddress{base::ControllerEpoch(1), base::BrokerId(1),
                                                   "127.0.0.1", endpoint_.port, "c"};
             },
             .peers = peers_.get(),
             .self = base::BrokerId(2)});
    }
    Created create(ControllerCalls& by, const std::string& name) {
        std::promise<Created> promise;
        cluster::CreateTopics request;
        request.topics = {{.name = name, .partitions = 2}};
        by.create_topics(std::move(request),
                         {&pool_, [&](Created created) { promise.set_value(std::move(created)); }});
        return promise.get_future().get();
    }
    cluster::ProducerIdBlock block(ControllerCalls& by) {
        std::promise<cluster::Result<cluster::ProducerIdBlock>> promise;
        by.allocate_producer_ids(1000, {&pool_, [&](auto block) { promise.set_value(block); }});
        return promise.get_future().get().value();
    }

    struct Answer {
        ErrorCode envelope = ErrorCode::kNone;
        ErrorCode topic = ErrorCode::kNone;
        base::Uuid id;
        std::int32_t partitions = 0;
    };
    /// CreateTopics of one topic, as another broker sends it on.
    Answer create_by_envelope(const std::string& name, const base::Uuid& request, bool again) {
        wire::CreateTopicsRequest create;
        create.topics.emplace_back();
        create.topics[0].name = wire::String(name);
        create.topics[0].num_partitions = 2;
        create.topics[0].replication_factor = 1;
        auto frame = wire::encode_request(create, kCreateVersion, 7, std::nullopt);
        EXPECT_TRUE(frame);
        wire::DefaultPrincipalData principal;
        principal.type = wire::String("User");
        principal.name = wire::String("alice");
        wire::Writer out;
        out.int16(0);
        EXPECT_TRUE(wire::encode(out, principal, 0));
        std::vector<std::byte> tag(request.bytes.size() + 1);
        std::ranges::transform(request.bytes, tag.begin(),
                               [](std::uint8_t byte) { return std::byte{byte}; });
        tag.back() = static_cast<std::byte>(again);
        wire::EnvelopeRequest envelope;
        envelope.request_data = wire::Bytes(frame->bytes().subspan(4));
        envelope.request_principal = wire::Bytes(out.view());
        envelope.client_host_address = wire::Bytes(base::as_bytes(std::string("127.0.0.1")));
        envelope.unknown_tags.add(cluster::kLinkTag, wire::Bytes(base::ByteView(tag)));
        return call(envelope, 0, [](auto answer) {
            EXPECT_TRUE(answer);
            Answer seen;
            seen.envelope = (*answer)->error_code;
            if (!(*answer)->response_data) return seen;
            wire::Reader in((*answer)->response_data->view());
            wire::ResponseHeader().decode(in, 1);
            const auto response = wire::decode<wire::CreateTopicsResponse>(in, kCreateVersion);
            EXPECT_TRUE(response);
            seen.topic = response->topics[0].error_code;
            seen.id = response->topics[0].topic_id;
            seen.partitions = response->topics[0].num_partitions;
            return seen;
        });
    }
    /// The controller loses its office with the next write of its log, and gets it again.
    void lose_office() {
        // Not `this`: the node stops when the test is a mere fixture already.
        volume_.set_hook(
            [lost = lost_](const MemoryVolume::Step& step) -> std::optional<storage::Fault> {
                const bool is_log = step.path.find("__cluster/control") != std::string::npos;
                if (step.operation != storage::Operation::kSync || !is_log) return std::nullopt;
                if (lost->exchange(true)) return std::nullopt;
                return storage::Fault{};
            });
    }
    [[nodiscard]] catalog::ImagePtr image() const { return node_->partitions().image(); }

    cluster::Controller away_;
    const std::shared_ptr<std::atomic<bool>> lost_ = std::make_shared<std::atomic<bool>>(false);
};

TEST_F(ControllerCallsTest, TopicsAreMadeByWhoReigns) {
    auto by = calls();
    const auto created = create(by, "orders");
    ASSERT_TRUE(created && created->front().outcome);
    ASSERT_NE(image()->topic("orders"), nullptr);
    EXPECT_EQ(image()->topic("orders")->id, created->front().id);
    EXPECT_EQ(image()->topic("orders")->partitions.size(), 2U);
    const auto twice = create(by, "orders");
    ASSERT_TRUE(twice && !twice->front().outcome);
    EXPECT_EQ(twice->front().outcome.error().code, cluster::ErrorCode::kTopicAlreadyExists);
}

TEST_F(ControllerCallsTest, ProducerIdsAreGivenOnce) {
    auto by = calls();
    const auto first = block(by);
    const auto second = block(by);
    EXPECT_GE(second.first.value(), first.first.value() + first.count);
}

TEST_F(ControllerCallsTest, AsksUntilSomebodyReigns) {
    auto by = calls(3);
    EXPECT_TRUE(create(by, "orders"));
}

TEST_F(ControllerCallsTest, SecondAttemptGetsTheAnswerOfTheFirst) {
    const auto request = base::Uuid::random();
    const auto first = create_by_envelope("orders", request, false);
    EXPECT_EQ(first.topic, ErrorCode::kNone);
    const auto again = create_by_envelope("orders", request, true);
    EXPECT_EQ(again.topic, ErrorCode::kNone);
    EXPECT_EQ(again.id, first.id);
    EXPECT_EQ(again.partitions, 2);
    EXPECT_EQ(create_by_envelope("orders", base::Uuid::random(), true).topic,
              ErrorCode::kTopicAlreadyExists);
}

TEST_F(ControllerCallsTest, OfficeThatIsLostMeanwhileIsTheEnvelopesError) {
    lose_office();
    const auto answer = create_by_envelope("orders", base::Uuid::random(), false);
    EXPECT_TRUE(*lost_);
    EXPECT_EQ(answer.envelope, ErrorCode::kNotController);
}

TEST_F(ControllerCallsTest, RequestOutlivesTheOfficeOfWhoHadIt) {
    auto by = calls();
    lose_office();
    const auto created = create(by, "orders");
    EXPECT_TRUE(*lost_);
    ASSERT_TRUE(created) << created.error().context;
    EXPECT_TRUE(created->front().outcome);
    EXPECT_EQ(image()->topic("orders")->id, created->front().id);
}

}  // namespace
}  // namespace kaas::broker
