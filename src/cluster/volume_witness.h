#pragma once

#include "base/executor.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "base/uuid.h"
#include "cluster/admin.h"
#include "cluster/volume_proof.h"
#include "storage/volume.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace kaas::cluster {

struct BrokerLife;

/// The side of the controller's broker when another one proves its volumes (`volume_proof.h`), in
/// two steps, each on the I/O pool: it witnesses the other's probes and makes its own; when the
/// other has witnessed those, it looks. One proof a broker at a time, the last counts. Who has
/// proven itself to one broker has done so to all that have: a mark goes through to the server, and
/// each asks the server. So brokers that have joined prove nothing to a new controller.
/// Thread: any.
class VolumeWitness : public std::enable_shared_from_this<VolumeWitness> {
public:
    /// `volume_of` gives null for a volume that is not here, of which nothing is proven.
    VolumeWitness(base::Executor& io_pool,
                  std::function<storage::Volume*(const std::string&)> volume_of)
        : io_pool_(io_pool), volume_of_(std::move(volume_of)) {}

    /// Answers with its own tickets. Errors: kUnfitVolume, kStorage.
    void begin(const BrokerLife& life, ProbeTickets theirs, Reply<ProbeTickets> reply);
    /// Errors: kUnfitVolume; kStorage; kStaleBroker without a `begin` of the same life.
    void finish(const BrokerLife& life, Reply<std::monostate> reply) KAAS_EXCLUDES(mutex_);

private:
    using Probes = std::map<std::string, std::unique_ptr<Probe>>;
    [[nodiscard]] Result<Probes> make(const ProbeTickets& theirs) const;

    base::Executor& io_pool_;
    const std::function<storage::Volume*(const std::string&)> volume_of_;
    base::Mutex mutex_;
    struct Begun {
        base::Uuid process;
        Probes probes;
    };
    std::map<base::BrokerId, Begun> begun_ KAAS_GUARDED_BY(mutex_);
};

}  // namespace kaas::cluster
