#pragma once

#include "storage/session_check.h"

#include <atomic>

namespace kaas::storage {

/// A session that a test fences by hand, or leaves without an answer.
class TestingSession final : public SessionCheck {
public:
    Result<void> confirm() override {
        ++checks;
        if (fenced) return fail(ErrorCode::kFenced, "marked");
        if (silent) return fail(ErrorCode::kIo, "no answer");
        return {};
    }

    std::atomic<bool> fenced = false;
    std::atomic<bool> silent = false;
    std::atomic<int> checks = 0;
};

}  // namespace kaas::storage
