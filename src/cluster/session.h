#pragma once

#include "base/ids.h"
#include "base/mutex.h"
#include "cluster/error.h"
#include "storage/session_check.h"
#include "storage/volume.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace kaas::cluster {

/// Proves, for any number of callers at once, that a held directory was still unmarked at a moment
/// after each call began.
///
/// Callers that arrive while a look runs share the next one, never the running one: it may have
/// looked before their fsync ended. So a caller waits for at most two looks, and a storm of callers
/// costs two at a time. Thread: any that may block. Invariant: once fenced, every later answer is
/// kFenced.
class SharedCheck final : public storage::SessionCheck {
public:
    /// `name` is for messages.
    SharedCheck(std::unique_ptr<storage::DirectoryHandle> held, std::string name);

    [[nodiscard]] storage::Result<void> confirm() override KAAS_EXCLUDES(mutex_);

    /// True once a check has seen the mark. False proves nothing.
    [[nodiscard]] bool fenced() const KAAS_EXCLUDES(mutex_);
    [[nodiscard]] storage::DirectoryHandle& held() { return *held_; }

private:
    /// One look, without the lock.
    void look() KAAS_REQUIRES(mutex_);

    const std::unique_ptr<storage::DirectoryHandle> held_;
    const std::string name_;

    mutable base::Mutex mutex_;
    base::CondVar finished_;
    // Looks are numbered from 1 and run one at a time.
    std::uint64_t begun_ KAAS_GUARDED_BY(mutex_) = 0;
    std::uint64_t ended_ KAAS_GUARDED_BY(mutex_) = 0;
    std::uint64_t last_good_ KAAS_GUARDED_BY(mutex_) = 0;
    storage::Error last_error_ KAAS_GUARDED_BY(mutex_){storage::ErrorCode::kIo, {}};
    bool fenced_ KAAS_GUARDED_BY(mutex_) = false;
};

inline constexpr std::string_view kSessionsDirectory = "__sessions";

/// `__sessions/<broker id>.<incarnation>`
[[nodiscard]] std::string session_path(base::BrokerId broker, const base::Incarnation& incarnation);

/// A broker's right to write on one volume (DESIGN 9): an empty directory that it made exclusively
/// and holds. Thread: any that may block.
class Session final : public storage::SessionCheck {
public:
    /// Makes and holds a session under a new incarnation; durable on return. `__sessions` must
    /// exist. Errors: kStorage.
    [[nodiscard]] static Result<std::unique_ptr<Session>> open(storage::Volume& volume,
                                                               base::BrokerId broker);

    [[nodiscard]] storage::Result<void> confirm() override { return check_.confirm(); }
    [[nodiscard]] bool fenced() const { return check_.fenced(); }
    [[nodiscard]] base::BrokerId broker() const { return broker_; }
    [[nodiscard]] const base::Incarnation& incarnation() const { return incarnation_; }

private:
    Session(base::BrokerId broker, base::Incarnation incarnation,
            std::unique_ptr<storage::DirectoryHandle> held);

    base::BrokerId broker_;
    base::Incarnation incarnation_;
    SharedCheck check_;
};

/// Ends a broker's session, whoever holds it: on success no check of that incarnation will ever be
/// good again, and nothing may be published that needs it dead before. Errors: kStorage, then the
/// holder may still live.
[[nodiscard]] Result<void> mark_session(storage::Volume& volume, base::BrokerId broker,
                                        const base::Incarnation& incarnation);

}  // namespace kaas::cluster
