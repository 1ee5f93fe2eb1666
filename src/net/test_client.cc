#include "net/test_client.h"

#include "base/bytes.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "net/exchange.h"
#include "net/reactor.h"
#include "wire/writer.h"

#include <gtest/gtest.h>

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace kaas::net {

std::string framed(std::string_view text) {
    std::string frame(4, '\0');
    base::store_be(reinterpret_cast<std::byte*>(frame.data()),
                   static_cast<std::int32_t>(text.size()));
    return frame.append(text);
}

Response text_response(std::string_view text) {
    wire::Writer writer;
    writer.raw(base::as_bytes(framed(text)));
    return {.output = writer.take(), .slices = {}};
}

TestClient::TestClient(const std::string& host, std::uint16_t port, int receive_buffer_bytes) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST;
    addrinfo* address = nullptr;
    EXPECT_EQ(::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &address), 0);
    socket_ = base::UniqueFd(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    // NOLINTBEGIN(misc-include-cleaner): <sys/socket.h> takes these from the kernel's headers
    if (receive_buffer_bytes > 0) {
        ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes,
                     sizeof(receive_buffer_bytes));
    }
    timeval patience{.tv_sec = kPatience.count(), .tv_usec = 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    // NOLINTEND(misc-include-cleaner)
    refused_ = ::connect(socket_.get(), address->ai_addr, address->ai_addrlen) != 0;
    ::freeaddrinfo(address);
}

void TestClient::send(std::string_view bytes) {
    while (!bytes.empty()) {
        auto sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) return;  // the server has closed: the test sees it when it reads
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
}

std::optional<std::string> TestClient::receive_frame() {
    std::string prefix(4, '\0');
    if (!receive(prefix.data(), prefix.size())) return std::nullopt;
    auto size = base::load_be<std::int32_t>(reinterpret_cast<const std::byte*>(prefix.data()));
    std::string content(static_cast<std::size_t>(size), '\0');
    if (!receive(content.data(), content.size())) return std::nullopt;
    return content;
}

bool TestClient::receive(char* into, std::size_t bytes) {
    while (bytes > 0) {
        auto got = ::recv(socket_.get(), into, bytes, 0);
        EXPECT_FALSE(got < 0 && errno == EAGAIN) << "no answer came";
        if (got <= 0) return false;
        into += got;
        bytes -= static_cast<std::size_t>(got);
    }
    return true;
}

void ScriptedHandler::handle(std::unique_ptr<Exchange> exchange) {
    auto text = std::string(base::as_text(exchange->frame().bytes));
    std::string word = text.substr(0, text.find(' '));
    std::string rest = word.size() < text.size() ? text.substr(word.size() + 1) : "";
    std::function<void(std::unique_ptr<Exchange>)> action;
    bool hold = word == "hold" || word == "pass";
    {
        base::MutexLock lock(mutex_);
        ++requests_;
        for (auto& [name, done] : actions_) {
            if (name == word) action = done;
        }
        if (word == "pass") exchange->pass();
        if (hold) held_.emplace_back(rest, std::move(exchange));
        changed_.notify_all();
    }
    if (hold) return;
    // NOLINTBEGIN(bugprone-use-after-move): held ones have returned
    if (action) return action(std::move(exchange));
    if (word == "echo") return exchange->respond(text_response(rest));
    if (word == "size") return exchange->respond(text_response(std::to_string(text.size())));
    if (word == "silent") return exchange->no_response();
    if (word == "close") return exchange->close("the test wants it");
    // NOLINTEND(bugprone-use-after-move)
    EXPECT_EQ(word, "drop");
}

void ScriptedHandler::disconnected(const Peer&) {
    base::MutexLock lock(mutex_);
    ++disconnects_;
    changed_.notify_all();
}

void ScriptedHandler::draining() {
    EXPECT_NE(Reactor::current(), nullptr);
    base::MutexLock lock(mutex_);
    ++drains_;
}

std::unique_ptr<Exchange> ScriptedHandler::take(const std::string& name) {
    base::MutexLock lock(mutex_);
    for (;;) {
        auto found =
            std::find_if(held_.begin(), held_.end(), [&](auto& it) { return it.first == name; });
        if (found != held_.end()) {
            auto exchange = std::move(found->second);
            held_.erase(found);
            return exchange;
        }
        EXPECT_TRUE(changed_.wait_for(mutex_, TestClient::kPatience)) << name << " did not come";
    }
}

std::unique_ptr<Exchange> ScriptedHandler::take_any() {
    base::MutexLock lock(mutex_);
    while (held_.empty()) EXPECT_TRUE(changed_.wait_for(mutex_, TestClient::kPatience));
    auto exchange = std::move(held_.front().second);
    held_.erase(held_.begin());
    return exchange;
}

void ScriptedHandler::answer(const std::string& name, std::string text) {
    auto exchange = take(name);
    Reactor& reactor = exchange->reactor();
    reactor.post([exchange = std::move(exchange), text = std::move(text)] {
        exchange->respond(text_response(text));
    });
}

void ScriptedHandler::wait_for_requests(std::size_t count) {
    base::MutexLock lock(mutex_);
    while (requests_ < count) {
        ASSERT_TRUE(changed_.wait_for(mutex_, TestClient::kPatience))
            << requests_ << " of " << count;
    }
}

void ScriptedHandler::wait_for_disconnects(std::size_t count) {
    base::MutexLock lock(mutex_);
    while (disconnects_ < count) {
        ASSERT_TRUE(changed_.wait_for(mutex_, TestClient::kPatience))
            << disconnects_ << " of " << count;
    }
}

std::size_t ScriptedHandler::requests() const {
    base::MutexLock lock(mutex_);
    return requests_;
}

std::size_t ScriptedHandler::drains() const {
    base::MutexLock lock(mutex_);
    return drains_;
}

void ScriptedHandler::on(std::string word, std::function<void(std::unique_ptr<Exchange>)> action) {
    base::MutexLock lock(mutex_);
    actions_.emplace_back(std::move(word), std::move(action));
}

}  // namespace kaas::net
