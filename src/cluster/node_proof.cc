#include "base/log.h"
#include "base/result.h"
#include "cluster/error.h"
#include "cluster/link_messages.h"
#include "cluster/node_impl.h"
#include "cluster/uplink.h"
#include "cluster/volume_check.h"
#include "cluster/volume_proof.h"
#include "cluster/volume_witness.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

/// What a node proves of its volumes before it builds on them: alone, and together with the
/// controller's broker.
namespace kaas::cluster {

/// Before anything is built on it. Errors prove nothing, and what needs the volume meets them
/// again.
Result<void> Node::Impl::check(const NamedVolume& volume) const {
    for (const auto& finding : check_volume(*volume.volume, *volume.volume)) {
        if (finding.verdict == Verdict::kGood) continue;
        auto text = fmt::format("{}: {}: {}. {}", volume.volume->root(), finding.property,
                                finding.what, finding.advice);
        if (finding.verdict == Verdict::kBad) return fail(ErrorCode::kUnfitVolume, std::move(text));
        base::log::info("cluster", "{}", text);
    }
    return {};
}

void Node::Impl::make_witness() {
    if (!options_.check_volumes || alone()) return;
    witness_ = std::make_shared<VolumeWitness>(
        *options_.io_pool, [this](const std::string& name) { return volume_of(name); });
}

/// The other half of the proof; then the registration goes on.
void Node::Impl::read(ProbeTickets asked) {
    if (role_ != Role::kFollowing || registered_) return;
    auto witnessed = witness_volumes(asked);
    if (!witnessed && witnessed.error().code == ErrorCode::kUnfitVolume) {
        return fail_start(std::move(witnessed).error());
    }
    if (!witnessed) return read(Ended{LinkEnd::kSilent, std::move(witnessed).error()});
    auto again = registration();
    if (again.proof) again.proof->witnessed = true;
    uplink_->follow(followed_, std::move(again));
}

Result<void> Node::Impl::witness_volumes(const ProbeTickets& asked) {
    for (const auto& [volume, ticket] : asked) {
        const auto probe = probes_.find(volume);
        if (probe == probes_.end()) continue;
        KAAS_TRY(probe->second->confirm());
        KAAS_TRY(witness(*volume_of(volume), ticket));
    }
    return {};
}

void Node::Impl::make_probes() {
    probes_.clear();
    if (!witness_ || joined_) return;
    for (const auto& member : members()) {
        auto probe = Probe::make(*member.volume.volume);
        if (probe) {
            probes_.emplace(member.volume.name, std::move(*probe));
        } else {
            base::log::warn("cluster", "volume '{}' is not proven: {}", member.volume.name,
                            probe.error().context);
        }
    }
}

Registration Node::Impl::registration() const {
    return {.life = {options_.id, process_},
            .cluster_id = cluster_id_,
            .broker = as_broker(),
            .proof = proof()};
}

std::optional<VolumeProof> Node::Impl::proof() const {
    if (probes_.empty()) return std::nullopt;
    VolumeProof proof;
    for (const auto& [volume, probe] : probes_) proof.tickets.emplace(volume, probe->ticket());
    return proof;
}

}  // namespace kaas::cluster
