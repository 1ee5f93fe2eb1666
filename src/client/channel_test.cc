// Goal: every call ends once and with the right reason, whatever the peer does. Method: a real
// server whose handler does what the group id of a Heartbeat says, and a client on a reactor of its
// own.
#include "client/channel.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "base/thread_pool.h"
#include "client/error.h"
#include "client/peers.h"
#include "client/testing_port.h"
#include "net/exchange.h"
#include "net/reactor.h"
#include "net/server.h"
#include "security/scram.h"
#include "wire/api_key.h"
#include "wire/error_code.h"
#include "wire/message.h"
#include "wire/messages/heartbeat.h"
#include "wire/messages/request_header.h"
#include "wire/messages/sasl_authenticate.h"
#include "wire/messages/sasl_handshake.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::client {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

constexpr std::int16_t kVersion = 4;
constexpr auto kPatience = 20s;

/// Answers with the length of the group id, so that an answer tells whose it is.
wire::Output answer_to(const std::string& group, std::int32_t correlation_id) {
    wire::HeartbeatResponse response;
    response.throttle_time_ms = static_cast<std::int32_t>(group.size());
    return std::move(*wire::encode_response(response, kVersion, correlation_id));
}

/// Does what the group id says: "echo..." answers, "hold..." keeps the request and lets the next
/// one start, "close" closes, "cut" sends half an answer and closes, "other" answers another
/// request, "short" leaves the body out, "huge" announces a frame that is too large.
class Script final : public net::RequestHandler {
public:
    void handle(std::unique_ptr<net::Exchange> exchange) override KAAS_EXCLUDES(mutex_) {
        wire::Reader in(exchange->frame().bytes);
        auto header = wire::decode_request_header(in);
        if (header->request_api_key == static_cast<std::int16_t>(wire::ApiKey::kSaslHandshake)) {
            return take_mechanism(std::move(exchange), *header);
        }
        if (header->request_api_key == static_cast<std::int16_t>(wire::ApiKey::kSaslAuthenticate)) {
            return take_token(std::move(exchange), *header, in);
        }
        auto request = wire::decode<wire::HeartbeatRequest>(in, kVersion);
        const std::string group = request->group_id.str();
        const std::int32_t id = header->correlation_id;
        if (group.starts_with("hold")) {
            exchange->pass();
            hold({std::move(exchange), group, id});
            return note();
        }
        note();
        if (group == "close") return exchange->close("the test wants it");
        wire::Output whole = answer_to(group, group == "other" ? id + 1 : id);
        if (group.starts_with("echo") || group == "other") {
            return exchange->respond({.output = std::move(whole), .slices = {}});
        }
        // The rest is no answer but a piece of one; nothing follows it.
        wire::Writer piece;
        if (group == "cut") piece.raw(base::ByteView(whole.bytes()).first(7));
        if (group == "short") {
            piece.int32(5);
            piece.int32(id);
            piece.int8(0);
        }
        if (group == "huge") piece.int32(1 << 30);
        exchange->pass();
        exchange->respond({.output = piece.take(), .slices = {}});
    }
    void disconnected(const net::Peer&) override {}

    /// Does not show that it knows the password.
    void lie() { lie_ = true; }
    /// From now on only a client with this password is let in.
    void guard(const std::string& password, std::string mechanism = "SCRAM-SHA-512") {
        credential_ = security::make_scram_credential(password, "salt");
        mechanism_ = std::move(mechanism);
    }

