// Goal: a broker knows why it lost its controller, nothing that it reports is lost with a
// connection or a controller, and what an earlier controller says does not come late. Method: the
// link against a listener that keeps each request until the test answers it, or closes.

#include "cluster/controller_link.h"

#include "base/clock.h"
#include "base/ids.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "base/thread_pool.h"
#include "base/uuid.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "client/testing_port.h"
#include "cluster/controller_address.h"
#include "cluster/error.h"
#include "cluster/link_messages.h"
#include "cluster/link_wire.h"
#include "cluster/testing_members.h"
#include "cluster/uplink.h"
#include "net/exchange.h"
#include "net/reactor.h"
#include "net/server.h"
#include "wire/api_key.h"
#include "wire/error_code.h"
#include "wire/message.h"
#include "wire/messages/broker_heartbeat.h"
#include "wire/messages/broker_registration.h"
#include "wire/messages/request_header.h"
#include "wire/reader.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kaas::cluster {
namespace {

using namespace std::chrono_literals;
using W = wire::ErrorCode;

constexpr auto kPatience = 20s;

/// What a broker has asked, and is still to be answered.
struct Asked {
    std::unique_ptr<net::Exchange> exchange;
    wire::RequestHeader header;
    std::variant<Registration, Heartbeat> what;

    [[nodiscard]] const Report& report() const {
        return std::get<Report>(std::get<Heartbeat>(what).body);
    }
    [[nodiscard]] catalog::ImageVersion have() const {
        return std::get<catalog::ImageVersion>(std::get<Heartbeat>(what).body);
    }
    void answer(W code = W::kNone, const std::string& text = {}) {
        on_reactor([&] {
            if (std::holds_alternative<Registration>(what)) {
                wire::BrokerRegistrationResponse response;
                response.error_code = code;
                return respond(response);
            }
            wire::BrokerHeartbeatResponse response;
            response.error_code = code;
            if (!text.empty()) set_link_text(response, text);
            respond(response);
        });
    }
    void close() {
        on_reactor([&] { exchange->close("the test wants it"); });
    }

private:
    template <class Response>
    void respond(const Response& response) {
        auto output =
            wire::encode_response(response, header.request_api_version, header.correlation_id);
        exchange->respond({.output = std::move(*output), .slices = {}});
    }
    void on_reactor(const std::function<void()>& work) {
        exchange->reactor().run_and_wait([&] {
            work();
            exchange.reset();
        });
    }
};

class Handler final : public net::RequestHandler {
public:
    void handle(std::unique_ptr<net::Exchange> exchange) override KAAS_EXCLUDES(mutex_) {
        wire::Reader in(exchange->frame().bytes);
        Asked asked;
        asked.header = *wire::decode_request_header(in);
        const auto version = asked.header.request_api_version;
        if (asked.header.request_api_key ==
            static_cast<std::int16_t>(wire::ApiKey::kBrokerRegistration)) {
            asked.what = *parse_registration(
                link_text(*wire::decode<wire::BrokerRegistrationRequest>(in, version)));
        } else {
            asked.what = *parse_heartbeat(
                link_text(*wire::decode<wire::BrokerHeartbeatRequest>(in, version)));
        }
        asked.exchange = std::move(exchange);
        base::MutexLock lock(mutex_);
        waiting_.push_back(std::move(asked));
        changed_.notify_all();
    }
    void disconnected(const net::Peer&) override {}

    /// The next one that `is` says yes to.
    Asked next(const std::function<bool(const Asked&)>& is,
               std::chrono::milliseconds patience = kPatience) KAAS_EXCLUDES(mutex_) {
        base::MutexLock lock(mutex_);
        while (true) {
            for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
                if (!is(*it)) continue;
                auto found = std::move(*it);
                waiting_.erase(it);
                return found;
            }
            if (!changed_.wait_for(mutex_, patience)) {
                ADD_FAILURE() << "nobody has asked";
                return {};
            }
        }
    }
    void close_all() KAAS_EXCLUDES(mutex_) {
        std::vector<Asked> waiting;
        {
            base::MutexLock lock(mutex_);
            waiting.swap(waiting_);
        }
        for (auto& asked : waiting) asked.close();
    }

private:
    base::Mutex mutex_;
    base::CondVar changed_;
    std::vector<Asked> waiting_ KAAS_GUARDED_BY(mutex_);
};

