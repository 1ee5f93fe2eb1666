#include "bare_loop/server.h"

#include "bare_loop/committer.h"
#include "bare_loop/connection.h"
#include "bare_loop/topics.h"
#include "common/api.h"
#include "common/batch.h"
#include "common/bytes.h"
#include "common/fd.h"

#include <asm-generic/socket.h>
#include <endian.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::bench {
namespace {

// Keys of the epoll set; connections come after them.
constexpr uint64_t kListener = 0;
constexpr uint64_t kCommitted = 1;
constexpr uint64_t kStop = 2;
constexpr uint64_t kFirstConnection = 3;

constexpr int kParkedTickMs = 10;

int64_t now_ms() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

Writer begin_answer(int32_t correlation_id, bool tags = true) {
    Writer answer;
    answer.i32(0);
    answer.i32(correlation_id);
    if (tags) answer.no_tags();
    return answer;
}

std::string finish_answer(Writer& answer, size_t bytes_elsewhere = 0) {
    answer.patch_i32(0, static_cast<int32_t>(answer.size() - 4 + bytes_elsewhere));
    return answer.take();
}

/// The fields of a request's header; the reader stands at the body after it.
struct Header {
    Api api;
    int16_t version;
    int32_t correlation_id;
};

Header read_header(Reader& reader) {
    Header header{};
    header.api = static_cast<Api>(reader.i16());
    header.version = reader.i16();
    header.correlation_id = reader.i32();
    reader.short_string();
    // ApiVersions v0 is what a ready probe sends; all else here is flexible.
    if (header.api != Api::kApiVersions || header.version >= 3) reader.skip_tags();
    return header;
}

/// Base offset and leader epoch stand before what the CRC covers.
void stamp(char* batch, int64_t base_offset) {
    const uint64_t offset = htobe64(static_cast<uint64_t>(base_offset));
    std::memcpy(batch + kBatchBaseOffsetAt, &offset, sizeof offset);
    std::memset(batch + kBatchLeaderEpochAt, 0, 4);
}

/// Checks what a broker checks of a batch on the hot path. Returns the number of its offsets.
int32_t check_batch(std::string_view batch) {
    if (batch.size() < kBatchHeaderSize || batch[kBatchMagicAt] != 2) fail("a bad batch");
    Reader crc(batch.substr(kBatchCrcAt));
    if (static_cast<uint32_t>(crc.i32()) != batch_crc(batch)) fail("a batch with a bad CRC");
    return Reader(batch.substr(kBatchLastOffsetDeltaAt)).i32() + 1;
}

struct AskedPartition {
    int32_t index;
    int64_t offset;
    int32_t max_bytes;
};

AskedPartition read_asked(Reader& reader) {
    AskedPartition asked{};
    asked.index = reader.i32();
    reader.i32();  // leader epoch
    asked.offset = reader.i64();
    reader.skip(4 + 8);  // last epoch, log start of a follower
    asked.max_bytes = reader.i32();
    reader.skip_tags();
    return asked;
}

/// Metadata v12 of the topics asked for, without brokers: bench/load knows the address.
void answer_metadata(Topics& topics, Reader& body, Writer& answer) {
    answer.i32(0);
    answer.array(0);
    answer.null();
    answer.i32(0);
    auto count = body.array();
    answer.array(count);
    for (; count > 0; --count) {
        body.id();
        const auto name = body.compact_string();
        body.skip_tags();
        const auto* topic = topics.find(name);
        if (topic == nullptr) fail("Metadata of an unknown topic");
        answer.i16(0);
        answer.compact_string(name);
        answer.id(topic->id);
        answer.i8(0);
        answer.array(topic->partitions.size());
        for (size_t i = 0; i < topic->partitions.size(); ++i) {
            answer.i16(0);
            answer.i32(static_cast<int32_t>(i));
            answer.i32(1);
            answer.i32(0);
            for (int list = 0; list < 3; ++list) answer.array(0);
            answer.no_tags();
        }
        answer.i32(INT32_MIN);
        answer.no_tags();
    }
    answer.no_tags();
}

/// One partition of a Fetch answer up to the length of its records.
Partition::Range answer_fetched(const Partition& partition, const AskedPartition& asked,
                                Writer& part) {
    const auto range = partition.find(asked.offset, static_cast<size_t>(asked.max_bytes));
    part.i32(asked.index);
    part.i16(0);
    for (int i = 0; i < 2; ++i) part.i64(partition.next_offset);
    part.i64(0);
    part.null();  // aborted transactions
    part.i32(-1);
    part.uvarint(range.size + 1);
    return range;
}

}  // namespace

