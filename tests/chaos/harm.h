#pragma once

#include <fnmatch.h>
#include <fuse3/fuse.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace kaas::chaos {

/// What is to happen to which operations. Thread: any.
class Harm {
public:
    struct Rule {
        enum class Kind { kFail, kShort, kDelay, kHang } kind;
        std::string operation;
        std::string glob;
        int error = 0;
        std::int64_t left = -1;  ///< so often; -1: always
        std::chrono::microseconds delay{0};
    };
    struct Verdict {
        int error = 0;
        bool half = false;
    };

    /// Waits as long as the rules say, then gives what becomes of the operation.
    Verdict meet(std::string_view operation, const std::string& path) {
        std::unique_lock lock(mutex_);
        ++counts_[std::string(operation)];
        while (find(Rule::Kind::kHang, operation, path) != nullptr) {
            released_.wait_for(lock, std::chrono::milliseconds(50));
            if (fuse_interrupted()) return {.error = EINTR};
        }
        if (const auto* rule = find(Rule::Kind::kDelay, operation, path)) {
            const auto delay = rule->delay;
            lock.unlock();
            std::this_thread::sleep_for(delay);
            lock.lock();
        }
        if (dead_) return {.error = EIO};
        if (auto* rule = find(Rule::Kind::kFail, operation, path)) {
            spend(*rule);
            return {.error = rule->error};
        }
        if (auto* rule = find(Rule::Kind::kShort, operation, path)) {
            spend(*rule);
            return {.half = true};
        }
        return {};
    }

    void add(Rule rule) {
        const std::lock_guard lock(mutex_);
        rules_.push_back(std::move(rule));
    }
    void clear() {
        const std::lock_guard lock(mutex_);
        rules_.clear();
        released_.notify_all();
    }
    void set_dead(bool dead) {
        const std::lock_guard lock(mutex_);
        dead_ = dead;
    }
    std::uint64_t count(const std::string& operation) {
        const std::lock_guard lock(mutex_);
        return counts_[operation];
    }

private:
    Rule* find(Rule::Kind kind, std::string_view operation, const std::string& path) {
        for (auto& rule : rules_) {
            const bool named = rule.operation == "*" || rule.operation == operation;
            if (rule.kind == kind && rule.left != 0 && named &&
                ::fnmatch(rule.glob.c_str(), path.c_str(), 0) == 0)
                return &rule;
        }
        return nullptr;
    }
    static void spend(Rule& rule) {
        if (rule.left > 0) --rule.left;
    }

    std::mutex mutex_;
    std::condition_variable released_;
    std::deque<Rule> rules_;
    std::map<std::string, std::uint64_t> counts_;
    bool dead_ = false;
};

}  // namespace kaas::chaos
