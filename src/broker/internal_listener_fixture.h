#pragma once

#include "base/bytes.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/metrics.h"
#include "base/thread_pool.h"
#include "broker/config/broker_config.h"
#include "broker/controller_calls.h"
#include "broker/coordination/coordination.h"
#include "broker/dispatcher.h"
#include "broker/fetch_sessions.h"
#include "broker/handlers/registry.h"
#include "broker/internal_listener.h"
#include "broker/producer_ids.h"
#include "broker/services.h"
#include "broker/topic_metrics.h"
#include "catalog/broker_identity.h"
#include "client/channel.h"
#include "client/error.h"
#include "client/peers.h"
#include "cluster/node.h"
#include "net/reactor.h"
#include "net/server.h"
#include "net/test_client.h"
#include "storage/log_config.h"
#include "storage/memory_volume.h"
#include "wire/api.h"
#include "wire/message.h"
#include "wire/messages/response_header.h"
#include "wire/reader.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>

/// For tests: a broker with its internal listener, on a volume in memory.
namespace kaas::broker {

class InternalListenerTest : public testing::Test {
public:
    ~InternalListenerTest() override {
        listener_.reactor().run_and_wait([&] {
            channel_.reset();
            peers_.reset();
        });
        listener_.stop(std::chrono::milliseconds(0));
        node_->stop(std::chrono::milliseconds(0));
        coordination_->stop();
        pool_.stop();
    }

protected:
    InternalListenerTest() {
        auto endpoint = listener_.listen({.bind = {"127.0.0.1", 0}, .advertised = {"here", 0}});
        EXPECT_TRUE(endpoint) << endpoint.error().context;
        endpoint_ = *endpoint;
        peers_ = std::make_unique<client::Peers>(as_broker());
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
        controller_calls_.emplace(ControllerCalls::Options{.controller = &node_->controller(),
                                                           .link = &listener_.reactor(),
                                                           .address = [] { return std::nullopt; },
                                                           .peers = peers_.get(),
                                                           .self = node_->id()});
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
        for (const auto audience : {Audience::kBrokers, Audience::kClients}) {
            for (const auto& handler : handlers(audience)) {
                services_->latencies.at(static_cast<std::size_t>(handler.key)) =
                    &metrics_.histogram("latency", "");
            }
        }
        dispatcher_.begin(*services_);
    }

    client::Channel::Options as_broker() {
        return {.reactor = &listener_.reactor(),
                .resolver = &pool_,
                .credentials =
                    client::Channel::Credentials{std::string(catalog::kBrokerUser), "secret"}};
    }
    void connect_as(const std::string& user, const std::string& password) {
        listener_.reactor().run_and_wait([&] {
            channel_ = std::make_unique<client::Channel>(client::Channel::Options{
                .reactor = &listener_.reactor(),
                .resolver = &pool_,
                .host = "127.0.0.1",
                .port = endpoint_.port,
                .credentials = client::Channel::Credentials{user, password}});
        });
    }
    /// What `see` makes of the answer, or of the error.
    template <class Request, class See>
    auto call(const Request& request, std::int16_t version, See see) {
        using Answer = client::Result<const typename Request::Response*>;
        std::promise<decltype(see(std::declval<Answer>()))> seen;
        listener_.reactor().run_and_wait([&] {
            channel_->call(request, version, std::chrono::seconds(20),
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
    std::unique_ptr<client::Peers> peers_;
    std::unique_ptr<client::Channel> channel_;
};

}  // namespace kaas::broker
