#pragma once

#include "base/bytes.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "net/exchange.h"
#include "wire/writer.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What the tests of net share: a blocking client, and a handler that does what its requests say.
namespace kaas::net {

/// A frame with `text` as its content.
[[nodiscard]] std::string framed(std::string_view text);
[[nodiscard]] Response text_response(std::string_view text);

/// A client on a blocking socket. What takes longer than `kPatience` fails the test.
class TestClient {
public:
    static constexpr std::chrono::seconds kPatience{20};

    /// `receive_buffer_bytes` 0 is the system's.
    TestClient(const std::string& host, std::uint16_t port, int receive_buffer_bytes = 0);

    void send(std::string_view bytes);
    void send_frame(std::string_view text) { send(framed(text)); }
    /// Empty at the end of the stream, or when the connection is reset.
    [[nodiscard]] std::optional<std::string> receive_frame();
    /// True when the server has closed, and nothing came before.
    [[nodiscard]] bool at_end() { return !receive_frame().has_value(); }
    /// True when nobody listened.
    [[nodiscard]] bool refused() const { return refused_; }
    [[nodiscard]] int socket() const { return socket_.get(); }
    void close() { socket_.reset(); }

private:
    [[nodiscard]] bool receive(char* into, std::size_t bytes);
    base::UniqueFd socket_;
    bool refused_ = false;
};

/// Does what the first word of a request says:
///   echo <text>   answers <text> at once
///   size          answers the length of the request
///   hold <name>   keeps the exchange until the test takes it
///   pass <name>   as hold, but lets the next request start
///   silent        no answer
///   drop          drops the exchange
///   close         asks to close
class ScriptedHandler final : public RequestHandler {
public:
    void handle(std::unique_ptr<Exchange> exchange) override KAAS_EXCLUDES(mutex_);
    void disconnected(const Peer& peer) override KAAS_EXCLUDES(mutex_);
    void draining() override KAAS_EXCLUDES(mutex_);

    /// Waits for a held exchange.
    [[nodiscard]] std::unique_ptr<Exchange> take(const std::string& name) KAAS_EXCLUDES(mutex_);
    [[nodiscard]] std::unique_ptr<Exchange> take_any() KAAS_EXCLUDES(mutex_);
    /// Answers a held exchange, on its reactor.
    void answer(const std::string& name, std::string text) KAAS_EXCLUDES(mutex_);
    void wait_for_requests(std::size_t count) KAAS_EXCLUDES(mutex_);
    void wait_for_disconnects(std::size_t count) KAAS_EXCLUDES(mutex_);
    [[nodiscard]] std::size_t requests() const KAAS_EXCLUDES(mutex_);
    /// Reactors that were told of a drain.
    [[nodiscard]] std::size_t drains() const KAAS_EXCLUDES(mutex_);
    /// Answers requests that start with `word`.
    void on(std::string word, std::function<void(std::unique_ptr<Exchange>)> action)
        KAAS_EXCLUDES(mutex_);

private:
    mutable base::Mutex mutex_;
    base::CondVar changed_;
    std::vector<std::pair<std::string, std::unique_ptr<Exchange>>> held_ KAAS_GUARDED_BY(mutex_);
    std::vector<std::pair<std::string, std::function<void(std::unique_ptr<Exchange>)>>> actions_
        KAAS_GUARDED_BY(mutex_);
    std::size_t requests_ KAAS_GUARDED_BY(mutex_) = 0;
    std::size_t disconnects_ KAAS_GUARDED_BY(mutex_) = 0;
    std::size_t drains_ KAAS_GUARDED_BY(mutex_) = 0;
};

}  // namespace kaas::net
