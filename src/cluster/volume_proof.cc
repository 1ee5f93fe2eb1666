#include "cluster/volume_proof.h"

#include "base/bytes.h"
#include "base/result.h"
#include "base/uuid.h"
#include "cluster/error.h"
#include "cluster/volume_check.h"
#include "storage/error.h"
#include "storage/volume.h"

#include <cstddef>
#include <expected>
#include <memory>
#include <string>
#include <utility>

namespace kaas::cluster {
namespace {

std::string directory_of(const ProbeTicket& ticket) {
    return std::string(kCheckDirectory) + "/" + ticket.probe.to_string();
}
std::string file_of(const ProbeTicket& ticket) { return directory_of(ticket) + ".nonce"; }

storage::Result<std::unique_ptr<storage::DirectoryHandle>> lay_out(storage::Volume& volume,
                                                                   const ProbeTicket& ticket) {
    KAAS_TRY(storage::make_directory_if_missing(volume, std::string(kCheckDirectory)));
    KAAS_TRY(volume.make_directory(directory_of(ticket)));
    KAAS_TRY_ASSIGN(file, volume.create(file_of(ticket)));
    const auto nonce = ticket.nonce.to_string();
    const base::ByteView piece = base::as_bytes(nonce);
    KAAS_TRY(file->write_at(0, {&piece, 1}));
    KAAS_TRY(file->sync());
    KAAS_TRY(volume.sync_directory(std::string(kCheckDirectory)));
    return volume.hold(directory_of(ticket));
}

}  // namespace

Result<std::unique_ptr<Probe>> Probe::make(storage::Volume& volume) {
    const ProbeTicket ticket{.probe = base::Uuid::random(), .nonce = base::Uuid::random()};
    auto held = lay_out(volume, ticket);
    if (!held) return failed(std::move(held).error());
    return std::unique_ptr<Probe>(new Probe(volume, ticket, std::move(*held)));
}

Probe::Probe(storage::Volume& volume, ProbeTicket ticket,
             std::unique_ptr<storage::DirectoryHandle> held)
    : volume_(volume), ticket_(ticket), held_(std::move(held)) {}

Probe::~Probe() {
    // What cannot be removed is read by nobody, and names of probes are never used again.
    [[maybe_unused]] const auto unlinked = volume_.unlink(file_of(ticket_));
    [[maybe_unused]] const auto removed = volume_.remove_directory(directory_of(ticket_));
}

Result<void> Probe::confirm() {
    auto seen = held_->look();
    if (!seen) return failed(std::move(seen).error());
    if (*seen == storage::Liveness::kMarked) return {};
    return fail(ErrorCode::kUnfitVolume,
                volume_.root() + ": what another broker has marked still looks alive from here");
}

Result<void> witness(storage::Volume& volume, const ProbeTicket& ticket) {
    constexpr std::size_t kLimit = 1024;
    auto text = storage::read_whole(volume, file_of(ticket), kLimit);
    if (!text && text.error().code == storage::ErrorCode::kNotFound) {
        return fail(ErrorCode::kUnfitVolume,
                    volume.root() +
                        ": what another broker has just synced is not here: another "
                        "directory, or an old state of this one");
    }
    if (!text) return failed(std::move(text).error());
    if (*text != ticket.nonce.to_string()) {
        return fail(ErrorCode::kUnfitVolume,
                    volume.root() + ": what another broker has just synced is read otherwise");
    }
    auto marked = volume.mark(directory_of(ticket), storage::MarkKind::kRemove);
    if (!marked) return failed(std::move(marked).error());
    return {};
}

}  // namespace kaas::cluster