    void wait_for(std::size_t requests) KAAS_EXCLUDES(mutex_) {
        base::MutexLock lock(mutex_);
        while (seen_ < requests) ASSERT_TRUE(changed_.wait_for(mutex_, kPatience));
    }
    /// Answers what is held, the last first.
    void answer_all() KAAS_EXCLUDES(mutex_) {
        std::vector<Held> held;
        {
            base::MutexLock lock(mutex_);
            held.swap(held_);
        }
        for (; !held.empty(); held.pop_back()) {
            net::Reactor& reactor = held.back().exchange->reactor();
            reactor.run_and_wait([&it = held.back()] {
                it.exchange->respond({.output = answer_to(it.group, it.id), .slices = {}});
                it.exchange.reset();
            });
        }
    }

private:
    struct Held {
        std::unique_ptr<net::Exchange> exchange;
        std::string group;
        std::int32_t id;
    };
    void take_mechanism(std::unique_ptr<net::Exchange> exchange,
                        const wire::RequestHeader& header) {
        wire::SaslHandshakeResponse response;
        if (mechanism_ != "SCRAM-SHA-512") {
            response.error_code = wire::ErrorCode::kUnsupportedSaslMechanism;
        }
        response.mechanisms.emplace_back(mechanism_);
        scram_.emplace("nonce", [this](std::string_view user) {
            return user == "broker" ? &credential_ : nullptr;
        });
        respond(std::move(exchange), response, header);
    }
    void take_token(std::unique_ptr<net::Exchange> exchange, const wire::RequestHeader& header,
                    wire::Reader in) {
        auto request = wire::decode<wire::SaslAuthenticateRequest>(in, header.request_api_version);
        auto token = scram_->answer(base::as_text(request->auth_bytes.view()));
        wire::SaslAuthenticateResponse response;
        if (!token) response.error_code = wire::ErrorCode::kSaslAuthenticationFailed;
        if (token) response.auth_bytes = base::as_bytes(*token);
        if (scram_->complete() && lie_) response.auth_bytes = base::as_bytes("v=AAAA");
        respond(std::move(exchange), response, header);
    }
    template <class Response>
    static void respond(std::unique_ptr<net::Exchange> exchange, const Response& response,
                        const wire::RequestHeader& header) {
        auto output =
            wire::encode_response(response, header.request_api_version, header.correlation_id);
        exchange->respond({.output = std::move(*output), .slices = {}});
    }
    void hold(Held held) KAAS_EXCLUDES(mutex_) {
        base::MutexLock lock(mutex_);
        held_.push_back(std::move(held));
    }
    void note() KAAS_EXCLUDES(mutex_) {
        base::MutexLock lock(mutex_);
        ++seen_;
        changed_.notify_all();
    }

    security::ScramCredential credential_;
    std::string mechanism_;
    std::optional<security::ScramServer> scram_;  ///< of the one connection that tests have
    bool lie_ = false;

    mutable base::Mutex mutex_;
    base::CondVar changed_;
    std::vector<Held> held_ KAAS_GUARDED_BY(mutex_);
    std::size_t seen_ KAAS_GUARDED_BY(mutex_) = 0;
};

/// A broker on 127.0.0.1.
class Peer {
public:
    explicit Peer(std::uint16_t port = 0) {
        server_ =
            std::make_unique<net::Server>(net::ServerOptions{.request_memory_bytes = 64 << 20},
                                          reactors_, script_, pool_, registry_);
        auto bound = server_->listen({.host = "127.0.0.1", .port = port});
        EXPECT_TRUE(bound) << bound.error().context;
        port_ = bound.value_or(0);
        server_->start();
    }
    ~Peer() {
        // Those that are held must be gone before the server, and on their reactor.
        script_.answer_all();
        server_->stop(0ms);
    }

    Script& script() { return script_; }
    [[nodiscard]] std::uint16_t port() const { return port_; }

private:
    net::ReactorPool reactors_{1};
    base::ThreadPool pool_{"io", 1};
    base::metrics::Registry registry_;
    Script script_;
    std::uint16_t port_ = 0;
    std::unique_ptr<net::Server> server_;
};

/// Keeps what is posted for ever: a resolver that hangs.
class HungExecutor final : public base::Executor {
public:
    void post(Work) override {}
};

std::string name_of(ErrorCode code) {
    switch (code) {
        case ErrorCode::kRefused: return "refused";
        case ErrorCode::kUnreachable: return "unreachable";
        case ErrorCode::kDown: return "down";
        case ErrorCode::kTimedOut: return "timed out";
        case ErrorCode::kDenied: return "denied";
        case ErrorCode::kMalformed: return "malformed";
    }
    return "?";
}

/// What happened, in order, each as a word.
class Events {
public:
    void add(std::string event) KAAS_EXCLUDES(mutex_) {
        base::MutexLock lock(mutex_);
        all_.push_back(std::move(event));
        changed_.notify_all();
    }
    [[nodiscard]] std::vector<std::string> wait_for(std::size_t count) KAAS_EXCLUDES(mutex_) {
        base::MutexLock lock(mutex_);
        while (all_.size() < count) {
            if (!changed_.wait_for(mutex_, kPatience)) break;
        }
        return all_;
    }

private:
    base::Mutex mutex_;
    base::CondVar changed_;
    std::vector<std::string> all_ KAAS_GUARDED_BY(mutex_);
};

