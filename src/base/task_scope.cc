#include "base/task_scope.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mutex.h"

#include <cstddef>
#include <exception>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::base {

TaskScope::Token::Token(Token&& other) noexcept
    : scope_(std::exchange(other.scope_, nullptr)), id_(other.id_) {}

TaskScope::Token& TaskScope::Token::operator=(Token&& other) noexcept {
    std::swap(scope_, other.scope_);
    std::swap(id_, other.id_);
    return *this;
}

TaskScope::Token::~Token() {
    if (scope_ != nullptr) scope_->leave(id_);
}

TaskScope::~TaskScope() {
    MutexLock lock(mutex_);
    KAAS_ASSERT(running_.empty());
}

TaskScope::Token TaskScope::enter(std::function<void()> cancel) {
    MutexLock lock(mutex_);
    if (stopping_) return {};
    std::size_t id = next_id_++;
    running_.emplace(id, std::move(cancel));
    return {this, id};
}

void TaskScope::failed(std::string_view what, const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const std::exception& e) {
        log::error("base", "{} failed: {}", what, e.what());
    } catch (...) {
        log::error("base", "{} failed with an unknown exception", what);
    }
    MutexLock lock(mutex_);
    ++failures_;
}

void TaskScope::stop() {
    std::vector<std::function<void()>> cancels;
    {
        MutexLock lock(mutex_);
        stopping_ = true;
        for (auto& [id, cancel] : running_) {
            if (cancel) cancels.push_back(std::exchange(cancel, nullptr));
        }
    }
    for (auto& cancel : cancels) cancel();
}

void TaskScope::join() {
    MutexLock lock(mutex_);
    while (!running_.empty()) empty_.wait(mutex_);
}

std::size_t TaskScope::failures() const {
    MutexLock lock(mutex_);
    return failures_;
}

void TaskScope::leave(std::size_t id) {
    MutexLock lock(mutex_);
    running_.erase(id);
    if (running_.empty()) empty_.notify_all();
}

}  // namespace kaas::base
