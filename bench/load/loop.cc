#include "load/loop.h"

#include "common/fd.h"
#include "load/connection.h"
#include "load/process.h"

#include <sys/epoll.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <utility>
#include <vector>

namespace kaas::bench {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
/// How long answers are waited for once the run is over.
constexpr int64_t kDrain = 30 * kSecond;

class Loop {
public:
    Loop(std::vector<std::unique_ptr<Connection>>& connections, Workload& workload,
         const Plan& plan)
        : connections_(connections), workload_(workload), plan_(plan), epoll_(epoll_create1(0)) {
        // The default slack of 50 us would blur the pace.
        prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
        for (auto& connection : connections_) {
            epoll_event event{.events = EPOLLIN, .data = {.ptr = connection.get()}};
            epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connection->fd(), &event);
            writing_.push_back(false);
        }
    }

    Measured run() {
        for (auto& connection : connections_) refill(*connection);
        next_due_ = now_ns();
        run_for(plan_.warmup_s);
        const auto before = snapshot();
        workload_.counters = {};
        workload_.latency.clear();
        run_for(plan_.seconds);
        auto after = snapshot();
        after.counters = workload_.counters;
        issuing_ = false;
        drain();
        return difference(before, after);
    }

private:
    bool paced(const Connection& connection) const {
        return plan_.rate > 0 && static_cast<size_t>(connection.index()) < plan_.paced;
    }

    void refill(Connection& connection) {
        while (!paced(connection) && issuing_ && connection.in_flight() < plan_.in_flight &&
               !enough()) {
            connection.issue(workload_, now_ns());
            ++issued_;
        }
        flush(connection);
    }

    bool enough() const { return plan_.requests > 0 && issued_ >= plan_.requests; }

    void flush(Connection& connection) {
        // With acks=0 what was sent is over, and makes room for more.
        const auto over = connection.flush(workload_);
        const auto index = static_cast<size_t>(connection.index());
        if (connection.wants_to_write() != writing_[index]) {
            writing_[index] = connection.wants_to_write();
            epoll_event event{.events = EPOLLIN | (writing_[index] ? EPOLLOUT : 0U),
                              .data = {.ptr = &connection}};
            epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.fd(), &event);
        }
        if (over > 0 && !connection.wants_to_write()) unanswered_ready_.push_back(&connection);
    }

    void issue_due() {
        if (plan_.rate <= 0 || !issuing_) return;
        const auto now = now_ns();
        for (; next_due_ <= now; next_due_ += static_cast<int64_t>(kSecond / plan_.rate)) {
            auto& connection = *connections_[next_paced_++ % plan_.paced];
            connection.issue(workload_, next_due_);
            flush(connection);
        }
    }

    void run_for(double seconds) {
        const auto end = now_ns() + static_cast<int64_t>(seconds * kSecond);
        while (now_ns() < end && !(enough() && in_flight() == 0)) {
            issue_due();
            const bool wait_for_pace = plan_.rate > 0 && issuing_;
            turn(wait_for_pace ? std::min(end, next_due_) : end);
        }
    }

    void turn(int64_t until) {
        auto wait = std::max<int64_t>(until - now_ns(), 0);
        if (!unanswered_ready_.empty()) wait = 0;
        const timespec timeout{.tv_sec = wait / kSecond, .tv_nsec = wait % kSecond};
        std::array<epoll_event, 256> events{};
        const int count =
            epoll_pwait2(epoll_.get(), events.data(), events.size(), &timeout, nullptr);
        if (count < 0 && errno != EINTR) fail("epoll_pwait2");
        for (int i = 0; i < count; ++i) {
            auto& connection = *static_cast<Connection*>(events[static_cast<size_t>(i)].data.ptr);
            if (events[static_cast<size_t>(i)].events & ~EPOLLOUT) connection.receive(workload_);
            refill(connection);
        }
        for (auto* connection : std::exchange(unanswered_ready_, {})) refill(*connection);
    }

    size_t in_flight() const {
        size_t sum = 0;
        for (const auto& connection : connections_) sum += connection->in_flight();
        return sum;
    }

    void drain() {
        const auto end = now_ns() + kDrain;
        while (in_flight() > 0) {
            if (now_ns() > end) fail("answers are missing 30 s after the end");
            turn(end);
        }
        for (const auto& connection : connections_) {
            if (!connection->answered()) connection->finish();
        }
    }

    Measured snapshot() const {
        const auto use = process_use(plan_.broker);
        return {.seconds = static_cast<double>(now_ns()) / kSecond,
                .counters = {},
                .broker_cpu_s = use.cpu_s,
                .broker_rss_mb = use.rss_mb,
                .broker_rss_peak_mb = use.rss_peak_mb,
                .own_cpu_s = own_cpu_s(),
                .other_cpu_s = machine_cpu_s()};
    }

    static Measured difference(const Measured& before, Measured after) {
        after.seconds -= before.seconds;
        after.broker_cpu_s -= before.broker_cpu_s;
        after.own_cpu_s -= before.own_cpu_s;
        after.other_cpu_s -= before.other_cpu_s + after.broker_cpu_s + after.own_cpu_s;
        after.other_cpu_s = std::max(after.other_cpu_s, 0.0);
        return after;
    }

    std::vector<std::unique_ptr<Connection>>& connections_;
    Workload& workload_;
    const Plan& plan_;
    Fd epoll_;
    std::vector<bool> writing_;
    std::vector<Connection*> unanswered_ready_;
    bool issuing_ = true;
    uint64_t issued_ = 0;
    int64_t next_due_ = 0;
    size_t next_paced_ = 0;
};

}  // namespace

Measured drive(std::vector<std::unique_ptr<Connection>>& connections, Workload& workload,
               const Plan& plan) {
    return Loop(connections, workload, plan).run();
}

}  // namespace kaas::bench
