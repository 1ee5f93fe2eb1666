#pragma once

#include "machine.h"
#include "storage/memory_volume.h"
#include "storage/testing_host.h"
#include "storage/volume.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kaas::simulation {

/// Whether processes run on one machine with one page cache, or each on a host of its own.
enum class Hosts { kOne, kMany };

/// How calls to the volume behave, beside what is decided at single moments.
struct DiskTemper {
    Nanos usual{300'000};          ///< a call takes up to so long
    Nanos slow{0};                 ///< and one in `slow_one_in` up to so long
    std::int64_t slow_one_in = 0;  ///< 0: none
    std::int64_t fails_one_in = 0;
    std::optional<storage::Operation> slow_kind{};  ///< of such calls each takes up to
    Nanos slow_kind_most{0};
};

class HostDisk;

/// What happens to a process at its next call of a kind.
struct Trap {
    std::size_t host;
    storage::Operation operation;
    bool after_effect;
    std::function<void(Process&)> harm;  ///< by somebody outside, while the caller waits
};

/// The shared volume: what the server has, and what each host keeps in its memory.
class SharedDisk {
public:
    SharedDisk(Hosts hosts, std::size_t count);
    ~SharedDisk();

    [[nodiscard]] HostDisk& of(std::size_t host) { return *hosts_.at(host); }
    /// What is on it, past all hosts; for the end, when nobody writes.
    [[nodiscard]] storage::Volume& server() { return server_; }
    /// A host forgets what it has not pushed out. With one machine, everything that was not synced
    /// is kept or lost by chance.
    void lose_power(std::size_t host);
    /// No call stalls, fails or is a trap any more, and none is slow.
    void heal();
    [[nodiscard]] Hosts hosts() const { return kind_; }

    DiskTemper temper;
    std::optional<Trap> trap;
    /// Called when a call is about to be made: by whom, which, where.
    std::function<void(const std::string& operation, const std::string& path)> watch;

private:
    friend class HostDisk;

    const Hosts kind_;
    storage::MemoryVolume server_{"volume"};
    std::optional<std::pair<storage::Operation, storage::Fault>> armed_;
    std::vector<std::unique_ptr<HostDisk>> hosts_;
};

/// The mount of one host: each call takes its time, before and after its effect, may hang, and may
/// fail. What a process does that is frozen or dead by then has its effect late, or never.
class HostDisk final : public storage::Volume {
public:
    HostDisk(SharedDisk& disk, std::size_t host);

    /// No call comes back until then.
    void stall_until(Nanos time) { stalled_until_ = time; }
    /// Some calls fail until then.
    void fail_until(Nanos time) { failing_until_ = time; }
    /// What the host writes back when it likes to.
    void push_out(const std::function<bool(const std::string& path)>& picked);
    void forget_cache();

    storage::Result<std::unique_ptr<storage::File>> create(const std::string& path) override;
    storage::Result<std::unique_ptr<storage::File>> create_private(
        const std::string& path) override {
        return create(path);
    }
    storage::Result<std::unique_ptr<storage::File>> open(const std::string& path,
                                                         storage::OpenMode mode) override;
    storage::Result<void> make_directory(const std::string& path) override;
    storage::Result<void> sync_directory(const std::string& path) override;
    storage::Result<void> rename(const std::string& from, const std::string& to) override;
    storage::Result<void> unlink(const std::string& path) override;
    storage::Result<void> remove_directory(const std::string& path) override;
    storage::Result<std::vector<std::string>> list(const std::string& path) override;
    storage::Result<std::unique_ptr<storage::FileLock>> lock(const std::string& path,
                                                             std::string_view text) override;
    storage::Result<std::unique_ptr<storage::DirectoryHandle>> hold(
        const std::string& path) override;
    storage::Result<void> mark(const std::string& path, storage::MarkKind kind) override;
    bool is_local() const override { return disk_.kind_ == Hosts::kOne; }
    storage::Result<storage::Space> space() override { return inner_->space(); }
    const std::string& root() const override { return inner_->root(); }

private:
    class OpenFile;
    class HeldDirectory;

    /// Waits as long as such a call takes, makes `call` in one piece, and waits again.
    template <class Call>
    auto make(storage::Operation operation, const std::string& path, Call call);
    void wait_before(storage::Operation operation, const std::string& path);
    void spring_trap(storage::Operation operation, bool after_effect);

    SharedDisk& disk_;
    const std::size_t host_;
    std::unique_ptr<storage::testing::HostVolume> cache_;  ///< none on one machine
    storage::Volume* inner_;
    Nanos stalled_until_{0};
    Nanos failing_until_{0};
};

}  // namespace kaas::simulation
