#include "bin/signals.h"

#include "base/assert.h"
#include "base/mutex.h"

#include <signal.h>
#include <unistd.h>

#include <csignal>
#include <string>

namespace kaas::bin {
namespace {

/// Sent by `lose` to this process; a stranger's is passed over.
constexpr int kLost = SIGUSR1;

/// To stop.
sigset_t requests() {
    sigset_t signals;
    sigemptyset(&signals);
    for (int signal : {SIGTERM, SIGINT}) sigaddset(&signals, signal);
    return signals;
}

sigset_t awaited() {
    sigset_t signals = requests();
    sigaddset(&signals, kLost);
    return signals;
}

}  // namespace

Signals::Signals() {
    sigset_t signals = awaited();
    KAAS_ASSERT(pthread_sigmask(SIG_BLOCK, &signals, nullptr) == 0);
    // A file that meets its limit is a failed write (EFBIG) as others are.
    for (int signal : {SIGPIPE, SIGHUP, SIGXFSZ}) std::signal(signal, SIG_IGN);
}

WakeUp Signals::wait() {
    sigset_t signals = awaited();
    while (true) {
        int signal = 0;
        KAAS_ASSERT(sigwait(&signals, &signal) == 0);
        base::MutexLock lock(mutex_);
        if (signal == kLost && !lost_) continue;
        sigset_t deadly = requests();
        pthread_sigmask(SIG_UNBLOCK, &deadly, nullptr);
        if (lost_) return {.lost = true, .why = why_};
        return {.lost = false, .why = signal == SIGINT ? "SIGINT" : "SIGTERM"};
    }
}

void Signals::lose(const std::string& why) {
    {
        base::MutexLock lock(mutex_);
        if (lost_) return;
        lost_ = true;
        why_ = why;
    }
    ::kill(::getpid(), kLost);  // blocked in every thread: the wait of the main thread takes it
}

}  // namespace kaas::bin
