// Goal: requests of real sockets reach the handler whole and in turn, answers leave in order, and
// nobody's behaviour costs others memory or time. Method: a server on port 0 and blocking clients.
#include "net/server.h"

#include "base/clock.h"
#include "base/metrics.h"
#include "base/thread_pool.h"
#include "net/error.h"
#include "net/exchange.h"
#include "net/reactor.h"
#include "net/test_client.h"

#include <gtest/gtest.h>

#include <asm-generic/socket.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace kaas::net {
namespace {

using namespace std::chrono_literals;

class ServerTest : public testing::Test {
protected:
    void make(ServerOptions options = {}, std::string host = "127.0.0.1") {
        options.request_memory_bytes =
            options.request_memory_bytes > 0 ? options.request_memory_bytes : 64 << 20;
        server_ =
            std::make_unique<Server>(std::move(options), reactors_, handler_, pool_, registry_);
        auto port = server_->listen({.host = std::move(host)});
        ASSERT_TRUE(port) << port.error().context;
        port_ = *port;
    }
    void start(ServerOptions options = {}) {
        make(std::move(options));
        server_->start();
    }
    [[nodiscard]] TestClient connect(int receive_buffer_bytes = 0) const {
        return {"127.0.0.1", port_, receive_buffer_bytes};
    }
    /// What `reactor` was to do by now is done.
    void settle() {
        for (std::size_t i = 0; i < reactors_.size(); ++i) {
            for (int turn = 0; turn < 2; ++turn) {
                auto done = std::make_shared<std::promise<void>>();
                auto future = done->get_future();
                reactors_[i].post([done] { done->set_value(); });
                future.wait();
            }
        }
    }
    [[nodiscard]] std::uint64_t count(const std::string& name, base::metrics::Labels labels = {}) {
        return registry_.counter(name, "", std::move(labels)).value();
    }
    [[nodiscard]] std::uint64_t per_reactor(const std::string& name,
                                            base::metrics::Labels labels = {}) {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < reactors_.size(); ++i) {
            auto with_reactor = labels;
            with_reactor.emplace_back("reactor", std::to_string(i));
            sum += count(name, with_reactor);
        }
        return sum;
    }
    [[nodiscard]] std::uint64_t closed(const char* reason) {
        return count("kaas_connections_closed_total", {{"reason", reason}});
    }

    base::metrics::Registry registry_;
    base::ManualClock clock_;
    ReactorPool reactors_{2, clock_};
    base::ThreadPool pool_{"io", 1};
    ScriptedHandler handler_;
    std::unique_ptr<Server> server_;
    std::uint16_t port_ = 0;
};

TEST_F(ServerTest, ALastAnswerLeavesAndNothingAfterItIsRead) {
    handler_.on("last", [](std::unique_ptr<Exchange> exchange) {
        exchange->respond_last(text_response("bye"), "the test wants it");
    });
    start();
    TestClient client = connect();
    client.send(framed("pass first") + framed("last") + framed("echo never"));
    handler_.wait_for_requests(2);
    handler_.answer("first", "one");
    EXPECT_EQ(client.receive_frame(), "one");
    EXPECT_EQ(client.receive_frame(), "bye");
    EXPECT_TRUE(client.at_end());
    EXPECT_EQ(handler_.requests(), 2U);
}

TEST_F(ServerTest, AnswersARequest) {
    start();
    TestClient client = connect();
    client.send_frame("echo hello");
    EXPECT_EQ(client.receive_frame(), "hello");
}

TEST_F(ServerTest, TheNextRequestWaitsForTheAnswerOfThisOne) {
    start();
    TestClient client = connect();
    client.send(framed("hold a") + framed("echo b"));
    auto first = handler_.take("a");
    settle();
    EXPECT_EQ(handler_.requests(), 1U);
    Reactor& reactor = first->reactor();
    reactor.post([first = std::move(first)] { first->respond(text_response("a")); });
    EXPECT_EQ(client.receive_frame(), "a");
    EXPECT_EQ(client.receive_frame(), "b");
}

