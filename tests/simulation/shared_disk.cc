#include "shared_disk.h"

#include "base/bytes.h"
#include "machine.h"
#include "storage/error.h"
#include "storage/memory_volume.h"
#include "storage/testing_host.h"
#include "storage/volume.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::simulation {

using storage::Operation;

SharedDisk::SharedDisk(Hosts hosts, std::size_t count) : kind_(hosts) {
    server_.set_local(hosts == Hosts::kOne);
    server_.set_hook(
        [this](const storage::MemoryVolume::Step& step) -> std::optional<storage::Fault> {
            if (!armed_ || armed_->first != step.operation) return std::nullopt;
            return std::exchange(armed_, std::nullopt)->second;
        });
    for (std::size_t i = 0; i < count; ++i) {
        hosts_.push_back(std::make_unique<HostDisk>(*this, i));
    }
}

SharedDisk::~SharedDisk() = default;

void SharedDisk::lose_power(std::size_t host) {
    const Machine::Undisturbed undisturbed;
    if (kind_ == Hosts::kMany) return hosts_.at(host)->forget_cache();
    auto& machine = Machine::get();
    storage::CrashFate fate;
    if (!machine.chance(3)) {
        fate = {.seed = static_cast<std::uint64_t>(machine.pick(0, 1 << 30)),
                .holes = machine.chance(2)};
    }
    server_.crash(fate);
}