/// A controller, as far as a link can see.
class Peer {
public:
    Peer() {
        server_ =
            std::make_unique<net::Server>(net::ServerOptions{.request_memory_bytes = 64 << 20},
                                          reactors_, handler_, pool_, registry_);
        port_ = server_->listen({.host = "127.0.0.1"}).value_or(0);
        server_->start();
    }
    ~Peer() {
        handler_.close_all();
        server_->stop(0ms);
    }
    [[nodiscard]] ControllerAddress address(int epoch = 1) const {
        return {base::ControllerEpoch(epoch), base::BrokerId(1), "127.0.0.1", port_, "c"};
    }
    Asked registration() {
        return handler_.next(
            [](const Asked& asked) { return std::holds_alternative<Registration>(asked.what); });
    }
    Asked report() {
        return handler_.next([](const Asked& asked) {
            const auto* heartbeat = std::get_if<Heartbeat>(&asked.what);
            return heartbeat != nullptr && std::holds_alternative<Report>(heartbeat->body);
        });
    }
    /// Answers heartbeats until one has something to say.
    Asked report_with(const std::function<bool(const Report&)>& is) {
        while (true) {
            auto asked = report();
            if (asked.exchange == nullptr || is(asked.report())) return asked;
            asked.answer();
        }
    }
    Asked watch() {
        return handler_.next([](const Asked& asked) {
            const auto* heartbeat = std::get_if<Heartbeat>(&asked.what);
            return heartbeat != nullptr &&
                   std::holds_alternative<catalog::ImageVersion>(heartbeat->body);
        });
    }

private:
    net::ReactorPool reactors_{1};
    base::ThreadPool pool_{"io", 1};
    base::metrics::Registry registry_;
    Handler handler_;
    std::uint16_t port_ = 0;
    std::unique_ptr<net::Server> server_;
};

/// What the link said.
struct Said {
    bool registered = false;
    std::optional<News> news{};
    std::optional<std::pair<LinkEnd, Error>> end{};
};

class ControllerLinkTest : public testing::Test {
public:
    ~ControllerLinkTest() override { link_.reset(); }

protected:
    ControllerLinkTest() { make({}); }
    struct Pace {
        std::chrono::milliseconds heartbeat = 5ms;
        std::chrono::milliseconds timeout = kPatience;
    };
    void make(Pace pace) {
        link_ = std::make_unique<ControllerLink>(
            ControllerLink::Options{.reactor = &reactor_,
                                    .channel = {.client_id = "test"},
                                    .heartbeat_interval = pace.heartbeat,
                                    .session_timeout = pace.timeout});
        link_->listen(
            {.on_registered = [this] { say({.registered = true}); },
             .on_news = [this](News news) { say({.news = std::move(news)}); },
             .on_end = [this](LinkEnd how,
                              Error why) { say({.end = std::pair(how, std::move(why))}); }});
    }
    void say(Said said) KAAS_EXCLUDES(mutex_) {
        base::MutexLock lock(mutex_);
        said_.push_back(std::move(said));
        changed_.notify_all();
    }
    Said next() KAAS_EXCLUDES(mutex_) {
        base::MutexLock lock(mutex_);
        while (said_.empty()) {
            if (!changed_.wait_for(mutex_, kPatience)) {
                ADD_FAILURE() << "the link says nothing";
                return {};
            }
        }
        auto first = std::move(said_.front());
        said_.erase(said_.begin());
        return first;
    }
    std::optional<LinkEnd> next_end() {
        auto said = next();
        return said.end ? std::optional(said.end->first) : std::nullopt;
    }
    [[nodiscard]] Registration registration() const {
        return {.life = life_, .cluster_id = "c", .broker = broker_of({2})};
    }
    /// As far as the first heartbeat, which waits for its answer.
    Asked follow(Peer& peer) {
        link_->follow(peer.address(), registration());
        peer.registration().answer();
        EXPECT_TRUE(next().registered);
        return peer.report();
    }
    static Report released(int partition) {
        Report report;
        report.released = {{{base::TopicId{}, base::PartitionId(partition)}, base::LeaderEpoch(1)}};
        return report;
    }
    static bool is_news(const Report& report) { return !report.empty(); }

    const BrokerLife life_{base::BrokerId(2), base::Uuid::random()};
    net::Reactor reactor_{"link"};
    std::unique_ptr<ControllerLink> link_;
    base::Mutex mutex_;
    base::CondVar changed_;
    std::vector<Said> said_ KAAS_GUARDED_BY(mutex_);
};

