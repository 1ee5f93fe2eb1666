// A file system that plays NFS: each mount is a machine with caches of its own, all are of one
// server.
//
//     kaas_nfsfs SOCKET MOUNTPOINT...
//
// Runs until SIGTERM; all is in its memory. Who connects to SOCKET sends lines and gets `ok ...` or
// `error ...` for each. Clients are numbered from 1 in the order of the mount points; CLIENT may
// also be * (all: a server that fails or stalls).
//
// clang-format off
//     cache CLIENT FILE_MS DIRECTORY_MS      how long attributes and names are believed (acregmax, acdirmax)
//     writeback CLIENT eager|lazy|torn       when others see what is written: at once, at a sync, half and half
//     fail|short|delay|hang|hold|held|clear CLIENT ... as chaosfs.cc has them
//     count CLIENT OP                        how often it was called
//     die CLIENT                             the machine loses what it had in memory; all gives EIO
//     revive CLIENT
//     restart                                the server comes up again, without what dead clients had not synced
//     crash                                  the same, and without names whose directory was not synced
//     delegations off                        (from the start)
//     delegations recall LEASE_MS            changes by others wait until the holder answers, or so long
//     delegations withhold                   nobody waits; the holder believes what it knew
//     size BYTES                             so much fits; 0: no limit
// clang-format on
//
// The kernel caches attributes for as long as CLIENT believes them, so that a forced look
// (AT_STATX_FORCE_SYNC) comes here as one does to an NFS server. Everything else is decided here.

#include "control.h"
#include "harm.h"
#include "nfs_client.h"
#include "nfs_server.h"
#include "nfs_world.h"

#include <fmt/format.h>

#include <asm-generic/errno.h>
#include <fcntl.h>
#include <fuse3/fuse_lowlevel.h>
#include <fuse3/fuse_opt.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace kaas::chaos {
namespace {

/// An open file or directory.
struct Open {
    int life;
    std::vector<std::string> names;
};
// libfuse keeps a file system's own pointer as a number.
// NOLINTNEXTLINE(performance-no-int-to-ptr)
Open* open_of(const fuse_file_info* info) { return reinterpret_cast<Open*>(info->fh); }

struct stat status_of(const Attributes& found) {
    struct stat status{};
    status.st_ino = found.number;
    status.st_mode = found.mode;
    status.st_nlink = found.is_directory() ? 2 : 1;
    status.st_size = static_cast<off_t>(found.size);
    status.st_blocks = (status.st_size + 511) / 512;
    status.st_mtim = status.st_ctim = status.st_atim = found.modified;
    return status;
}
fuse_entry_param entry_of(const Attributes& found, double seconds) {
    fuse_entry_param entry{};
    entry.ino = found.number;
    entry.generation = 1;
    entry.attr = status_of(found);
    entry.attr_timeout = seconds;
    return entry;
}

// ---- The operations of FUSE.

void on_lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
    Call call(request);
    Attributes found;
    double seconds = 0;
    call.run(
        "lookup", parent, name,
        [&](auto&) {
            const int failed = call.client().lookup(parent, name, found);
            seconds = call.client().seconds_left(found.number);
            return failed;
        },
        [&] {
            const auto entry = entry_of(found, seconds);
            fuse_reply_entry(request, &entry);
        });
}

void answer_attributes(fuse_req_t request, const Attributes& found, double seconds) {
    const auto status = status_of(found);
    fuse_reply_attr(request, &status, seconds);
}

void on_getattr(fuse_req_t request, fuse_ino_t number, fuse_file_info*) {
    Call call(request);
    Attributes found;
    double seconds = 0;
    call.run(
        "getattr", number, {},
        [&](auto&) {
            const int failed = call.client().ask(number, found);
            seconds = call.client().seconds_left(number);
            return failed;
        },
        [&] { answer_attributes(request, found, seconds); });
}

void on_setattr(fuse_req_t request, fuse_ino_t number, struct stat* wanted, int what,
                fuse_file_info*) {
    Call call(request);
    Attributes found;
    double seconds = 0;
    const auto asked = static_cast<unsigned>(what);
    const auto size = static_cast<std::uint64_t>(wanted->st_size);
    auto modified = wanted->st_mtim;
    if ((asked & FUSE_SET_ATTR_MTIME_NOW) != 0) ::clock_gettime(CLOCK_REALTIME, &modified);
    const bool stamps = (asked & (FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_MTIME_NOW)) != 0;
    call.run(
        "setattr", number, {},
        [&](auto& lock) {
            if (const int failed = call.recall(lock, number); failed != 0) return failed;
            const int failed = call.client().set(
                number, (asked & FUSE_SET_ATTR_MODE) != 0 ? &wanted->st_mode : nullptr,
                stamps ? &modified : nullptr, (asked & FUSE_SET_ATTR_SIZE) != 0 ? &size : nullptr);
            if (failed != 0) return failed;
            const int gone = call.client().ask(number, found);
            seconds = call.client().seconds_left(number);
            return gone;
        },
        [&] { answer_attributes(request, found, seconds); });
}

