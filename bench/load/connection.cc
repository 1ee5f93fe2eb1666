#include "load/connection.h"

#include "common/fd.h"
#include "load/messages.h"
#include "load/process.h"
#include "load/socket.h"

#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace kaas::bench {
namespace {

constexpr size_t kBufferSize = 256 << 10;
/// Requests gathered into one sendmsg, two pieces each.
constexpr size_t kGather = 16;
/// For a broker to close after we did.
constexpr int kPatienceMs = 10'000;

bool would_block() { return errno == EAGAIN || errno == EINTR; }

}  // namespace

void Workload::finished(Connection&, const InFlight& request, int64_t now) {
    latency.record(now - request.started_ns);
}

Connection::Connection(int index, const Address& address, Options options)
    : index_(index),
      options_(options),
      socket_(connect_to(address)),
      buffer_(kBufferSize),
      scratch_(options.copy_records ? kBufferSize : 0) {
    fcntl(socket_.get(), F_SETFL, fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
}

void Connection::issue(Workload& workload, int64_t started_ns) {
    auto& request = open_.emplace_back();
    request.started_ns = started_ns;
    request.correlation_id = next_correlation_id_++;
    workload.next(*this, request);
    std::memcpy(request.prefix.data(), request.frame->data(), kFramePrefix);
    const uint32_t id = htobe32(static_cast<uint32_t>(request.correlation_id));
    std::memcpy(request.prefix.data() + kFramePrefix - sizeof id, &id, sizeof id);
    ++unsent_;
}

size_t Connection::flush(Workload& workload) {
    size_t over = 0;
    while (unsent_ > 0) {
        std::array<iovec, 2 * kGather> pieces{};
        size_t count = 0;
        size_t skip = sent_bytes_;
        const auto add = [&](const char* data, size_t size) {
            const auto from = std::min(skip, size);
            skip -= from;
            if (from < size) pieces[count++] = {const_cast<char*>(data) + from, size - from};
        };
        for (size_t i = open_.size() - unsent_; i < open_.size() && count + 2 <= pieces.size();
             ++i) {
            add(open_[i].prefix.data(), kFramePrefix);
            add(open_[i].frame->data() + kFramePrefix, open_[i].frame->size() - kFramePrefix);
        }
        msghdr message{};
        message.msg_iov = pieces.data();
        message.msg_iovlen = count;
        const auto sent = sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
        if (sent < 0) {
            if (would_block()) return over;
            fail_errno("send");
        }
        sent_bytes_ += static_cast<size_t>(sent);
        while (unsent_ > 0 && sent_bytes_ >= open_[open_.size() - unsent_].frame->size()) {
            sent_bytes_ -= open_[open_.size() - unsent_].frame->size();
            --unsent_;
            if (!options_.answered) {
                finish_front(workload);
                ++over;
            }
        }
    }
    return over;
}

void Connection::finish() const {
    shutdown(socket_.get(), SHUT_WR);
    pollfd wait{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    char byte = 0;
    if (poll(&wait, 1, kPatienceMs) != 1 || recv(socket_.get(), &byte, 1, 0) != 0) {
        fail("with acks=0 the broker answered, or did not close");
    }
}

size_t Connection::receive(Workload& workload) {
    size_t over = 0;
    if (!fill()) return over;
    while (consume(workload)) {
        finish_front(workload);
        ++over;
    }
    return over;
}

void Connection::finish_front(Workload& workload) {
    ++workload.counters.requests;
    workload.finished(*this, open_.front(), now_ns());
    open_.pop_front();
}

/// One recv. False if nothing that can be parsed has come.
bool Connection::fill() {
    if (dropping_ > 0) {
        // With MSG_TRUNC, TCP drops the bytes inside the kernel.
        const auto dropped =
            options_.copy_records
                ? recv(socket_.get(), scratch_.data(), std::min(dropping_, scratch_.size()), 0)
                : recv(socket_.get(), nullptr, dropping_, MSG_TRUNC);
        if (dropped == 0) fail("the broker closed the connection");
        if (dropped < 0 && !would_block()) fail_errno("recv");
        if (dropped > 0) dropping_ -= static_cast<size_t>(dropped);
        return dropped > 0 && dropping_ == 0;
    }
    if (begin_ == end_) begin_ = end_ = 0;
    if (end_ == buffer_.size()) {
        if (begin_ > 0) {
            std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
            end_ -= begin_;
            begin_ = 0;
        } else {
            buffer_.resize(buffer_.size() * 2);
        }
    }
    const auto got = recv(socket_.get(), buffer_.data() + end_, buffer_.size() - end_, 0);
    if (got == 0) fail("the broker closed the connection");
    if (got < 0 && !would_block()) fail_errno("recv");
    if (got > 0) end_ += static_cast<size_t>(got);
    return got > 0;
}

/// Consumes one answer, if it is there.
bool Connection::consume(Workload& workload) {
    while (true) {
        const std::string_view bytes(buffer_.data() + begin_, end_ - begin_);
        if (dropping_ > 0 || bytes.size() < 4) return false;
        const auto frame_size = static_cast<size_t>(Reader(bytes).i32());
        const auto here = frame_size - cut_bytes_;
        const auto answer = bytes.substr(4, here);
        if (open_.empty()) fail("an answer that nobody asked for");
        if (answer.size() >= 4 && Reader(answer).i32() != open_.front().correlation_id) {
            fail("an answer with the wrong correlation id");
        }
        const auto parsed =
            workload.parse(*this, open_.front(), answer, answer.size() == here, cuts_);
        switch (parsed.kind) {
            case Parsed::Kind::kMore:
                if (answer.size() == here) fail("an answer that ends too early");
                return false;
            case Parsed::Kind::kCut: cut(parsed.at + 4, parsed.length); break;
            case Parsed::Kind::kDone:
                begin_ += 4 + here;
                cut_bytes_ = 0;
                cuts_ = 0;
                return true;
        }
    }
}

/// Takes `length` bytes out of the answer at begin_; those not here yet are dropped as they come.
void Connection::cut(size_t at, size_t length) {
    const auto from = begin_ + at;
    const auto here = std::min(length, end_ - from);
    std::memmove(buffer_.data() + from, buffer_.data() + from + here, end_ - from - here);
    end_ -= here;
    dropping_ = length - here;
    cut_bytes_ += length;
    ++cuts_;
}

}  // namespace kaas::bench
