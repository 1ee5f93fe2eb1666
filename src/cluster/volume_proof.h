#pragma once

#include "base/uuid.h"
#include "cluster/error.h"
#include "storage/volume.h"

#include <functional>
#include <map>
#include <memory>
#include <string>

/// How two processes prove to each other that they have one volume before them, and that each sees
/// what the other does to it (DESIGN 9). A mount that shows a copy of the volume, or an old state
/// of it, is found before anything is built on it.
namespace kaas::cluster {

/// What one tells the other.
struct ProbeTicket {
    base::Uuid probe;  ///< the name of a directory
    base::Uuid nonce;  ///< what stands in the file beside it
    friend bool operator==(const ProbeTicket&, const ProbeTicket&) = default;
};

/// By volume.
using ProbeTickets = std::map<std::string, ProbeTicket, std::less<>>;

/// What a registration says of it.
struct VolumeProof {
    ProbeTickets tickets;
    bool witnessed = false;  ///< also what the controller's broker asked for in turn
};

/// One's own half: a directory that is held, as a session is, and a file with a nonce, both synced.
/// The other one reads the file and marks the directory; then this one looks. Removes the file at
/// its end. Thread: one at a time, one that may block.
class Probe {
public:
    /// Errors: kStorage.
    [[nodiscard]] static Result<std::unique_ptr<Probe>> make(storage::Volume& volume);
    ~Probe();
    Probe(const Probe&) = delete;
    Probe& operator=(const Probe&) = delete;

    [[nodiscard]] const ProbeTicket& ticket() const { return ticket_; }
    /// After the other one has said that it witnessed. Errors: kUnfitVolume when its mark is not
    /// seen here; kStorage.
    [[nodiscard]] Result<void> confirm();

private:
    Probe(storage::Volume& volume, ProbeTicket ticket,
          std::unique_ptr<storage::DirectoryHandle> held);

    storage::Volume& volume_;
    const ProbeTicket ticket_;
    const std::unique_ptr<storage::DirectoryHandle> held_;
};

/// The other's half. Errors: kUnfitVolume when what the ticket tells of is not here; kStorage.
[[nodiscard]] Result<void> witness(storage::Volume& volume, const ProbeTicket& ticket);

}  // namespace kaas::cluster