TEST_F(ControllerLinkTest, RegistersReportsAndHearsNews) {
    Peer peer;
    auto mine = registration();
    link_->follow(peer.address(), mine);
    auto asked = peer.registration();
    EXPECT_EQ(std::get<Registration>(asked.what).life, life_);
    EXPECT_EQ(std::get<Registration>(asked.what).broker.sessions, mine.broker.sessions);
    asked.answer();
    EXPECT_TRUE(next().registered);
    peer.report().answer();
    peer.report().answer();  // and again, by itself
    const catalog::ImageVersion have{base::ControllerEpoch(1), 4};
    link_->watch(have);
    auto watch = peer.watch();
    EXPECT_EQ(watch.have(), have);
    peer.report().answer();  // meanwhile
    watch.answer(W::kNone, "push 1 5\n{}\n");
    auto said = next();
    ASSERT_TRUE(said.news);
    const auto& pushes = std::get<std::vector<PushedLinesPtr>>(*said.news);
    ASSERT_EQ(pushes.size(), 1U);
    EXPECT_EQ(pushes[0]->version.changes, 5U);
}

TEST_F(ControllerLinkTest, NobodyListensSoItsProcessIsGone) {
    client::DeadPort nobody;
    link_->follow({base::ControllerEpoch(1), base::BrokerId(1), "127.0.0.1", nobody.port(), "c"},
                  registration());
    EXPECT_EQ(next_end(), LinkEnd::kGone);
}

TEST_F(ControllerLinkTest, ProcessThatEndsIsSeenAtOnceBetweenHeartbeats) {
    make({.heartbeat = 1h});
    auto peer = std::make_unique<Peer>();
    follow(*peer).answer();
    peer.reset();
    EXPECT_EQ(next_end(), LinkEnd::kGone);
}

TEST_F(ControllerLinkTest, EachRefusalOfARegistrationHasItsMeaning) {
    struct Row {
        W code;
        LinkEnd end;
        ErrorCode why;
    };
    for (const auto& [code, end, why] :
         {Row{W::kNotController, LinkEnd::kNotController, ErrorCode::kNotController},
          Row{W::kStaleBrokerEpoch, LinkEnd::kStale, ErrorCode::kNotController},
          Row{W::kKafkaStorageError, LinkEnd::kStale, ErrorCode::kNotController},
          Row{W::kDuplicateBrokerRegistration, LinkEnd::kRefused, ErrorCode::kDuplicateBroker},
          Row{W::kInconsistentClusterId, LinkEnd::kRefused, ErrorCode::kWrongCluster}}) {
        Peer peer;
        link_->follow(peer.address(), registration());
        peer.registration().answer(code);
        auto said = next();
        ASSERT_TRUE(said.end);
        EXPECT_EQ(said.end->first, end) << wire::to_string(code);
        EXPECT_EQ(said.end->second.code, why) << wire::to_string(code);
    }
}

TEST_F(ControllerLinkTest, AReportOrAWaitThatIsRefusedEndsTheLink) {
    Peer peer;
    follow(peer).answer(W::kNotController);
    EXPECT_EQ(next_end(), LinkEnd::kNotController);
    auto heartbeat = follow(peer);
    heartbeat.answer();
    link_->watch({});
    peer.watch().answer(W::kStaleBrokerEpoch);
    EXPECT_EQ(next_end(), LinkEnd::kStale);
}

TEST_F(ControllerLinkTest, ControllerThatDoesNotAnswerIsSilent) {
    make({.timeout = 50ms});
    Peer peer;
    link_->follow(peer.address(), registration());
    EXPECT_EQ(next_end(), LinkEnd::kSilent);
}

TEST_F(ControllerLinkTest, ReportThatWasUnderWayIsSaidAgainOverTheNextConnection) {
    Peer peer;
    follow(peer).answer();
    link_->report(released(7));
    auto asked = peer.report_with(is_news);
    asked.close();
    auto again = peer.report_with(is_news);
    EXPECT_EQ(again.report().released, released(7).released);
    again.answer();
    peer.report().answer();
    EXPECT_TRUE(peer.report().report().empty()) << "but not for ever";
}

TEST_F(ControllerLinkTest, WaitThatWasUnderWayIsAskedAgain) {
    Peer peer;
    follow(peer).answer();
    const catalog::ImageVersion have{base::ControllerEpoch(1), 4};
    link_->watch(have);
    peer.watch().close();
    EXPECT_EQ(peer.watch().have(), have);
}

