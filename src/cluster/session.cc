#include "cluster/session.h"

#include "base/ids.h"
#include "base/mutex.h"
#include "cluster/error.h"
#include "storage/error.h"
#include "storage/volume.h"

#include <expected>
#include <memory>
#include <string>
#include <utility>

namespace kaas::cluster {
SharedCheck::SharedCheck(std::unique_ptr<storage::DirectoryHandle> held, std::string name)
    : held_(std::move(held)), name_(std::move(name)) {}

storage::Result<void> SharedCheck::confirm() {
    base::MutexLock lock(mutex_);
    // The next look to begin: one that runs already may have looked before the caller's fsync
    // ended.
    const auto wanted = begun_ + 1;
    while (!fenced_ && ended_ < wanted) {
        if (begun_ > ended_) {
            finished_.wait(mutex_);
        } else {
            look();
        }
    }
    if (fenced_) return storage::fail(storage::ErrorCode::kFenced, name_ + " is marked");
    // A later look may have failed meanwhile; what a good one has proven stays proven.
    if (last_good_ >= wanted) return {};
    return std::unexpected(last_error_);
}

void SharedCheck::look() {
    const auto mine = ++begun_;
    mutex_.unlock();
    auto seen = held_->look();
    mutex_.lock();
    ended_ = mine;
    if (!seen) {
        last_error_ = std::move(seen).error();
        // Whatever the volume calls it, a look that failed has proven nothing.
        if (last_error_.code == storage::ErrorCode::kFenced)
            last_error_.code = storage::ErrorCode::kIo;
    } else if (*seen == storage::Liveness::kMarked) {
        fenced_ = true;
    } else {
        last_good_ = mine;
    }
    finished_.notify_all();
}

bool SharedCheck::fenced() const {
    base::MutexLock lock(mutex_);
    return fenced_;
}

std::string session_path(base::BrokerId broker, const base::Incarnation& incarnation) {
    return std::string(kSessionsDirectory) + "/" + std::to_string(broker.value()) + "." +
           incarnation.uuid.to_string();
}

Result<std::unique_ptr<Session>> Session::open(storage::Volume& volume, base::BrokerId broker) {
    const base::Incarnation incarnation{base::Uuid::random()};
    const auto path = session_path(broker, incarnation);
    auto made = volume.make_directory(path);
    if (made) made = volume.sync_directory(path);
    if (made) made = volume.sync_directory(std::string(kSessionsDirectory));
    if (!made) return failed(std::move(made).error());
    auto held = volume.hold(path);
    if (!held) return failed(std::move(held).error());
    return std::unique_ptr<Session>(new Session(broker, incarnation, std::move(*held)));
}

Session::Session(base::BrokerId broker, base::Incarnation incarnation,
                 std::unique_ptr<storage::DirectoryHandle> held)
    : broker_(broker),
      incarnation_(incarnation),
      check_(std::move(held), "session " + session_path(broker, incarnation)) {}

Result<void> mark_session(storage::Volume& volume, base::BrokerId broker,
                          const base::Incarnation& incarnation) {
    auto marked = volume.mark(session_path(broker, incarnation), storage::MarkKind::kRemove);
    if (!marked) return failed(std::move(marked).error());
    return {};
}

}  // namespace kaas::cluster
