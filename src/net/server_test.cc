// Goal: requests of real sockets reach the handler whole and in turn, answers leave in order, and
// nobody's behaviour costs others memory or time. Method: a server on port 0 and blocking clients.
#include "net/server.h"

#include "base/thread_pool.h"
#include "net/test_client.h"

#include <gtest/gtest.h>

namespace kaas::net {
namespace {

using namespace std::chrono_literals;

class ServerTest : public testing::Test {
protected:
    ServerTest() : reactors_(2), pool_("io", 1) {}

    void start(ServerOptions options = {}) {
        server_ =
            std::make_unique<Server>(std::move(options), reactors_, handler_, pool_, registry_);
        auto port = server_->listen({.host = "127.0.0.1"});
        ASSERT_TRUE(port) << port.error().context;
        port_ = *port;
        server_->start();
    }
    [[nodiscard]] TestClient connect() const { return TestClient("127.0.0.1", port_); }

    base::metrics::Registry registry_;
    ReactorPool reactors_;
    base::ThreadPool pool_;
    ScriptedHandler handler_;
    std::unique_ptr<Server> server_;
    std::uint16_t port_ = 0;
};

TEST_F(ServerTest, AnswersARequest) {
    start();
    TestClient client = connect();
    client.send_frame("echo hello");
    EXPECT_EQ(client.receive_frame(), "hello");
}

}  // namespace
}  // namespace kaas::net