class ChannelTest : public testing::Test {
public:
    ~ChannelTest() override {
        resolver_.stop();
        reactor_.run_and_wait([&] { channel_.reset(); });
    }

protected:
    void make(std::uint16_t port, const std::string& host = "127.0.0.1",
              base::Executor* resolver = nullptr,
              const std::optional<Channel::Credentials>& credentials = {}) {
        reactor_.run_and_wait([&] {
            channel_ = std::make_unique<Channel>(
                Channel::Options{.reactor = &reactor_,
                                 .resolver = resolver == nullptr ? &resolver_ : resolver,
                                 .host = host,
                                 .port = port,
                                 .client_id = "test",
                                 .credentials = credentials,
                                 .frame_max_bytes = 1 << 20,
                                 .connect_timeout = 1s});
            channel_->on_change(
                [this](bool up, const Error& why) { changes_.add(up ? "up" : name_of(why.code)); });
        });
    }
    void make_known(std::uint16_t port, const std::string& user = "broker",
                    const std::string& password = "secret") {
        make(port, "127.0.0.1", nullptr, Channel::Credentials{user, password});
    }
    /// On the reactor. Each end of a call becomes an event: "<group> <answer or error>".
    void call(const std::string& group, std::chrono::milliseconds patience = kPatience,
              std::function<void()> then = {}) {
        channel_->call(wire::HeartbeatRequest{.group_id = group}, kVersion, patience,
                       [this, group, then](Result<const wire::HeartbeatResponse*> answer) {
                           calls_.add(group + " " +
                                      (answer ? std::to_string((*answer)->throttle_time_ms)
                                              : name_of(answer.error().code)));
                           if (then) then();
                       });
    }
    void on_reactor(std::function<void()> work) { reactor_.run_and_wait(std::move(work)); }
    /// Whatever is due by now has happened.
    void settle() {
        for (int turn = 0; turn < 3; ++turn) reactor_.run_and_wait([] {});
    }

    base::ManualClock clock_;
    net::Reactor reactor_{"client", clock_};
    base::ThreadPool resolver_{"resolver", 1};
    std::unique_ptr<Channel> channel_;
    Events calls_;
    Events changes_;
};

TEST_F(ChannelTest, OpensWithTheFirstCallAndKeepsTheConnection) {
    Peer peer;
    make(peer.port());
    on_reactor([&] { call("echo"); });
    EXPECT_THAT(calls_.wait_for(1), ElementsAre("echo 4"));
    on_reactor([&] { call("echo again"); });
    EXPECT_THAT(calls_.wait_for(2), ElementsAre("echo 4", "echo again 10"));
    EXPECT_THAT(changes_.wait_for(1), ElementsAre("up"));
}

TEST_F(ChannelTest, FindsANameOffTheReactor) {
    Peer peer;
    make(peer.port(), "localhost");
    on_reactor([&] { call("echo"); });
    EXPECT_THAT(calls_.wait_for(1), ElementsAre("echo 4"));
}

TEST_F(ChannelTest, CallsAreUnderWayTogetherAndKeepTheirOrder) {
    Peer peer;
    make(peer.port());
    on_reactor([&] {
        call("hold 1");
        call("hold 12");
        call("echo 123");
    });
    peer.script().wait_for(3);  // the first is not answered yet
    peer.script().answer_all();
    EXPECT_THAT(calls_.wait_for(3), ElementsAre("hold 1 6", "hold 12 7", "echo 123 8"));
}

TEST_F(ChannelTest, NobodyListensIsToldFromNobodyThere) {
    DeadPort port;
    make(port.port());
    on_reactor([&] { call("echo"); });
    EXPECT_THAT(calls_.wait_for(1), ElementsAre("echo refused"));
    EXPECT_THAT(changes_.wait_for(1), ElementsAre("refused"));
}

TEST_F(ChannelTest, AfterARefusalWaitsABitBeforeItTriesAgain) {
    DeadPort port;
    make(port.port());
    on_reactor([&] { call("echo", kPatience, [&] { call("echo 2"); }); });
    EXPECT_THAT(calls_.wait_for(1), ElementsAre("echo refused"));
    settle();
    EXPECT_THAT(calls_.wait_for(1), ElementsAre("echo refused"));
    clock_.advance(20ms);
    settle();
    EXPECT_THAT(calls_.wait_for(2), ElementsAre("echo refused", "echo 2 refused"));
}

TEST_F(ChannelTest, ANameThatDoesNotResolveIsUnreachable) {
    make(1, "a..b");
    on_reactor([&] { call("echo"); });
    EXPECT_THAT(calls_.wait_for(1), ElementsAre("echo unreachable"));
}

