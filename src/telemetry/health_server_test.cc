// Goal: probes and scrapers get their answers, and no client can keep the port from the others.
// Method: a server on port 0 and raw blocking clients.
#include "telemetry/health_server.h"

#include "base/metrics.h"
#include "telemetry/error.h"

#include <boost/asio.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

namespace kaas::telemetry {
namespace {

using namespace std::chrono_literals;
using boost::asio::ip::tcp;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class HealthServerTest : public testing::Test {
protected:
    void start(HealthServerOptions options) {
        options.host = "127.0.0.1";
        options.port = 0;
        auto server = HealthServer::start(options, registry_,
                                          {.live = [this] { return live_.load(); },
                                           .ready = [this] { return ready_.load(); },
                                           .health = [] { return R"({"status":"ok"})"; }});
        ASSERT_TRUE(server) << server.error().context;
        server_ = std::move(*server);
    }
    [[nodiscard]] tcp::socket connect() {
        tcp::socket socket(context_);
        socket.connect({boost::asio::ip::address_v4::loopback(), server_->port()});
        return socket;
    }
    /// All that the server says until it closes.
    [[nodiscard]] static std::string read_to_end(tcp::socket& socket) {
        std::string text;
        boost::system::error_code error;
        boost::asio::read(socket, boost::asio::dynamic_buffer(text), error);
        return text;
    }
    [[nodiscard]] std::string ask(const std::string& request) {
        tcp::socket socket = connect();
        boost::asio::write(socket, boost::asio::buffer(request));
        return read_to_end(socket);
    }
    [[nodiscard]] std::string get(const std::string& path) {
        return ask("GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    }

    std::atomic<bool> live_ = true;
    std::atomic<bool> ready_ = true;
    base::metrics::Registry registry_;
    boost::asio::io_context context_;
    std::unique_ptr<HealthServer> server_;
};

TEST_F(HealthServerTest, TellsLivenessReadinessAndHealthApart) {
    start({});
    EXPECT_THAT(get("/livez"), AllOf(StartsWith("HTTP/1.1 200"), EndsWith(R"({"live":true})")));
    EXPECT_THAT(get("/readyz?verbose"),
                AllOf(StartsWith("HTTP/1.1 200"), EndsWith(R"({"ready":true})")));
    ready_ = false;
    EXPECT_THAT(get("/livez"), StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(get("/readyz"), AllOf(StartsWith("HTTP/1.1 503"), EndsWith(R"({"ready":false})")));
    live_ = false;
    EXPECT_THAT(get("/livez"), AllOf(StartsWith("HTTP/1.1 503"), EndsWith(R"({"live":false})")));
    EXPECT_THAT(get("/healthz"), AllOf(StartsWith("HTTP/1.1 200"), EndsWith(R"({"status":"ok"})")));
}

TEST_F(HealthServerTest, ServesMetrics) {
    registry_.counter("kaas_a_total", "A").add(5);
    start({});
    EXPECT_THAT(get("/metrics"),
                AllOf(StartsWith("HTTP/1.1 200"),
                      HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"),
                      EndsWith("\nkaas_a_total 5\n")));
}

TEST_F(HealthServerTest, SeveralRequestsComeOverOneConnection) {
    start({});
    EXPECT_THAT(ask("GET /livez HTTP/1.1\r\n\r\nHEAD /livez HTTP/1.1\r\n\r\n"
                    "GET /readyz HTTP/1.1\r\nConnection: close\r\n\r\n"),
                AllOf(HasSubstr(R"({"live":true}HTTP/1.1 200)"),
                      HasSubstr("13\r\n\r\nHTTP/1.1 200"), EndsWith(R"({"ready":true})")));
}

TEST_F(HealthServerTest, RefusesWhatItDoesNotServe) {
    start({});
    EXPECT_THAT(get("/"), StartsWith("HTTP/1.1 404"));
    EXPECT_THAT(ask("POST /livez HTTP/1.1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
                StartsWith("HTTP/1.1 405"));
    // Its body is not read, so its connection is not used again.
    EXPECT_THAT(ask("POST /livez HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"),
                AllOf(StartsWith("HTTP/1.1 405"), HasSubstr("Allow: GET, HEAD"),
                      HasSubstr("Connection: close")));
    EXPECT_THAT(ask("\x16\x03\x01\r\n\r\n"), StartsWith("HTTP/1.1 400"));
    EXPECT_THAT(ask("GET /livez HTTP/1.1\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n"),
                StartsWith("HTTP/1.1 400"));
}

TEST_F(HealthServerTest, ASlowClientIsCutOffAndHoldsUpNobody) {
    start({.patience = 50ms});
    tcp::socket slow = connect();
    boost::asio::write(slow, boost::asio::buffer(std::string("GET /liv")));
    EXPECT_THAT(get("/livez"), StartsWith("HTTP/1.1 200"));
    EXPECT_EQ(read_to_end(slow), "");
}

TEST_F(HealthServerTest, TooManyConnectionsAreClosed) {
    start({.connections_max = 2});
    tcp::socket one = connect();
    tcp::socket two = connect();
    tcp::socket three = connect();
    EXPECT_EQ(read_to_end(three), "");
    one.close();
    // Room again, once the server has seen the end of the first.
    for (;;) {
        if (!get("/livez").empty()) break;
    }
}

TEST_F(HealthServerTest, APortThatIsTakenIsAnError) {
    start({});
    auto second =
        HealthServer::start({.host = "127.0.0.1", .port = server_->port()}, registry_, {});
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::kAddressInUse);
    auto foreign = HealthServer::start({.host = "192.0.2.1", .port = 0}, registry_, {});
    ASSERT_FALSE(foreign);
    EXPECT_EQ(foreign.error().code, ErrorCode::kBadAddress);
}

TEST_F(HealthServerTest, EndsWithConnectionsOpen) {
    start({});
    tcp::socket idle = connect();
    EXPECT_THAT(get("/livez"), StartsWith("HTTP/1.1 200"));
    server_.reset();
    EXPECT_EQ(read_to_end(idle), "");
}

}  // namespace
}  // namespace kaas::telemetry
