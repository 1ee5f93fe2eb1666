#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace kaas::chaos {

/// A socket of the file system that others connect to; -1 with errno.
inline int listen_on(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) return -1;
    path.copy(address.sun_path, path.size());
    const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return -1;
    return ::listen(listener, 4) == 0 ? listener : -1;
}

/// Obeys the lines that come over a socket, and answers each, on a thread of its own. One client at
/// a time: a test has one.
class Control {
public:
    using Obey = std::function<std::string(const std::string&)>;

    Control(int listener, Obey obey)
        : obey_(std::move(obey)), listener_(listener), thread_([this] { serve(); }) {}
    ~Control() {
        ::shutdown(listener_, SHUT_RDWR);
        {
            const std::lock_guard lock(mutex_);
            ended_ = true;
            if (client_ >= 0) ::shutdown(client_, SHUT_RDWR);
        }
        thread_.join();
    }
    Control(const Control&) = delete;
    Control& operator=(const Control&) = delete;

private:
    void serve() {
        for (;;) {
            const int client = ::accept(listener_, nullptr, nullptr);
            if (client < 0 || !hold(client)) return;
            talk(client);
            hold(-1);
            ::close(client);
        }
    }

    /// False when it ends.
    bool hold(int client) {
        const std::lock_guard lock(mutex_);
        client_ = client;
        return !ended_;
    }

    void talk(int client) {
        std::string text;
        char part[512];
        for (ssize_t got = 0; (got = ::read(client, part, sizeof(part))) > 0;) {
            text.append(part, static_cast<std::size_t>(got));
            for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
                const auto answer = obey_(text.substr(0, end)) + '\n';
                text.erase(0, end + 1);
                if (::write(client, answer.data(), answer.size()) < 0) return;
            }
        }
    }

    const Obey obey_;
    const int listener_;
    std::mutex mutex_;
    int client_ = -1;
    bool ended_ = false;
    std::thread thread_;
};

}  // namespace kaas::chaos