TEST_F(ServerTest, PassedRequestsAreAnsweredInOrder) {
    start();
    TestClient client = connect();
    client.send(framed("pass a") + framed("pass b") + framed("echo c"));
    handler_.wait_for_requests(3);
    handler_.answer("b", "b");
    settle();
    handler_.answer("a", "a");
    EXPECT_EQ(client.receive_frame(), "a");
    EXPECT_EQ(client.receive_frame(), "b");
    EXPECT_EQ(client.receive_frame(), "c");
}

TEST_F(ServerTest, AtMost64AnswersAreOpen) {
    start();
    TestClient client = connect();
    std::string requests;
    for (int i = 0; i < 70; ++i) requests += framed("pass " + std::to_string(i));
    client.send(requests);
    handler_.wait_for_requests(64);
    settle();
    EXPECT_EQ(handler_.requests(), 64U);
    handler_.answer("0", "0");
    EXPECT_EQ(client.receive_frame(), "0");
    handler_.wait_for_requests(65);
    for (int i = 1; i < 70; ++i) handler_.answer(std::to_string(i), std::to_string(i));
    for (int i = 1; i < 70; ++i) EXPECT_EQ(client.receive_frame(), std::to_string(i));
}

TEST_F(ServerTest, ARequestWithoutAnswerTakesNoPlace) {
    start();
    TestClient client = connect();
    std::string requests = framed("pass a");
    for (int i = 0; i < 500; ++i) requests += framed("silent");
    client.send(requests);
    handler_.wait_for_requests(501);
    handler_.answer("a", "a");
    EXPECT_EQ(client.receive_frame(), "a");
}

TEST_F(ServerTest, ClosingComesAfterTheAnswersBefore) {
    start();
    TestClient client = connect();
    client.send(framed("pass a") + framed("close") + framed("echo never"));
    handler_.wait_for_requests(2);
    handler_.answer("a", "a");
    EXPECT_EQ(client.receive_frame(), "a");
    EXPECT_TRUE(client.at_end());
    handler_.wait_for_disconnects(1);
    EXPECT_EQ(handler_.requests(), 2U);
    EXPECT_EQ(closed("handler"), 1U);
}

TEST_F(ServerTest, ADroppedRequestClosesTheConnection) {
    start();
    TestClient client = connect();
    client.send_frame("drop");
    EXPECT_TRUE(client.at_end());
    EXPECT_EQ(closed("dropped"), 1U);
    TestClient other = connect();
    other.send_frame("hold a");
    handler_.take("a").reset();  // on this thread, which is not its reactor's
    EXPECT_TRUE(other.at_end());
}

TEST_F(ServerTest, BadLengthsCloseTheConnection) {
    start({.request_max_bytes = 1000});
    for (const char* length : {"\xff\xff\xff\xff", "\x7f\xff\xff\xff", "\x80\x00\x00\x01"}) {
        TestClient client = connect();
        client.send(framed("echo before") + std::string(length, 4) + "rest");
        EXPECT_EQ(client.receive_frame(), "before");
        EXPECT_TRUE(client.at_end());
    }
    TestClient client = connect();
    client.send_frame("size " + std::string(995, 'x'));
    EXPECT_EQ(client.receive_frame(), "1000");
    client.send_frame("size " + std::string(996, 'x'));
    EXPECT_TRUE(client.at_end());
    EXPECT_EQ(closed("bad_frame"), 4U);
}

TEST_F(ServerTest, BytesThatComeOneByOneMakeAFrame) {
    start();
    TestClient client = connect();
    for (char c : framed("echo slowly") + framed("echo again")) {
        client.send({&c, 1});
        settle();
    }
    EXPECT_EQ(client.receive_frame(), "slowly");
    EXPECT_EQ(client.receive_frame(), "again");
}

