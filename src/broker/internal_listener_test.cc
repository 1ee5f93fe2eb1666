// Goal: only brokers are served on the internal listener, and what is theirs alone. Method: a real
// listener with the broker's own dispatcher over a node on a volume in memory; the peer is the
// channel that brokers use, or a blocking client where odd requests are needed.
#include "broker/internal_listener.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/thread_pool.h"
#include "broker/config/broker_config.h"
#include "broker/controller_calls.h"
#include "broker/coordination/coordination.h"
#include "broker/dispatcher.h"
#include "broker/fetch_sessions.h"
#include "broker/handlers/registry.h"
#include "broker/producer_ids.h"
#include "broker/services.h"
#include "broker/topic_metrics.h"
#include "catalog/broker_identity.h"
#include "client/channel.h"
#include "cluster/node.h"
#include "net/reactor.h"
#include "net/server.h"
#include "net/test_client.h"
#include "storage/log_config.h"
#include "storage/memory_volume.h"
#include "wire/error_code.h"
#include "wire/message.h"
#include "wire/messages/add_partitions_to_txn.h"
#include "wire/messages/api_versions.h"
#include "wire/messages/response_header.h"
#include "wire/messages/sasl_authenticate.h"
#include "wire/messages/sasl_handshake.h"
#include "wire/messages/write_txn_markers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

using namespace std::chrono_literals;
using client::Channel;
using testing::ElementsAre;
using wire::ErrorCode;

class InternalListenerTest : public testing::Test {
public:
    ~InternalListenerTest() override {
        listener_.reactor().run_and_wait([&] { channel_.reset(); });
        listener_.stop(0ms);
        node_->stop(0ms);
        coordination_->stop();
        pool_.stop();
    }

protected:
    InternalListenerTest() {
        auto endpoint = listener_.listen({.bind = {"127.0.0.1", 0}, .advertised = {"here", 0}});
        EXPECT_TRUE(endpoint) << endpoint.error().context;
        endpoint_ = *endpoint;
        start_services();
        listener_.trust("secret");
        listener_.start();
    }
    void start_services() {
        cluster::NodeOptions options;
        options.volumes = {{"main", &volume_}};
        options.endpoints = {endpoint_};
        options.log_config = [](const catalog::ConfigMap&) { return storage::LogConfig{}; };
        options.io_pool = &pool_;
        node_ = std::move(*cluster::Node::start(std::move(options)));
        config_ = load_config({})->config;
        coordination_.emplace(Coordination::Options{
            .self = base::BrokerId(1), .metrics = &metrics_, .groups = {}, .transactions = {}});
        fetch_sessions_.emplace(10U, base::Clock::system(), metrics_);
        controller_calls_.emplace(
            ControllerCalls::Options{.controller = &node_->controller(), .self = node_->id()});
        producer_ids_.emplace(*controller_calls_);
        slot_topics_.emplace(*controller_calls_, base::Clock::system());
        services_.emplace(Services{.config = *config_,
                                   .node = *node_,
                                   .io_pool = pool_,
                                   .metrics = metrics_,
                                   .clock = base::Clock::system(),
                                   .fetch_sessions = *fetch_sessions_,
                                   .controller_calls = *controller_calls_,
                                   .producer_ids = *producer_ids_,
                                   .coordination = *coordination_,
                                   .slot_topics = *slot_topics_,
                                   .transaction_peers = nullptr,
                                   .refusals = Refusals(metrics_),
                                   .broker_credential = &listener_.credential()});
        services_->states.emplace(
            &listener_.reactor(),
            std::make_unique<ReactorState>(ReactorState{
                node_->partitions().reader(), {}, TopicMetrics::Reader(topic_metrics_)}));
        for (const auto& handler : handlers(Audience::kBrokers)) {
            services_->latencies.at(static_cast<std::size_t>(handler.key)) =
                &metrics_.histogram("latency", "");
        }
        dispatcher_.begin(*services_);
    }

    void connect_as(const std::string& user, const std::string& password) {
        listener_.reactor().run_and_wait([&] {
            channel_ = std::make_unique<Channel>(
                Channel::Options{.reactor = &listener_.reactor(),
                                 .resolver = &pool_,
                                 .host = "127.0.0.1",
                                 .port = endpoint_.port,
                                 .credentials = Channel::Credentials{user, password}});
        });
    }
    /// What `see` makes of the answer, or of the error.
    template <class Request, class See>
    auto call(const Request& request, std::int16_t version, See see) {
        using Answer = client::Result<const typename Request::Response*>;
        std::promise<decltype(see(std::declval<Answer>()))> seen;
        listener_.reactor().run_and_wait([&] {
            channel_->call(request, version, 20s,
                           [&](Answer answer) { seen.set_value(see(std::move(answer))); });
        });
        return seen.get_future().get();
    }

    static void send(net::TestClient& peer, const wire::Result<wire::Output>& request) {
        ASSERT_TRUE(request);
        peer.send(base::as_text(request->bytes()));
    }
    template <class Request>
    static void ask(net::TestClient& peer, const Request& request, std::int16_t version) {
        send(peer, wire::encode_request(request, version, 1, std::nullopt));
    }
    /// The next answer; it borrows from `frame`.
    template <class Response>
    static std::optional<Response> answer(net::TestClient& peer, std::int16_t version,
                                          std::string& frame) {
        auto received = peer.receive_frame();
        if (!received) return std::nullopt;
        frame = std::move(*received);
        wire::Reader in(base::as_bytes(frame));
        wire::ResponseHeader().decode(in, wire::api(Response::kKey).response_header(version));
        auto response = wire::decode<Response>(in, version);
        EXPECT_TRUE(response);
        return response ? std::optional(std::move(*response)) : std::nullopt;
    }
    [[nodiscard]] net::TestClient stranger() const { return {"127.0.0.1", endpoint_.port}; }

    storage::MemoryVolume volume_;
    base::metrics::Registry metrics_;
    TopicMetrics topic_metrics_{metrics_};
    base::ThreadPool pool_{"io", 1};
    Dispatcher dispatcher_;
    InternalListener listener_{net::ServerOptions{.request_memory_bytes = 64 << 20}, dispatcher_,
                               pool_, metrics_};
    catalog::Endpoint endpoint_;
    std::optional<BrokerConfig> config_;
    std::unique_ptr<cluster::Node> node_;
    std::optional<Coordination> coordination_;
    std::optional<FetchSessions> fetch_sessions_;
    std::optional<ControllerCalls> controller_calls_;
    std::optional<ProducerIds> producer_ids_;
    std::optional<SlotTopics> slot_topics_;
    std::optional<Services> services_;
    std::unique_ptr<Channel> channel_;
};

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
