#pragma once

#include "base/clock.h"
#include "cluster/session.h"
#include "cluster/turn_thread.h"
#include "storage/error.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

namespace kaas::cluster {

/// Whether a volume answers: looks at a session on it again and again, on a thread of its own,
/// since a look may hang. A session that was ended is an answer. Thread: any; ends with the look
/// under way.
class VolumeWatch {
public:
    VolumeWatch(std::shared_ptr<Session> session, base::Clock& clock,
                std::chrono::milliseconds interval)
        : session_(std::move(session)),
          clock_(clock),
          interval_(interval),
          answered_(clock.now()),
          thread_("kaas-volume", clock, [this] { return look(); }) {
        thread_.start();
    }

    /// When the last look began that had an answer, or when this began.
    [[nodiscard]] base::Clock::Steady answered() const {
        return answered_.load(std::memory_order_relaxed);
    }

private:
    base::Clock::Steady look() {
        const auto now = clock_.now();
        const auto seen = session_->confirm();
        if (seen || seen.error().code == storage::ErrorCode::kFenced) {
            answered_.store(now, std::memory_order_relaxed);
        }
        return now + interval_;
    }

    const std::shared_ptr<Session> session_;
    base::Clock& clock_;
    const std::chrono::milliseconds interval_;
    std::atomic<base::Clock::Steady> answered_;
    TurnThread thread_;
};

}  // namespace kaas::cluster
