#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "storage/error.h"
#include "storage/log_dir.h"
#include "storage/partition_log.h"
#include "storage/session_check.h"
#include "storage/testing_log.h"

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

namespace kaas::storage::testing {

/// One life of a broker: from its start to its death.
struct Process final : SessionCheck {
    static constexpr std::size_t kPartitions = 2;

    /// What it has of one partition.
    struct Led {
        LogPtr log;
        base::Offset high_watermark{0};
        bool disturbed = false;  ///< a fault hit since it was opened: its errors prove nothing
    };

    /// `confirm` answers the checks of its session. A log dir for each of `options`, which need not
    /// name what is the process's own.
    Process(const std::vector<LogDirOptions>& options,
            std::function<Result<void>(Process&)> confirm)
        : on_confirm(std::move(confirm)) {
        for (auto dir : options) {
            dir.session = this;
            dir.io_pool = &pool;
            dir.io_width = 1;
            log_dirs.emplace_back(dir);
        }
    }

    Result<void> confirm() override {
        ++checks;
        return on_confirm(*this);
    }

    const std::function<Result<void>(Process&)> on_confirm;
    bool dead = false;
    bool fenced = false;  ///< its session is marked; it learns that from its checks
    int checks = 0;       ///< of its session
    int busy = 0;         ///< it stands in an operation, which others have interrupted
    bool in_cycle = false;
    bool opening = false;
    base::InlineExecutor home;
    HeldExecutor pool;
    std::deque<LogDir> log_dirs;
    std::array<Led, kPartitions> led;
};

}  // namespace kaas::storage::testing