TEST_F(ServerTest, LargeRequestsArrive) {
    start();
    TestClient client = connect();
    for (std::size_t bytes : {65'536UL, 65'537UL, 262'144UL, 5'000'000UL, 100UL, 20'000'000UL}) {
        client.send_frame("size " + std::string(bytes - 5, 'x'));
        EXPECT_EQ(client.receive_frame(), std::to_string(bytes));
    }
}

TEST_F(ServerTest, ASmallRequestCostsOneReceiveAndOneSend) {
    start();
    TestClient client = connect();
    client.send_frame("echo warm");
    EXPECT_EQ(client.receive_frame(), "warm");
    settle();
    auto receives = per_reactor("kaas_network_calls_total", {{"call", "recv"}});
    auto sends = per_reactor("kaas_network_calls_total", {{"call", "send"}});
    for (int i = 0; i < 100; ++i) {
        client.send_frame("echo x");
        EXPECT_EQ(client.receive_frame(), "x");
    }
    settle();
    EXPECT_EQ(per_reactor("kaas_network_calls_total", {{"call", "recv"}}) - receives, 100U);
    EXPECT_EQ(per_reactor("kaas_network_calls_total", {{"call", "send"}}) - sends, 100U);
    // What comes together is received and answered together.
    std::string requests;
    for (int i = 0; i < 50; ++i) requests += framed("echo x");
    client.send(requests);
    for (int i = 0; i < 50; ++i) EXPECT_EQ(client.receive_frame(), "x");
    settle();
    EXPECT_EQ(per_reactor("kaas_network_calls_total", {{"call", "recv"}}) - receives, 101U);
    EXPECT_EQ(per_reactor("kaas_network_calls_total", {{"call", "send"}}) - sends, 101U);
    EXPECT_EQ(per_reactor("kaas_network_moved_bytes_total"), 0U);
}

TEST_F(ServerTest, ASlowReaderStopsItsOwnRequestsOnly) {
    start();
    handler_.on("big", [](std::unique_ptr<Exchange> exchange) {
        exchange->respond(text_response(std::string(100'000, 'b')));
    });
    TestClient slow = connect(4096);
    std::string requests;
    for (int i = 0; i < 200; ++i) requests += framed("big");
    slow.send(requests);
    // Two connections a reactor: one of them shares the slow one's.
    for (int i = 0; i < 2; ++i) {
        TestClient quick = connect();
        for (int j = 0; j < 50; ++j) {
            quick.send_frame("echo x");
            EXPECT_EQ(quick.receive_frame(), "x");
        }
    }
    // 256 KiB wait here and some 400 KB in the two sockets; the rest was not even read.
    EXPECT_LT(handler_.requests() - 100, 30U);
    for (int i = 0; i < 200; ++i) ASSERT_EQ(slow.receive_frame()->size(), 100'000U);
}

TEST_F(ServerTest, IdleConnectionsExpireUnlessTheyAreOwedAnAnswer) {
    start({.idle_max = 10min});
    TestClient idle = connect();
    TestClient half = connect();
    TestClient owed = connect();
    TestClient active = connect();
    idle.send_frame("echo x");
    EXPECT_EQ(idle.receive_frame(), "x");
    half.send("\x00\x00");
    owed.send_frame("hold a");
    auto exchange = handler_.take("a");
    for (std::chrono::seconds step : {300s, 240s, 59s}) {
        clock_.advance(step);
        settle();
        active.send_frame("echo x");
        EXPECT_EQ(active.receive_frame(), "x");
        EXPECT_EQ(closed("idle"), 0U);
    }
    clock_.advance(3s);
    settle();
    EXPECT_TRUE(idle.at_end());
    EXPECT_TRUE(half.at_end());
    EXPECT_EQ(closed("idle"), 2U);
    Reactor& reactor = exchange->reactor();
    reactor.post([exchange = std::move(exchange)] { exchange->respond(text_response("late")); });
    EXPECT_EQ(owed.receive_frame(), "late");
    active.send_frame("echo still");
    EXPECT_EQ(active.receive_frame(), "still");
}

TEST_F(ServerTest, AFullServerLeavesNewConnectionsWaiting) {
    start({.connections = {.max = 2}});
    TestClient one = connect();
    TestClient two = connect();
    TestClient three = connect();
    for (TestClient* client : {&one, &two, &three}) client->send_frame("echo x");
    EXPECT_EQ(one.receive_frame(), "x");
    EXPECT_EQ(two.receive_frame(), "x");
    settle();
    EXPECT_EQ(handler_.requests(), 2U);
    one.close();
    EXPECT_EQ(three.receive_frame(), "x");
}

TEST_F(ServerTest, AnAddressWithTooManyConnectionsHasNewOnesClosed) {
    start({.connections = {.max_per_ip = 1, .per_ip_overrides = {{"127.0.0.1", 2}}}});
    TestClient one = connect();
    TestClient two = connect();
    TestClient three = connect();
    EXPECT_TRUE(three.at_end());
    one.send_frame("echo x");
    EXPECT_EQ(one.receive_frame(), "x");
    two.close();
    handler_.wait_for_disconnects(1);
    TestClient four = connect();
    four.send_frame("echo x");
    EXPECT_EQ(four.receive_frame(), "x");
    EXPECT_EQ(count("kaas_connections_refused_total"), 1U);
}

TEST_F(ServerTest, AcceptingPausesWithoutDescriptorsAndGoesOn) {
    make();
    TestClient client = connect();
    client.send_frame("echo x");
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    rlimit none = before;
    none.rlim_cur = 3;  // below what is open: no descriptor can be made
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    server_->start();
    auto& errors = registry_.counter("kaas_connections_accept_errors_total", "");
    while (errors.value() == 0) std::this_thread::yield();
    // The pause is over when the clock says so: it did not try again meanwhile.
    settle();
    EXPECT_EQ(errors.value(), 1U);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    clock_.advance(100ms);
    settle();
    EXPECT_EQ(client.receive_frame(), "x");
}

TEST_F(ServerTest, AnswersToAClientThatIsGoneAreHarmless) {
    start();
    TestClient client = connect();
    client.send(framed("pass a") + framed("pass b"));
    auto a = handler_.take("a");
    auto b = handler_.take("b");
    linger reset{.l_onoff = 1, .l_linger = 0};
    ASSERT_EQ(::setsockopt(client.socket(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
    client.close();
    handler_.wait_for_disconnects(1);
    EXPECT_EQ(closed("broken"), 1U);
    Reactor& reactor = a->reactor();
    reactor.post([a = std::move(a), b = std::move(b)]() mutable {
        a->pass();
        a->respond(text_response("a"));
        b->close("test");
    });
    settle();
    EXPECT_EQ(server_->open_connections_for_test(), 0U);
}

TEST_F(ServerTest, WhatWasSentBeforeAQuickCloseIsCarriedOut) {
    start();
    TestClient client = connect();
    std::string requests;
    for (int i = 0; i < 300; ++i) requests += framed("silent " + std::string(1000, 'x'));
    client.send(requests);
    client.close();
    handler_.wait_for_requests(300);
    handler_.wait_for_disconnects(1);
    EXPECT_EQ(closed("peer"), 1U);
}

TEST_F(ServerTest, AClientThatOnlyStoppedSendingGetsItsAnswer) {
    start();
    TestClient client = connect();
    client.send_frame("hold a");
    ::shutdown(client.socket(), SHUT_WR);
    handler_.answer("a", "a");
    EXPECT_EQ(client.receive_frame(), "a");
    EXPECT_TRUE(client.at_end());
}

TEST_F(ServerTest, WithoutRequestMemoryConnectionsWaitTheirTurn) {
    constexpr std::size_t kLimit = 1 << 20;
    constexpr std::size_t kFrame = 700'000;
    start({.request_memory_bytes = kLimit});
    std::vector<std::unique_ptr<TestClient>> clients;
    std::vector<std::thread> senders;
    for (int i = 0; i < 8; ++i) {
        clients.push_back(std::make_unique<TestClient>("127.0.0.1", port_));
        senders.emplace_back([client = clients.back().get(), i] {
            client->send_frame("pass " + std::to_string(i) + " " + std::string(kFrame, 'x'));
        });
    }
    std::vector<std::unique_ptr<Exchange>> held;
    handler_.wait_for_requests(1);
    settle();
    std::size_t most = 0;
    for (int i = 0; i < 8; ++i) {
        handler_.wait_for_requests(static_cast<std::size_t>(i) + 1);
        most = std::max(most, server_->request_memory_for_test().used());
        auto exchange = handler_.take_any();
        Reactor& reactor = exchange->reactor();
        reactor.post(
            [exchange = std::move(exchange)] { exchange->respond(text_response("done")); });
    }
    for (auto& client : clients) EXPECT_EQ(client->receive_frame(), "done");
    for (auto& sender : senders) sender.join();
    EXPECT_LE(most, kLimit + kFrame + 100);
    EXPECT_GT(count("kaas_request_memory_waits_total"), 0U);
}

TEST_F(ServerTest, AFrameAboveTheWholeMemoryStillFits) {
    start({.request_memory_bytes = 300'000});
    // Has its memory and never ends: nothing is released.
    TestClient stalled = connect();
    stalled.send(framed(std::string(290'000, 'x')).substr(0, 250'000));
    while (server_->request_memory_for_test().used() == 0) std::this_thread::yield();
    TestClient client = connect();
    client.send_frame("size " + std::string(4'000'000, 'x'));
    EXPECT_EQ(client.receive_frame(), "4000005");
}

TEST_F(ServerTest, ListensOnIpv6AndOnAll) {
    make();
    auto six = server_->listen({.name = "SIX", .host = "::1"});
    if (!six) GTEST_SKIP() << "no IPv6 here: " << six.error().context;
    auto all = server_->listen({.name = "ALL"});
    ASSERT_TRUE(all) << all.error().context;
    server_->start();
    handler_.on("who", [](std::unique_ptr<Exchange> exchange) {
        std::string who = exchange->peer().listener + " " + exchange->peer().address;
        exchange->respond(text_response(who));
    });
    TestClient through_six("::1", *six);
    through_six.send_frame("who");
    EXPECT_EQ(through_six.receive_frame(), "SIX ::1");
    TestClient mapped("127.0.0.1", *all);
    mapped.send_frame("who");
    EXPECT_EQ(mapped.receive_frame(), "ALL 127.0.0.1");
}

TEST_F(ServerTest, AnAddressThatIsTakenOrNotOursIsAnError) {
    start();
    auto taken = server_->listen({.host = "127.0.0.1", .port = port_});
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().code, ErrorCode::kAddressInUse);
    auto foreign = server_->listen({.host = "192.0.2.1"});
    ASSERT_FALSE(foreign);
    EXPECT_EQ(foreign.error().code, ErrorCode::kBadAddress);
    auto unknown = server_->listen({.host = "no.such.host.invalid"});
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code, ErrorCode::kBadAddress);
}

TEST_F(ServerTest, StoppingLetsOpenRequestsEnd) {
    start();
    TestClient client = connect();
    TestClient idle = connect();
    TestClient idle_too = connect();  // so that there is one on each reactor
    client.send(framed("hold a") + framed("echo not started"));
    auto exchange = handler_.take("a");
    std::thread stopping([this] { server_->stop(1h); });
    EXPECT_TRUE(idle.at_end());
    EXPECT_TRUE(idle_too.at_end());
    Reactor& reactor = exchange->reactor();
    reactor.post([exchange = std::move(exchange)] { exchange->respond(text_response("a")); });
    EXPECT_EQ(client.receive_frame(), "a");
    EXPECT_TRUE(client.at_end());
    stopping.join();
    EXPECT_EQ(server_->open_connections_for_test(), 0U);
    EXPECT_EQ(handler_.requests(), 1U);
}

TEST_F(ServerTest, EachReactorTellsTheHandlerOnceThatADrainBegins) {
    start();
    server_->stop(0ms);
    server_->stop(0ms);
    EXPECT_EQ(handler_.drains(), reactors_.size());
}

TEST_F(ServerTest, StoppingWithoutPatienceClosesWhatIsOpen) {
    start();
    TestClient client = connect();
    client.send_frame("hold a");
    auto exchange = handler_.take("a");
    server_->stop(0ms);
    EXPECT_TRUE(client.at_end());
    exchange.reset();
    settle();
}

TEST_F(ServerTest, StopsUnderLoad) {
    start();
    std::atomic<int> answered = 0;
    std::vector<std::thread> load;
    for (int i = 0; i < 4; ++i) {
        load.emplace_back([this, &answered] {
            for (;;) {
                TestClient client = connect();
                client.send(framed("echo a") + framed("echo b"));
                while (client.receive_frame()) {
                    ++answered;
                    client.send_frame("echo more");
                }
                if (client.refused()) return;
            }
        });
    }
    while (answered < 200) std::this_thread::yield();
    server_->stop(10s);
    EXPECT_EQ(server_->open_connections_for_test(), 0U);
    for (auto& thread : load) thread.join();
}

}  // namespace
}  // namespace kaas::net