TEST_F(ChannelTest, OpeningHasADeadline) {
    HungExecutor hung;
    make(1, "somewhere", &hung);
    on_reactor([&] { call("echo"); });
    clock_.advance(999ms);
    settle();
    EXPECT_TRUE(calls_.wait_for(0).empty());
    clock_.advance(1ms);
    settle();
    EXPECT_THAT(calls_.wait_for(1), ElementsAre("echo unreachable"));
    EXPECT_THAT(changes_.wait_for(1), ElementsAre("unreachable"));
}

TEST_F(ChannelTest, PatienceThatEndsBeforeTheConnectionIsUpCostsOneCallOnly) {
    HungExecutor hung;
    make(1, "somewhere", &hung);
    on_reactor([&] {
        call("short", 10ms);
        call("long");
    });
    clock_.advance(10ms);
    settle();
    EXPECT_THAT(calls_.wait_for(1), ElementsAre("short timed out"));
    EXPECT_TRUE(changes_.wait_for(0).empty());
}

TEST_F(ChannelTest, ALateAnswerIsNotTakenForTheNextCalls) {
    Peer peer;
    make(peer.port());
    on_reactor([&] {
        call("hold", 50ms);
        call("hold too");
    });
    peer.script().wait_for(2);
    clock_.advance(50ms);
    settle();
    EXPECT_THAT(calls_.wait_for(2), ElementsAre("hold timed out", "hold too down"));
    EXPECT_THAT(changes_.wait_for(2), ElementsAre("up", "timed out"));
    on_reactor([&] { call("echo"); });
    EXPECT_EQ(calls_.wait_for(3).back(), "echo 4");
}

TEST_F(ChannelTest, APeerThatClosesEndsAllThatIsUnderWay) {
    Peer peer;
    make(peer.port());
    on_reactor([&] {
        call("hold");
        call("hold too");
    });
    peer.script().wait_for(2);
    peer.script().answer_all();
    on_reactor([&] {
        call("close");
        call("echo");
    });
    EXPECT_THAT(calls_.wait_for(4), ElementsAre("hold 4", "hold too 8", "close down", "echo down"));
    EXPECT_THAT(changes_.wait_for(2), ElementsAre("up", "down"));
}

TEST_F(ChannelTest, AnIdlePeerThatGoesIsToldAtOnceAndMetAgainAfterItsRestart) {
    auto peer = std::make_unique<Peer>();
    const std::uint16_t port = peer->port();
    make(port);
    on_reactor([&] { call("echo"); });
    EXPECT_THAT(calls_.wait_for(1), ElementsAre("echo 4"));
    peer.reset();
    EXPECT_THAT(changes_.wait_for(2), ElementsAre("up", "down"));
    on_reactor([&] { call("echo"); });
    EXPECT_EQ(calls_.wait_for(2).back(), "echo refused");
    peer = std::make_unique<Peer>(port);
    clock_.advance(20ms);
    on_reactor([&] { call("echo"); });
    EXPECT_EQ(calls_.wait_for(3).back(), "echo 4");
    EXPECT_THAT(changes_.wait_for(4), ElementsAre("up", "down", "refused", "up"));
}

class BadAnswers : public ChannelTest, public testing::WithParamInterface<const char*> {};

TEST_P(BadAnswers, CostTheConnectionAndNothingElse) {
    Peer peer;
    make(peer.port());
    on_reactor([&] {
        call(GetParam());
        call("hold");
    });
    peer.script().wait_for(1);
    const std::string script = GetParam();
    EXPECT_THAT(calls_.wait_for(2), ElementsAre(script + " malformed", "hold malformed"));
    on_reactor([&] { call("echo"); });
    EXPECT_EQ(calls_.wait_for(3).back(), "echo 4");
}

INSTANTIATE_TEST_SUITE_P(Channel, BadAnswers, testing::Values("other", "short", "huge"),
                         [](const auto& test) { return std::string(test.param); });

TEST_F(ChannelTest, APeerThatDiesInTheMiddleOfAnAnswerIsDown) {
    auto peer = std::make_unique<Peer>();
    make(peer->port());
    on_reactor([&] { call("cut"); });
    peer->script().wait_for(1);
    peer.reset();
    EXPECT_THAT(calls_.wait_for(1), ElementsAre("cut down"));
}