void on_mkdir(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) {
    Call call(request);
    Attributes made;
    call.run(
        "mkdir", parent, name,
        [&](auto&) { return call.client().create(parent, name, S_IFDIR | mode, made); },
        [&] {
            const auto entry = entry_of(made, 0);
            fuse_reply_entry(request, &entry);
        });
}

void remove(fuse_req_t request, std::string_view operation, fuse_ino_t parent, const char* name) {
    Call call(request);
    call.run(
        operation, parent, name,
        [&](auto& lock) {
            if (const int failed = call.recall(lock, parent, name); failed != 0) return failed;
            return call.client().remove(parent, name, operation == "rmdir");
        },
        [&] { fuse_reply_err(request, 0); });
}
void on_unlink(fuse_req_t request, fuse_ino_t parent, const char* name) {
    remove(request, "unlink", parent, name);
}
void on_rmdir(fuse_req_t request, fuse_ino_t parent, const char* name) {
    remove(request, "rmdir", parent, name);
}

void on_rename(fuse_req_t request, fuse_ino_t from, const char* old_name, fuse_ino_t to,
               const char* new_name, unsigned flags) {
    Call call(request);
    call.run(
        "rename", from, old_name,
        [&](auto& lock) {
            if (flags != 0) return -EINVAL;
            if (const int failed = call.recall(lock, from, old_name); failed != 0) return failed;
            if (const int failed = call.recall(lock, to, new_name); failed != 0) return failed;
            return call.client().rename(from, old_name, to, new_name);
        },
        [&] { fuse_reply_err(request, 0); });
}

void hand_out(const Call& call, fuse_file_info* info) {
    info->fh = reinterpret_cast<std::uint64_t>(new Open{.life = call.client().life, .names = {}});
    info->direct_io = 1;
}

void on_open(fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
    Call call(request);
    bool changed = false;
    call.run(
        "open", number, {},
        [&](auto& lock) {
            if (const int failed = call.recall(lock, number); failed != 0) return failed;
            if (const int failed = call.client().open(number, changed); failed != 0) return failed;
            call.delegate(number);
            hand_out(call, info);
            return 0;
        },
        [&] {
            // What the kernel believes since the lookup may be older than this open.
            if (changed) fuse_lowlevel_notify_inval_inode(call.mount().session, number, -1, 0);
            fuse_reply_open(request, info);
        });
}

void on_create(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode,
               fuse_file_info* info) {
    Call call(request);
    Attributes made;
    call.run(
        "create", parent, name,
        [&](auto&) {
            int failed = call.client().create(parent, name, S_IFREG | mode, made);
            if (failed == -EEXIST && (info->flags & O_EXCL) == 0)
                failed = call.client().lookup(parent, name, made);
            if (failed != 0) return failed;
            bool changed = false;
            if (failed = call.client().open(made.number, changed); failed != 0) return failed;
            call.delegate(made.number);
            hand_out(call, info);
            return 0;
        },
        [&] {
            const auto entry = entry_of(made, 0);
            fuse_reply_create(request, &entry, info);
        });
}

void on_release(fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
    const Call call(request);
    {
        const std::unique_ptr<Open> open(open_of(info));
        const std::lock_guard lock(call.world().mutex);
        if (open->life == call.client().life) {
            call.client().close(number);
            const auto held = call.world().delegated.find(number);
            if (held != call.world().delegated.end() && held->second == &call.mount() &&
                !call.client().has_open(number))
                call.world().delegated.erase(held);
        }
    }
    fuse_reply_err(request, 0);
}

void on_read(fuse_req_t request, fuse_ino_t number, std::size_t size, off_t offset,
             fuse_file_info*) {
    Call call(request);
    std::string read;
    call.run(
        "read", number, {},
        [&](auto&) {
            return call.client().read(number, static_cast<std::uint64_t>(offset), size, read);
        },
        [&] { fuse_reply_buf(request, read.data(), read.size()); });
}