TEST_F(ControllerLinkTest, NextControllerHearsWhatTheLastDidNot) {
    Peer first;
    auto heartbeat = follow(first);
    Report report = released(7);
    report.applied = {{{base::ControllerEpoch(1), 3}}};
    link_->report(report);  // behind the heartbeat
    link_->report(released(8));
    Peer second;
    link_->follow(second.address(2), registration());
    second.registration().answer();
    EXPECT_TRUE(next().registered);
    auto asked = second.report();
    EXPECT_EQ(asked.report().released.size(), 2U);
    EXPECT_TRUE(asked.report().applied.empty()) << "that was for the first";
    heartbeat.close();
}

TEST_F(ControllerLinkTest, WhatIsTakenBackIsToldToNobodyElse) {
    Peer first;
    auto heartbeat = follow(first);
    link_->report({.applied = {{{base::ControllerEpoch(1), 3}}}, .intent = Report::Intent::kDrain});
    link_->report(released(7));
    const auto unheard = link_->take_back();
    ASSERT_EQ(unheard.released.size(), 1U);
    EXPECT_EQ(unheard.released, released(7).released);
    EXPECT_TRUE(unheard.applied.empty()) << "that was for the first";
    heartbeat.close();
    Peer second;
    auto asked = follow(second);
    EXPECT_TRUE(asked.report().released.empty());
    EXPECT_EQ(asked.report().intent, Report::Intent::kDrain);
    asked.answer();
}

TEST_F(ControllerLinkTest, AnEarlierControllerIsNotHeardLate) {
    Peer first;
    link_->follow(first.address(), registration());
    auto late = first.registration();
    Peer second;
    link_->follow(second.address(2), registration());
    auto asked = second.registration();
    late.answer(W::kNotController);
    asked.answer();
    EXPECT_TRUE(next().registered);
}

TEST_F(ControllerLinkTest, ForgottenControllerIsNotHeard) {
    Peer peer;
    link_->follow(peer.address(), registration());
    auto late = peer.registration();
    link_->forget();
    reactor_.run_and_wait([] {});
    late.answer();
    follow(peer).answer();
}

TEST_F(ControllerLinkTest, IntentGoesWithEachLaterReport) {
    Peer peer;
    auto heartbeat = follow(peer);
    link_->report({.intent = Report::Intent::kDrain});
    link_->report(released(7));
    heartbeat.answer();
    auto asked = peer.report_with(is_news);
    EXPECT_EQ(asked.report().intent, Report::Intent::kDrain);
    asked.answer();
    asked = peer.report();
    EXPECT_EQ(asked.report().intent, Report::Intent::kDrain);
    asked.answer();
}

TEST_F(ControllerLinkTest, IntentIsSaidAtOnceBehindAHeartbeatUnderWay) {
    make({.heartbeat = 1h});
    Peer peer;
    auto heartbeat = follow(peer);
    link_->report({.intent = Report::Intent::kLeave});
    auto flushed = std::async(std::launch::async, [&] { return link_->flush(kPatience); });
    reactor_.run_and_wait([] {});
    heartbeat.answer();
    auto asked = peer.report();
    ASSERT_NE(asked.exchange, nullptr);
    EXPECT_EQ(asked.report().intent, Report::Intent::kLeave);
    EXPECT_EQ(flushed.wait_for(0s), std::future_status::timeout) << "it has not been heard";
    asked.answer();
    EXPECT_TRUE(flushed.get());
}

TEST_F(ControllerLinkTest, FlushOfWhatWasHeardWaitsForNoHeartbeat) {
    make({.heartbeat = 1h});
    Peer peer;
    auto heartbeat = follow(peer);
    link_->report(released(7));
    heartbeat.answer();
    peer.report().answer();
    EXPECT_TRUE(link_->flush(kPatience));
    EXPECT_TRUE(link_->flush(kPatience)) << "the next heartbeat is an hour away";
}

TEST_F(ControllerLinkTest, FlushSaysWhenNobodyHasHeard) {
    Peer peer;
    auto heartbeat = follow(peer);
    link_->report(released(7));
    EXPECT_FALSE(link_->flush(1ms));
    heartbeat.answer();
    peer.report_with(is_news).answer();
}

}  // namespace
}  // namespace kaas::cluster