TEST_F(ChannelTest, ARequestThatItsVersionCannotCarryEndsAtOnce) {
    DeadPort port;
    make(port.port());
    on_reactor([&] {
        bool ended = false;
        channel_->call(wire::HeartbeatRequest{}, 99, kPatience,
                       [&](Result<const wire::HeartbeatResponse*> answer) {
                           ended = !answer && answer.error().code == ErrorCode::kMalformed;
                       });
        EXPECT_TRUE(ended);
    });
}

TEST_F(ChannelTest, ItsEndEndsWhatIsOpen) {
    Peer peer;
    make(peer.port());
    on_reactor([&] { call("hold"); });
    peer.script().wait_for(1);
    on_reactor([&] {
        channel_.reset();
        EXPECT_THAT(calls_.wait_for(1), ElementsAre("hold down"));
    });
    EXPECT_THAT(changes_.wait_for(1), ElementsAre("up"));
}

TEST_F(ChannelTest, MayBeDestroyedByWhatItCalls) {
    Peer peer;
    make(peer.port());
    on_reactor([&] {
        call("echo", kPatience, [&] { channel_.reset(); });
        call("hold");
    });
    EXPECT_THAT(calls_.wait_for(2), ElementsAre("echo 4", "hold down"));
    settle();
    make(DeadPort().port());
    on_reactor([&] {
        channel_->on_change([&](bool, const Error&) { channel_.reset(); });
        call("first");
        call("second");
    });
    EXPECT_THAT(calls_.wait_for(4),
                ElementsAre("echo 4", "hold down", "first refused", "second refused"));
    on_reactor([&] { EXPECT_EQ(channel_, nullptr); });
}

TEST_F(ChannelTest, ShowsItsPasswordBeforeTheFirstCall) {
    Peer peer;
    peer.script().guard("secret");
    make_known(peer.port());
    on_reactor([&] {
        call("echo");
        call("echo 2");
    });
    EXPECT_THAT(calls_.wait_for(2), ElementsAre("echo 4", "echo 2 6"));
    EXPECT_THAT(changes_.wait_for(1), ElementsAre("up"));
}

TEST_F(ChannelTest, AWrongPasswordOrNameIsDenied) {
    Peer peer;
    peer.script().guard("another secret");
    make_known(peer.port());
    on_reactor([&] { call("echo"); });
    EXPECT_THAT(calls_.wait_for(1), ElementsAre("echo denied"));
    EXPECT_THAT(changes_.wait_for(1), ElementsAre("denied"));
    on_reactor([&] { channel_.reset(); });
    make_known(peer.port(), "nobody");
    on_reactor([&] { call("echo"); });
    EXPECT_EQ(calls_.wait_for(2).back(), "echo denied");
}

TEST_F(ChannelTest, APeerWithoutThePasswordIsNotTrusted) {
    Peer peer;
    peer.script().guard("secret");
    peer.script().lie();
    make_known(peer.port());
    on_reactor([&] { call("echo"); });
    EXPECT_THAT(calls_.wait_for(1), ElementsAre("echo denied"));
    EXPECT_THAT(changes_.wait_for(1), ElementsAre("denied"));
}

TEST_F(ChannelTest, APeerWithoutTheMechanismIsDenied) {
    Peer peer;
    peer.script().guard("secret", "PLAIN");
    make_known(peer.port());
    on_reactor([&] { call("echo"); });
    EXPECT_THAT(calls_.wait_for(1), ElementsAre("echo denied"));
}

TEST_F(ChannelTest, LargeRequestsGoOutInPieces) {
    Peer peer;
    make(peer.port());
    const std::string group = "echo" + std::string(32'000, 'x');
    on_reactor([&] {
        for (int i = 0; i < 200; ++i) call(group);
    });
    auto ends = calls_.wait_for(200);
    ASSERT_EQ(ends.size(), 200U);
    for (const std::string& end : ends) EXPECT_EQ(end, group + " 32004");
}

TEST_F(ChannelTest, PeersHasOneChannelForAnAddress) {
    on_reactor([&] {
        Peers peers({.reactor = &reactor_, .resolver = &resolver_});
        Channel& a = peers.at("a", 1);
        EXPECT_NE(&a, &peers.at("a", 2));
        EXPECT_NE(&a, &peers.at("b", 1));
        EXPECT_EQ(&a, &peers.at("a", 1));
        peers.forget("a", 1);
        peers.forget("a", 1);
    });
}

}  // namespace
}  // namespace kaas::client