void on_write(fuse_req_t request, fuse_ino_t number, const char* bytes, std::size_t size,
              off_t offset, fuse_file_info*) {
    Call call(request);
    call.run(
        "write", number, {},
        [&](auto&) {
            if (call.half() && size > 1) size /= 2;
            return call.client().write(number, std::string(bytes, size),
                                       static_cast<std::uint64_t>(offset));
        },
        [&] { fuse_reply_write(request, size); });
}

void sync(fuse_req_t request, fuse_ino_t number, std::string_view operation) {
    Call call(request);
    call.run(
        operation, number, {},
        [&](auto&) { return call.client().flush(number, operation == "fsync"); },
        [&] { fuse_reply_err(request, 0); });
}
/// At a close. The kernel lets nobody out of it, not even who is killed, so of a client that stalls
/// it waits for nothing: what is dirty is sent by `clear`.
void on_flush(fuse_req_t request, fuse_ino_t number, fuse_file_info*) {
    auto& mount = *static_cast<Mount*>(fuse_req_userdata(request));
    if (mount.harm.hangs("flush", "/")) {
        fuse_reply_err(request, 0);
    } else {
        sync(request, number, "flush");
    }
}
void on_fsync(fuse_req_t request, fuse_ino_t number, int, fuse_file_info*) {
    sync(request, number, "fsync");
}

void on_opendir(fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
    Call call(request);
    bool changed = false;
    call.run(
        "opendir", number, {},
        [&](auto&) {
            if (const int failed = call.client().open(number, changed); failed != 0) return failed;
            hand_out(call, info);
            for (const auto& [name, entry] : call.world().server.find(number)->entries)
                open_of(info)->names.push_back(name);
            return 0;
        },
        [&] { fuse_reply_open(request, info); });
}
void on_releasedir(fuse_req_t request, fuse_ino_t, fuse_file_info* info) {
    delete open_of(info);
    fuse_reply_err(request, 0);
}
void on_readdir(fuse_req_t request, fuse_ino_t, std::size_t size, off_t offset,
                fuse_file_info* info) {
    std::string page(size, '\0');
    std::size_t used = 0;
    const auto& names = open_of(info)->names;
    for (auto i = static_cast<std::size_t>(offset); i < names.size(); ++i) {
        struct stat unknown{};
        unknown.st_ino = i + 1;  // 0 would be no entry
        const auto more = fuse_add_direntry(request, page.data() + used, size - used,
                                            names[i].c_str(), &unknown, static_cast<off_t>(i + 1));
        if (more > size - used) break;
        used += more;
    }
    fuse_reply_buf(request, page.data(), used);
}
void on_fsyncdir(fuse_req_t request, fuse_ino_t number, int, fuse_file_info*) {
    Call call(request);
    call.run(
        "fsyncdir", number, {},
        [&](auto&) {
            auto* directory = call.world().server.find(number);
            if (directory == nullptr) return -ESTALE;
            call.world().server.sync_directory(*directory);
            return 0;
        },
        [&] { fuse_reply_err(request, 0); });
}
void on_statfs(fuse_req_t request, fuse_ino_t number) {
    Call call(request);
    struct statvfs room{};
    call.run(
        "statfs", number, {},
        [&](auto&) {
            call.world().server.show_room(room);
            return 0;
        },
        [&] { fuse_reply_statfs(request, &room); });
}

fuse_lowlevel_ops operations() {
    fuse_lowlevel_ops all{};
    all.lookup = on_lookup;
    all.getattr = on_getattr;
    all.setattr = on_setattr;
    all.mkdir = on_mkdir;
    all.unlink = on_unlink;
    all.rmdir = on_rmdir;
    all.rename = on_rename;
    all.open = on_open;
    all.create = on_create;
    all.release = on_release;
    all.read = on_read;
    all.write = on_write;
    all.flush = on_flush;
    all.fsync = on_fsync;
    all.opendir = on_opendir;
    all.releasedir = on_releasedir;
    all.readdir = on_readdir;
    all.fsyncdir = on_fsyncdir;
    all.statfs = on_statfs;
    return all;
}

// ---- The socket.

