#pragma once

#include "base/mutex.h"

#include <chrono>
#include <functional>
#include <thread>

namespace kaas::bin {

/// Calls `act`, on a thread of its own, when it has lived for `after`: what should have come to an
/// end by itself may hang for ever, as a thread in a system call on a volume that does not answer.
class LastResort {
public:
    LastResort(std::chrono::milliseconds after, std::function<void()> act);
    ~LastResort();
    LastResort(const LastResort&) = delete;
    LastResort& operator=(const LastResort&) = delete;

private:
    void run() KAAS_EXCLUDES(mutex_);

    const std::chrono::milliseconds after_;
    const std::function<void()> act_;
    base::Mutex mutex_;
    base::CondVar changed_;
    bool over_ KAAS_GUARDED_BY(mutex_) = false;
    std::thread thread_;
};

}  // namespace kaas::bin
