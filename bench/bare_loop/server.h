#pragma once

#include "bare_loop/committer.h"
#include "bare_loop/connection.h"
#include "bare_loop/topics.h"
#include "common/api.h"

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace kaas::bench {

/// The network thread: just enough of Kafka that bench/load can drive it, with the system calls of
/// a broker and nothing else. It trusts its requests.
class Server {
public:
    Server(uint16_t port, Topics& topics, Committer& committer);

    [[nodiscard]] uint16_t port() const { return port_; }
    /// Until `stop_fd` becomes readable.
    void run(int stop_fd);

private:
    /// A fetch that found nothing, asked again after each commit until its time is over.
    struct Parked {
        uint64_t connection;
        std::string request;
        int64_t until_ms;
    };

    void watch(int fd, uint64_t key);
    void accept_all();
    void serve(BareConnection& connection, uint32_t events);
    void handle(BareConnection& connection, const Frame& frame);
    void produce(BareConnection& connection, int32_t correlation_id, const Frame& frame,
                 size_t body_at);
    /// False if there is nothing to read and the request can wait.
    bool fetch(BareConnection& connection, std::string_view request, bool may_park);
    std::string answer_simple(Api api, int16_t version, Reader& body);
    void complete();
    void retry_parked();
    void flush(BareConnection& connection);

    Topics& topics_;
    Committer& committer_;
    Fd listener_;
    Fd epoll_;
    uint16_t port_ = 0;
    uint64_t next_id_;
    std::unordered_map<uint64_t, std::unique_ptr<BareConnection>> connections_;
    std::vector<Parked> parked_;
    Work work_;  // of the present turn
};

}  // namespace kaas::bench