std::string obey_of_client(Mount& mount, const std::string& verb, std::istringstream words) {
    const std::lock_guard lock(mount.world.mutex);
    if (verb == "clear") mount.client.flush_all();
    if (auto answer = mount.harm.obey(verb, words)) return *answer;
    if (verb == "cache") {
        std::int64_t files = 0;
        std::int64_t directories = 0;
        if (!(words >> files >> directories)) return "error: how long?";
        mount.client.settings.files = std::chrono::milliseconds(files);
        mount.client.settings.directories = std::chrono::milliseconds(directories);
    } else if (verb == "writeback") {
        using Writeback = ClientSettings::Writeback;
        std::string kind;
        words >> kind;
        if (kind != "eager" && kind != "lazy" && kind != "torn") return "error: no such writeback";
        mount.client.settings.writeback = kind == "eager"  ? Writeback::kEager
                                          : kind == "lazy" ? Writeback::kLazy
                                                           : Writeback::kTorn;
    } else if (verb == "die") {
        mount.dead = true;
        mount.harm.set_dead(true);
        mount.client.die();
    } else if (verb == "revive") {
        mount.dead = false;
        mount.harm.set_dead(false);
    } else {
        return "error: no such command";
    }
    return "ok";
}

std::string obey_of_server(World& world, const std::string& verb, std::istringstream& words) {
    const std::lock_guard lock(world.mutex);
    if (verb == "restart" || verb == "crash") {
        std::set<int> dead;
        for (const auto& mount : world.mounts) {
            if (mount->dead) dead.insert(mount->id);
        }
        std::erase_if(world.delegated, [](const auto& held) { return held.second->dead; });
        verb == "crash" ? world.server.crash(dead) : world.server.restart(dead);
    } else if (verb == "delegations") {
        std::string kind;
        std::int64_t lease = 0;
        words >> kind >> lease;
        world.delegations = kind == "recall"     ? Delegations::kRecall
                            : kind == "withhold" ? Delegations::kWithhold
                                                 : Delegations::kOff;
        world.lease = std::chrono::milliseconds(lease);
    } else if (verb == "size") {
        std::uint64_t bytes = 0;
        if (!(words >> bytes)) return "error: how large?";
        world.server.limit_to(bytes);
    } else {
        return "";
    }
    return "ok";
}

std::string obey(World& world, const std::string& line) {
    std::istringstream words(line);
    std::string verb;
    words >> verb;
    if (auto answer = obey_of_server(world, verb, words); !answer.empty()) return answer;
    std::string number;
    words >> number;
    std::string rest;
    std::getline(words, rest);
    std::string answer = "error: no such client";
    for (const auto& mount : world.mounts) {
        if (number != "*" && number != std::to_string(mount->id)) continue;
        answer = obey_of_client(*mount, verb, std::istringstream(rest));
        if (!answer.starts_with("ok")) break;
    }
    return answer;
}

bool mount_at(Mount& mount, const fuse_lowlevel_ops& all, const char* mountpoint) {
    char name[] = "nfsfs";
    char* arguments[] = {name, nullptr};
    fuse_args options = FUSE_ARGS_INIT(1, arguments);
    mount.session = fuse_session_new(&options, &all, sizeof(all), &mount);
    return mount.session != nullptr && fuse_session_mount(mount.session, mountpoint) == 0;
}

void serve(fuse_session* session) {
    auto* threads = fuse_loop_cfg_create();
    fuse_loop_cfg_set_max_threads(threads, 128);  // some of them hang
    fuse_session_loop_mt(session, threads);
    fuse_loop_cfg_destroy(threads);
}

int run(const std::string& socket, const std::vector<const char*>& mountpoints) {
    sigset_t ending;
    ::sigemptyset(&ending);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&ending, signal);
    ::pthread_sigmask(SIG_BLOCK, &ending, nullptr);  // by every thread that follows too
    ::signal(SIGPIPE, SIG_IGN);

    World world;
    const auto all = operations();
    for (const char* mountpoint : mountpoints) {
        auto& mounts = world.mounts;
        mounts.push_back(
            std::make_unique<Mount>(world, world.server, static_cast<int>(mounts.size()) + 1));
        if (!mount_at(*mounts.back(), all, mountpoint)) return 1;
    }
    for (const auto& mount : world.mounts)
        std::thread([session = mount->session] { serve(session); }).detach();
    const int listener = listen_on(socket);
    if (listener < 0) {
        fmt::print(stderr, "{}: {}\n", socket, std::strerror(errno));
        return 1;
    }
    const Control control(listener, [&](const std::string& line) { return obey(world, line); });
    int signal = 0;
    ::sigwait(&ending, &signal);
    for (const auto& mount : world.mounts) fuse_session_unmount(mount->session);
    std::_Exit(0);
}

}  // namespace
}  // namespace kaas::chaos

int main(int argc, char** argv) {
    if (argc < 3) {
        fmt::print(stderr, "usage: kaas_nfsfs SOCKET MOUNTPOINT...\n");
        return 2;
    }
    return kaas::chaos::run(argv[1], {argv + 2, argv + argc});
}
