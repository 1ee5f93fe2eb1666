#pragma once

#include "base/executor.h"
#include "broker/producer_ids.h"
#include "cluster/error.h"
#include "coordinator/transaction_slot.h"
#include "wire/error_code.h"

#include <expected>
#include <utility>

namespace kaas::broker {

/// The broker's producer ids for the coordinators. Thread: their loop.
class ProducerIdSource final : public coordinator::ProducerIdSource {
public:
    /// Nothing is asked before. Both outlive it.
    void begin(ProducerIds& ids, base::Executor& loop) {
        ids_ = &ids;
        loop_ = &loop;
    }

    void next_producer_id(Got got) override {
        ids_->next(*loop_, [got = std::move(got)](cluster::Result<base::ProducerId> id) mutable {
            if (id) return got(*id);
            // Clients repeat this one. Apache: RPCProducerIdManager, without a block.
            got(std::unexpected(wire::ErrorCode::kCoordinatorLoadInProgress));
        });
    }

private:
    ProducerIds* ids_ = nullptr;
    base::Executor* loop_ = nullptr;
};

}  // namespace kaas::broker