Server::Server(uint16_t port, Topics& topics, Committer& committer)
    : topics_(topics),
      committer_(committer),
      listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      next_id_(kFirstConnection) {
    const int on = 1;
    setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener_.get(), generic, size) != 0 || listen(listener_.get(), 1024) != 0)
        fail_errno("listen");
    getsockname(listener_.get(), generic, &size);
    port_ = ntohs(address.sin_port);
    watch(listener_.get(), kListener);
    watch(committer_.wake_fd(), kCommitted);
}

void Server::watch(int fd, uint64_t key) {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = key}};
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) fail_errno("epoll_ctl");
}

void Server::run(int stop_fd) {
    watch(stop_fd, kStop);
    std::array<epoll_event, 256> events{};
    while (true) {
        const int wait_ms = parked_.empty() ? -1 : kParkedTickMs;
        const int count = epoll_wait(epoll_.get(), events.data(), events.size(), wait_ms);
        for (int i = 0; i < count; ++i) {
            const auto& event = events[static_cast<size_t>(i)];
            switch (event.data.u64) {
                case kListener: accept_all(); break;
                case kCommitted: complete(); break;
                case kStop: return;
                default: {
                    const auto found = connections_.find(event.data.u64);
                    if (found != connections_.end()) serve(*found->second, event.events);
                }
            }
        }
        if (!work_.empty()) committer_.submit(std::exchange(work_, {}));
        if (count == 0) retry_parked();
    }
}

void Server::accept_all() {
    while (true) {
        Fd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (socket.get() < 0) return;
        const int on = 1;
        setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        watch(socket.get(), next_id_);
        connections_.emplace(next_id_,
                             std::make_unique<BareConnection>(next_id_, std::move(socket)));
        ++next_id_;
    }
}

void Server::serve(BareConnection& connection, uint32_t events) {
    if ((events & ~EPOLLOUT) != 0 &&
        !connection.receive([&](const Frame& frame) { handle(connection, frame); })) {
        connections_.erase(connection.id());
        return;
    }
    flush(connection);
}

void Server::flush(BareConnection& connection) {
    if (!connection.flush()) {
        connections_.erase(connection.id());
        return;
    }
    const bool full = connection.wants_to_write();
    if (full == connection.watched_for_room) return;
    connection.watched_for_room = full;
    epoll_event event{.events = EPOLLIN | (full ? EPOLLOUT : 0U), .data = {.u64 = connection.id()}};
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.fd(), &event);
}

void Server::handle(BareConnection& connection, const Frame& frame) {
    const std::string_view bytes(frame.data, frame.size);
    Reader reader(bytes);
    const auto [api, version, correlation_id] = read_header(reader);
    if (api == Api::kProduce) {
        produce(connection, correlation_id, frame, reader.position());
    } else if (api == Api::kFetch) {
        fetch(connection, bytes, /*may_park=*/true);
    } else {
        auto answer = begin_answer(correlation_id, api != Api::kApiVersions);
        answer.raw(answer_simple(api, version, reader));
        connection.queue({.bytes = finish_answer(answer), .file = {}});
    }
}

void Server::produce(BareConnection& connection, int32_t correlation_id, const Frame& frame,
                     size_t body_at) {
    Reader reader({frame.data, frame.size});
    reader.skip(body_at);
    reader.compact_string();  // transactional id
    const auto acks = reader.i16();
    reader.i32();
    auto answer = begin_answer(correlation_id);
    auto topics = reader.array();
    answer.array(topics);
    for (; topics > 0; --topics) {
        const auto id = reader.id();
        auto* topic = topics_.find(id);
        answer.id(id);
        auto count = reader.array();
        answer.array(count);
        for (; count > 0; --count) {
            const auto index = reader.i32();
            const auto size = reader.uvarint() - 1;
            auto* batch = frame.data + reader.position();
            const auto bytes = reader.raw(size);
            reader.skip_tags();
            if (!reader.ok() || topic == nullptr) fail("a bad Produce request");
            auto& partition = topic->partitions.at(static_cast<size_t>(index));
            const auto records = check_batch(bytes);
            stamp(batch, partition.next_offset);
            partition.places.push_back({partition.next_offset, partition.file->place(size), size});
            work_.batches[partition.file].push_back({frame.owner, bytes});
            answer.i32(index);
            answer.i16(0);
            answer.i64(partition.next_offset);
            answer.i64(-1);
            answer.i64(0);
            answer.array(0);
            answer.null();
            answer.no_tags();
            partition.next_offset += records;
        }
        reader.skip_tags();
        answer.no_tags();
    }
    answer.i32(0);
    answer.no_tags();
    work_.tickets.push_back({connection.id(), acks == 0 ? std::string{} : finish_answer(answer)});
}

