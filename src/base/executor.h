#pragma once

#include <functional>

namespace kaas::base {

/// A place where work runs: a reactor, the control thread, a thread pool.
/// Thread: `post` may be called from any thread and never blocks on I/O.
class Executor {
public:
    using Work = std::move_only_function<void()>;

    virtual ~Executor() = default;
    /// Queues `work`; work posted by one thread to a single-threaded executor runs in that order.
    virtual void post(Work work) = 0;
};

/// Runs work at once, in the caller: for tests of passive code.
class InlineExecutor final : public Executor {
public:
    void post(Work work) override { work(); }
};

}  // namespace kaas::base