void SharedDisk::heal() {
    temper = {.usual = Nanos(200'000)};
    trap.reset();
    for (auto& host : hosts_) {
        host->stall_until(Nanos(0));
        host->fail_until(Nanos(0));
    }
}

void HostDisk::wait_before(Operation operation, const std::string& path) {
    auto& machine = Machine::get();
    const auto& temper = disk_.temper;
    if (disk_.watch) disk_.watch(std::string(storage::name_of(operation)), path);
    machine.sleep(machine.some_time(temper.usual));
    if (temper.slow_one_in > 0 && machine.chance(temper.slow_one_in)) {
        machine.sleep(machine.some_time(temper.slow));
    }
    if (temper.slow_kind == operation) machine.sleep(machine.some_time(temper.slow_kind_most));
    while (machine.now() < stalled_until_) machine.sleep(stalled_until_ - machine.now());
}

void HostDisk::spring_trap(Operation operation, bool after_effect) {
    auto& trap = disk_.trap;
    if (!trap || trap->host != host_ || trap->operation != operation ||
        trap->after_effect != after_effect) {
        return;
    }
    auto& machine = Machine::get();
    static Process outside{"trap"};
    const auto done = std::make_shared<bool>(false);
    machine.spawn(outside, "trap",
                  [&machine, done, harm = std::exchange(trap, std::nullopt)->harm,
                   victim = machine.current()->process] {
                      harm(*victim);
                      *done = true;
                      machine.wake(done.get(), true);
                  });
    while (!*done) machine.wait(done.get());
}

template <class Call>
auto HostDisk::make(Operation operation, const std::string& path, Call call) {
    auto& machine = Machine::get();
    if (machine.current() == nullptr) return call();  // the end: nobody else is there
    wait_before(operation, path);
    spring_trap(operation, false);
    auto result = [&] {
        const Machine::Undisturbed undisturbed;
        // Marks are rare, and what they fail at matters most.
        const auto one_in = operation == Operation::kMark ? 3 : 20;
        const bool fails =
            machine.now() < failing_until_
                ? machine.chance(one_in)
                : disk_.temper.fails_one_in > 0 &&
                      machine.chance(operation == Operation::kMark ? one_in
                                                                   : disk_.temper.fails_one_in);
        if (fails) {
            static constexpr storage::ErrorCode kCodes[] = {
                storage::ErrorCode::kIo, storage::ErrorCode::kIo, storage::ErrorCode::kNoSpace};
            disk_.armed_ = {operation,
                            {.code = kCodes[machine.pick(0, 2)],
                             .effect = static_cast<storage::Fault::Effect>(machine.pick(0, 2))}};
        }
        auto made = call();
        disk_.armed_.reset();
        return made;
    }();
    spring_trap(operation, true);
    if (machine.chance(4)) machine.sleep(machine.some_time(disk_.temper.usual));
    return result;
}

class HostDisk::OpenFile final : public storage::File {
public:
    OpenFile(HostDisk& disk, std::string path, std::unique_ptr<storage::File> inner)
        : disk_(disk), path_(std::move(path)), inner_(std::move(inner)) {}
    /// As with NFS, who opens it afresh elsewhere sees what was written before it was closed.
    ~OpenFile() override {
        disk_.push_out([&](const std::string& path) { return path == path_; });
    }

    storage::Result<void> write_at(std::uint64_t offset,
                                   std::span<const base::ByteView> pieces) override {
        return disk_.make(Operation::kWrite, path_,
                          [&] { return inner_->write_at(offset, pieces); });
    }
    storage::Result<std::size_t> read_at(std::uint64_t offset, base::MutableBytes into) override {
        return disk_.make(Operation::kRead, path_, [&] { return inner_->read_at(offset, into); });
    }
    storage::Result<std::size_t> try_read_at(std::uint64_t offset,
                                             base::MutableBytes into) override {
        const Machine::Undisturbed undisturbed;
        return inner_->try_read_at(offset, into);
    }
    bool cached(std::uint64_t offset, std::uint64_t length) override {
        const Machine::Undisturbed undisturbed;
        return inner_->cached(offset, length);
    }
    storage::Result<void> sync() override {
        return disk_.make(Operation::kSync, path_, [&] { return inner_->sync(); });
    }
    storage::Result<std::uint64_t> size() override {
        return disk_.make(Operation::kSize, path_, [&] { return inner_->size(); });
    }
    bool is_local() const override { return disk_.is_local(); }
    std::string path() const override { return path_; }

private:
    HostDisk& disk_;
    const std::string path_;
    const std::unique_ptr<storage::File> inner_;
};

class HostDisk::HeldDirectory final : public storage::DirectoryHandle {
public:
    HeldDirectory(HostDisk& disk, std::string path, std::unique_ptr<storage::DirectoryHandle> inner)
        : disk_(disk), path_(std::move(path)), inner_(std::move(inner)) {}

    storage::Result<storage::Liveness> look() override {
        return disk_.make(Operation::kLook, path_, [&] { return inner_->look(); });
    }
    storage::Result<void> beat(std::int64_t counter) override {
        return disk_.make(Operation::kBeat, path_, [&] { return inner_->beat(counter); });
    }
    storage::Result<std::int64_t> last_beat() override {
        return disk_.make(Operation::kLook, path_, [&] { return inner_->last_beat(); });
    }

private:
    HostDisk& disk_;
    const std::string path_;
    const std::unique_ptr<storage::DirectoryHandle> inner_;
};

HostDisk::HostDisk(SharedDisk& disk, std::size_t host)
    : disk_(disk), host_(host), inner_(&disk.server_) {
    forget_cache();
}

void HostDisk::forget_cache() {
    if (disk_.kind_ == Hosts::kOne) return;
    cache_ = std::make_unique<storage::testing::HostVolume>(disk_.server_);
    inner_ = cache_.get();
}

void HostDisk::push_out(const std::function<bool(const std::string&)>& picked) {
    if (cache_ == nullptr) return;
    const Machine::Undisturbed undisturbed;
    cache_->push_out(picked);
}

storage::Result<std::unique_ptr<storage::File>> HostDisk::create(const std::string& path) {
    auto file = make(Operation::kCreate, path, [&] { return inner_->create(path); });
    if (!file) return file;
    return std::make_unique<OpenFile>(*this, path, std::move(*file));
}

storage::Result<std::unique_ptr<storage::File>> HostDisk::open(const std::string& path,
                                                               storage::OpenMode mode) {
    auto file = make(Operation::kOpen, path, [&] { return inner_->open(path, mode); });
    if (!file) return file;
    return std::make_unique<OpenFile>(*this, path, std::move(*file));
}

storage::Result<void> HostDisk::make_directory(const std::string& path) {
    return make(Operation::kMakeDirectory, path, [&] { return inner_->make_directory(path); });
}

storage::Result<void> HostDisk::sync_directory(const std::string& path) {
    return make(Operation::kSyncDirectory, path, [&] { return inner_->sync_directory(path); });
}

storage::Result<void> HostDisk::rename(const std::string& from, const std::string& to) {
    return make(Operation::kRename, from, [&] { return inner_->rename(from, to); });
}

storage::Result<void> HostDisk::unlink(const std::string& path) {
    return make(Operation::kUnlink, path, [&] { return inner_->unlink(path); });
}

storage::Result<void> HostDisk::remove_directory(const std::string& path) {
    return make(Operation::kRemoveDirectory, path, [&] { return inner_->remove_directory(path); });
}

storage::Result<std::vector<std::string>> HostDisk::list(const std::string& path) {
    return make(Operation::kList, path, [&] { return inner_->list(path); });
}

storage::Result<std::unique_ptr<storage::FileLock>> HostDisk::lock(const std::string& path,
                                                                   std::string_view text) {
    return make(Operation::kLock, path, [&] { return inner_->lock(path, text); });
}

storage::Result<std::unique_ptr<storage::DirectoryHandle>> HostDisk::hold(const std::string& path) {
    auto held = make(Operation::kHold, path, [&] { return inner_->hold(path); });
    if (!held) return held;
    return std::make_unique<HeldDirectory>(*this, path, std::move(*held));
}

storage::Result<void> HostDisk::mark(const std::string& path, storage::MarkKind kind) {
    return make(Operation::kMark, path, [&] { return inner_->mark(path, kind); });
}

}  // namespace kaas::simulation
