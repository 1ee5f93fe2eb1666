#pragma once

#include <fmt/format.h>

#include <asm-generic/errno.h>
#include <fnmatch.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace kaas::chaos {

/// Those that tests inject, by the names that they have in C.
inline std::optional<int> errno_of(std::string_view name) {
    static constexpr std::pair<std::string_view, int> kNames[] = {
        {"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT},
        {"EMFILE", EMFILE}, {"EROFS", EROFS},   {"ESTALE", ESTALE},
        {"EACCES", EACCES}, {"ENOENT", ENOENT}, {"EAGAIN", EAGAIN},
    };
    for (const auto& [text, number] : kNames) {
        if (text == name) return number;
    }
    return std::nullopt;
}

/// What is to happen to which operations. Thread: any.
class Harm {
public:
    struct Rule {
        enum class Kind { kFail, kShort, kDelay, kHang, kHold } kind;
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

    /// Waits as long as the rules say, or until `interrupted`, then gives what becomes of the
    /// operation.
    template <typename Interrupted>
    Verdict meet(std::string_view operation, const std::string& path, Interrupted interrupted) {
        std::unique_lock lock(mutex_);
        ++counts_[std::string(operation)];
        while (find(Rule::Kind::kHang, operation, path) != nullptr) {
            released_.wait_for(lock, std::chrono::milliseconds(50));
            if (interrupted() != 0) return {.error = EINTR};
        }
        while (find(Rule::Kind::kHold, operation, path) != nullptr) {
            ++held_;
            released_.wait(lock);
            --held_;
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

    /// What is answered to a line about rules; none for one that is about something else.
    std::optional<std::string> obey(const std::string& verb, std::istringstream& words) {
        using Kind = Rule::Kind;
        Rule rule{.kind = Kind::kFail, .operation = "write", .glob = {}};
        if (verb == "fail") {
            std::string name;
            words >> rule.operation >> name >> rule.left >> rule.glob;
            const auto error = errno_of(name);
            if (!error) return "error: no such errno";
            rule.error = *error;
        } else if (verb == "short") {
            rule.kind = Kind::kShort;
            words >> rule.left >> rule.glob;
        } else if (verb == "delay") {
            rule.kind = Kind::kDelay;
            std::int64_t microseconds = 0;
            words >> rule.operation >> microseconds >> rule.glob;
            rule.delay = std::chrono::microseconds(microseconds);
        } else if (verb == "hang" || verb == "hold") {
            rule.kind = verb == "hang" ? Kind::kHang : Kind::kHold;
            words >> rule.operation >> rule.glob;
        } else if (verb == "clear") {
            clear();
            return "ok";
        } else if (verb == "count") {
            words >> rule.operation;
            return fmt::format("ok {}", count(rule.operation));
        } else if (verb == "held") {
            const std::lock_guard lock(mutex_);
            return fmt::format("ok {}", held_);
        } else {
            return std::nullopt;
        }
        if (words.fail() || rule.glob.empty()) return "error: words are missing";
        const std::lock_guard lock(mutex_);
        rules_.push_back(std::move(rule));
        return "ok";
    }

    /// Whether such an operation would wait for a `clear` now.
    bool hangs(std::string_view operation, const std::string& path) {
        const std::lock_guard lock(mutex_);
        return find(Rule::Kind::kHang, operation, path) != nullptr;
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
    int held_ = 0;
    bool dead_ = false;
};

}  // namespace kaas::chaos
