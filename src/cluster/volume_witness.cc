#include "cluster/volume_witness.h"

#include "base/mutex.h"
#include "base/result.h"
#include "cluster/admin.h"
#include "cluster/error.h"
#include "cluster/link_messages.h"
#include "cluster/volume_proof.h"

#include <expected>
#include <string>
#include <utility>
#include <variant>

namespace kaas::cluster {

Result<VolumeWitness::Probes> VolumeWitness::make(const ProbeTickets& theirs) const {
    Probes probes;
    for (const auto& [name, ticket] : theirs) {
        auto* volume = volume_of_(name);
        if (volume == nullptr) continue;
        KAAS_TRY(witness(*volume, ticket));
        KAAS_TRY_ASSIGN(probe, Probe::make(*volume));
        probes.emplace(name, std::move(probe));
    }
    return probes;
}

void VolumeWitness::begin(const BrokerLife& life, ProbeTickets theirs, Reply<ProbeTickets> reply) {
    io_pool_.post([self = shared_from_this(), life, theirs = std::move(theirs),
                   reply = std::move(reply)]() mutable {
        auto probes = self->make(theirs);
        if (!probes) return std::move(reply)(std::unexpected(std::move(probes).error()));
        ProbeTickets ours;
        for (const auto& [name, probe] : *probes) ours.emplace(name, probe->ticket());
        {
            base::MutexLock lock(self->mutex_);
            std::swap(self->begun_[life.broker].probes, *probes);
            self->begun_[life.broker].process = life.process;
        }
        std::move(reply)(std::move(ours));
    });
}

void VolumeWitness::finish(const BrokerLife& life, Reply<std::monostate> reply) {
    io_pool_.post([self = shared_from_this(), life, reply = std::move(reply)]() mutable {
        Begun begun;
        {
            base::MutexLock lock(self->mutex_);
            const auto found = self->begun_.find(life.broker);
            if (found != self->begun_.end() && found->second.process == life.process) {
                begun = std::move(found->second);
                self->begun_.erase(found);
            }
        }
        if (begun.process != life.process) {
            return std::move(reply)(
                fail(ErrorCode::kStaleBroker, "what was to be witnessed is not known here"));
        }
        for (const auto& [name, probe] : begun.probes) {
            auto seen = probe->confirm();
            if (!seen) return std::move(reply)(std::unexpected(std::move(seen).error()));
        }
        std::move(reply)(std::monostate{});
    });
}

}  // namespace kaas::cluster
