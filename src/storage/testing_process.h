#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "storage/error.h"
#include "storage/log_dir.h"
#include "storage/partition_log.h"
#include "storage/session_check.h"
#include "storage/testing_log.h"
#include "storage/volume.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace kaas::storage::testing {

/// One life of a broker: from its start to its death.
struct Process final : SessionCheck {
    /// `confirm` answers the checks of its session.
    Process(Volume& volume, base::Clock& clock, std::uint64_t checkpoint_bytes,
            std::function<Result<void>(Process&)> confirm)
        : on_confirm(std::move(confirm)),
          log_dir({.volume = &volume,
                   .session = this,
                   .io_pool = &pool,
                   .io_width = 1,
                   .clock = &clock,
                   .owner = {.broker = base::BrokerId{1}, .incarnation = {base::Uuid()}},
                   .checkpoint_bytes = checkpoint_bytes}) {}

    Result<void> confirm() override {
        ++checks;
        return on_confirm(*this);
    }

    const std::function<Result<void>(Process&)> on_confirm;
    bool dead = false;
    bool fenced = false;     ///< its session is marked; it learns that from its checks
    bool disturbed = false;  ///< a fault hit it since it opened its log: its errors prove nothing
    int checks = 0;          ///< of its session
    int busy = 0;            ///< it stands in an operation, which others have interrupted
    base::InlineExecutor home;
    HeldExecutor pool;
    LogDir log_dir;
    std::shared_ptr<PartitionLog> log;
    base::Offset high_watermark{0};
};

}  // namespace kaas::storage::testing