bool Server::fetch(BareConnection& connection, std::string_view request, bool may_park) {
    Reader reader(request);
    const auto header = read_header(reader);
    const auto max_wait_ms = reader.i32();
    const auto min_bytes = reader.i32();
    reader.skip(4 + 1 + 4 + 4);  // whole size, isolation, session
    std::vector<Piece> pieces;
    size_t file_bytes = 0;
    auto part = begin_answer(header.correlation_id);
    part.i32(0);  // throttle
    part.i16(0);
    part.i32(0);  // no session
    auto topics = reader.array();
    part.array(topics);
    for (; topics > 0; --topics) {
        const auto id = reader.id();
        auto* topic = topics_.find(id);
        if (topic == nullptr) fail("a Fetch of an unknown topic");
        part.id(id);
        auto count = reader.array();
        part.array(count);
        for (; count > 0; --count) {
            const auto asked = read_asked(reader);
            const auto& partition = topic->partitions.at(static_cast<size_t>(asked.index));
            const auto range = answer_fetched(partition, asked, part);
            if (range.size > 0) {
                pieces.push_back({.bytes = part.take(), .file = {}});
                pieces.push_back({.bytes = {},
                                  .file = partition.file,
                                  .position = range.position,
                                  .size = range.size});
                file_bytes += range.size;
                part = Writer();
            }
            part.no_tags();
        }
        reader.skip_tags();
        part.no_tags();
    }
    part.no_tags();
    if (std::cmp_less(file_bytes, min_bytes) && may_park && max_wait_ms > 0) {
        parked_.push_back({connection.id(), std::string(request), now_ms() + max_wait_ms});
        return false;
    }
    pieces.push_back({.bytes = part.take(), .file = {}});
    size_t size = file_bytes;
    for (const auto& piece : pieces) size += piece.bytes.size();
    const uint32_t field = htobe32(static_cast<uint32_t>(size - 4));
    std::memcpy(pieces.front().bytes.data(), &field, sizeof field);
    for (auto& piece : pieces) connection.queue(std::move(piece));
    return true;
}

void Server::complete() {
    std::vector<BareConnection*> touched;
    for (auto& ticket : committer_.take_done()) {
        const auto found = connections_.find(ticket.connection);
        if (found == connections_.end() || ticket.answer.empty()) continue;
        found->second->queue({.bytes = std::move(ticket.answer), .file = {}});
        if (std::find(touched.begin(), touched.end(), found->second.get()) == touched.end()) {
            touched.push_back(found->second.get());
        }
    }
    for (auto* connection : touched) flush(*connection);
    retry_parked();
}

void Server::retry_parked() {
    const auto now = now_ms();
    for (auto& parked : std::exchange(parked_, {})) {
        const auto found = connections_.find(parked.connection);
        if (found == connections_.end()) continue;
        const auto until = parked.until_ms;
        if (fetch(*found->second, parked.request, until > now)) {
            flush(*found->second);
        } else {
            parked_.back().until_ms = until;
        }
    }
}

std::string Server::answer_simple(Api api, int16_t version, Reader& body) {
    Writer answer;
    switch (api) {
        case Api::kApiVersions:
            answer.i16(0);
            if (version < 3) {
                answer.i32(0);
                break;
            }
            answer.array(1);
            answer.i16(static_cast<int16_t>(Api::kProduce));
            answer.i16(kProduceVersion);
            answer.i16(kProduceVersion);
            answer.no_tags();
            answer.i32(0);
            answer.no_tags();
            break;
        case Api::kCreateTopics: {
            body.array();
            const auto name = body.compact_string();
            const auto partitions = body.i32();
            const auto& topic = topics_.create(name, partitions);
            answer.i32(0);
            answer.array(1);
            answer.compact_string(name);
            answer.id(topic.id);
            answer.i16(0);
            break;
        }
        case Api::kDeleteTopics:
            body.array();
            topics_.remove(body.compact_string());
            break;
        case Api::kMetadata: answer_metadata(topics_, body, answer); break;
        default: fail("a request that the bare loop does not know");
    }
    return answer.take();
}

}  // namespace kaas::bench
