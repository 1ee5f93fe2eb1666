#pragma once

#include "storage/session_check.h"

namespace kaas::storage {

/// A session that a test fences by hand.
class TestingSession final : public SessionCheck {
public:
    Result<void> confirm() override {
        ++checks;
        if (fenced) return fail(ErrorCode::kFenced, "marked");
        return {};
    }

    bool fenced = false;
    int checks = 0;
};

}  // namespace kaas::storage
