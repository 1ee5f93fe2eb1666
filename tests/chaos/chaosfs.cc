// A file system that passes everything through to a directory, and does harm when told to: errors,
// short writes, delays, hangs, and power cuts that lose what was not synced, bytes and names alike.
//
//     kaas_chaosfs BACKING MOUNTPOINT SOCKET
//
// Runs until SIGTERM. Who connects to SOCKET sends lines and gets `ok ...` or `error ...` for each:
//
// clang-format off
//     fail OP ERRNO COUNT GLOB    the next COUNT such operations fail (-1: all), e.g. fail fsync EIO 1 *.log
//     short COUNT GLOB            the next COUNT writes write only half
//     delay OP MICROSECONDS GLOB  each such operation takes longer
//     hang OP GLOB                such operations wait until `clear`, or until their process gets a signal
//     hold OP GLOB                such operations wait until `clear`, whatever becomes of their process
//     held                        how many wait so
//     clear                       takes all of that back
//     size BYTES                  so much fits, with what is there already; 0: no limit
//     cut                         the power fails: what was not synced is gone, everything gives EIO
//     boot                        the power is back
//     count OP                    how often it was called
// clang-format on
//
// OP is the name of a FUSE operation (write, fsync, fsyncdir, create, ...) or *. GLOB is matched
// against the path from the mount point on, with its leading slash.
//
// Unsynced bytes live in this process, so killing it loses them too. A failed fsync does what
// Linux does: the bytes can still be read, and no later fsync writes them.

#include "control.h"
#include "disk.h"
#include "harm.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <fuse3/fuse.h>
#include <fuse3/fuse_opt.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

namespace kaas::chaos {
namespace {

struct World {
    Harm harm;
    Disk disk;
};

World& world() { return *static_cast<World*>(fuse_get_context()->private_data); }
// libfuse keeps a file system's own pointer as a number.
// NOLINTBEGIN(performance-no-int-to-ptr)
Handle& handle_of(const fuse_file_info* info) { return *reinterpret_cast<Handle*>(info->fh); }
const std::string& directory_of(const fuse_file_info* info) {
    return *reinterpret_cast<std::string*>(info->fh);
}
// NOLINTEND(performance-no-int-to-ptr)
int harm(std::string_view operation, const std::string& path) {
    return -world().harm.meet(operation, path, fuse_interrupted).error;
}

// ---- The operations of FUSE.

int on_getattr(const char* path, struct stat* status, fuse_file_info* info) {
    if (path == nullptr) return world().disk.attributes(*handle_of(info).node, status);
    if (const int failed = harm("getattr", path); failed != 0) return failed;
    return world().disk.attributes(std::string(path), status);
}

int open_file(std::string_view operation, const char* path, int flags, mode_t mode,
              fuse_file_info* info) {
    if (const int failed = harm(operation, path); failed != 0) return failed;
    auto handle = std::make_unique<Handle>(Handle{.node = nullptr, .path = path});
    const int failed = world().disk.open(path, flags, mode, handle->node);
    if (failed == 0) info->fh = reinterpret_cast<std::uint64_t>(handle.release());
    return failed;
}
int on_open(const char* path, fuse_file_info* info) { return open_file("open", path, 0, 0, info); }
int on_create(const char* path, mode_t mode, fuse_file_info* info) {
    return open_file("create", path, info->flags | O_CREAT, mode, info);
}
int on_release(const char*, fuse_file_info* info) {
    delete &handle_of(info);
    return 0;
}

int on_read(const char*, char* into, std::size_t size, off_t offset, fuse_file_info* info) {
    auto& handle = handle_of(info);
    if (const int failed = harm("read", handle.path); failed != 0) return failed;
    return world().disk.read(*handle.node, into, size, static_cast<std::uint64_t>(offset));
}

int on_write(const char*, const char* bytes, std::size_t size, off_t offset, fuse_file_info* info) {
    auto& handle = handle_of(info);
    const auto verdict = world().harm.meet("write", handle.path, fuse_interrupted);
    if (verdict.error != 0) return -verdict.error;
    if (verdict.half && size > 1) size /= 2;
    const int failed = world().disk.write(*handle.node, std::string(bytes, size),
                                          static_cast<std::uint64_t>(offset));
    return failed != 0 ? failed : static_cast<int>(size);
}

int on_fsync(const char*, int, fuse_file_info* info) {
    auto& handle = handle_of(info);
    const int failed = harm("fsync", handle.path);
    if (failed != 0) world().disk.lose(*handle.node);
    return failed != 0 ? failed : world().disk.sync(*handle.node);
}

int on_truncate(const char* path, off_t size, fuse_file_info* info) {
    if (info != nullptr) return world().disk.resize(*handle_of(info).node, size);
    if (const int failed = harm("truncate", path); failed != 0) return failed;
    std::shared_ptr<Node> node;
    const int failed = world().disk.open(path, 0, 0, node);
    return failed != 0 ? failed : world().disk.resize(*node, size);
}

int on_fallocate(const char*, int mode, off_t offset, off_t length, fuse_file_info* info) {
    auto& handle = handle_of(info);
    if (const int failed = harm("fallocate", handle.path); failed != 0) return failed;
    return outcome(::fallocate(handle.node->fd, mode, offset, length));
}

int on_opendir(const char* path, fuse_file_info* info) {
    if (const int failed = harm("opendir", path); failed != 0) return failed;
    if (!fs::is_directory(world().disk.real(path))) return -ENOENT;
    info->fh = reinterpret_cast<std::uint64_t>(new std::string(path));
    return 0;
}
int on_releasedir(const char*, fuse_file_info* info) {
    delete &directory_of(info);
    return 0;
}
int on_fsyncdir(const char*, int, fuse_file_info* info) {
    const auto& path = directory_of(info);
    if (const int failed = harm("fsyncdir", path); failed != 0) return failed;
    world().disk.sync_directory(path);
    return 0;
}
int on_readdir(const char*, void* into, fuse_fill_dir_t fill, off_t, fuse_file_info* info,
               fuse_readdir_flags) {
    const auto& path = directory_of(info);
    if (const int failed = harm("readdir", path); failed != 0) return failed;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(world().disk.real(path), error)) {
        const auto name = entry.path().filename().string();
        if (!name.starts_with(".chaosfs")) fill(into, name.c_str(), nullptr, 0, {});
    }
    return -error.value();
}

int on_mkdir(const char* path, mode_t mode) {
    if (const int failed = harm("mkdir", path); failed != 0) return failed;
    return world().disk.make_directory(path, mode);
}
int on_unlink(const char* path) {
    if (const int failed = harm("unlink", path); failed != 0) return failed;
    return world().disk.remove(path, false);
}
int on_rmdir(const char* path) {
    if (const int failed = harm("rmdir", path); failed != 0) return failed;
    return world().disk.remove(path, true);
}
int on_rename(const char* from, const char* to, unsigned flags) {
    if (flags != 0) return -EINVAL;
    if (const int failed = harm("rename", from); failed != 0) return failed;
    return world().disk.rename(from, to);
}

int on_chmod(const char* path, mode_t mode, fuse_file_info*) {
    if (const int failed = harm("chmod", path); failed != 0) return failed;
    return outcome(::chmod(world().disk.real(path).c_str(), mode));
}
int on_utimens(const char* path, const timespec times[2], fuse_file_info*) {
    if (const int failed = harm("utimens", path); failed != 0) return failed;
    return outcome(::utimensat(AT_FDCWD, world().disk.real(path).c_str(), times, 0));
}
int on_statfs(const char* path, struct statvfs* status) {
    if (const int failed = harm("statfs", path); failed != 0) return failed;
    const int failed = outcome(::statvfs(world().disk.real("/").c_str(), status));
    if (failed == 0) world().disk.show_room(status);
    return failed;
}

/// Nothing is remembered by the kernel: what a cut undoes must not be seen again.
void* on_init(fuse_conn_info*, fuse_config* config) {
    config->entry_timeout = 0;
    config->attr_timeout = 0;
    config->negative_timeout = 0;
    config->hard_remove = 1;
    config->nullpath_ok = 1;
    return fuse_get_context()->private_data;
}

fuse_operations operations() {
    fuse_operations all{};
    all.getattr = on_getattr;
    all.open = on_open;
    all.create = on_create;
    all.release = on_release;
    all.read = on_read;
    all.write = on_write;
    all.fsync = on_fsync;
    all.truncate = on_truncate;
    all.fallocate = on_fallocate;
    all.opendir = on_opendir;
    all.releasedir = on_releasedir;
    all.fsyncdir = on_fsyncdir;
    all.readdir = on_readdir;
    all.mkdir = on_mkdir;
    all.unlink = on_unlink;
    all.rmdir = on_rmdir;
    all.rename = on_rename;
    all.chmod = on_chmod;
    all.utimens = on_utimens;
    all.statfs = on_statfs;
    all.init = on_init;
    return all;
}

// ---- The socket.

std::string obey(World& world, const std::string& line) {
    std::istringstream words(line);
    std::string verb;
    words >> verb;
    if (const auto answer = world.harm.obey(verb, words)) return *answer;
    if (verb == "size") {
        std::uint64_t bytes = 0;
        if (!(words >> bytes)) return "error: how large?";
        world.disk.limit_to(bytes);
    } else if (verb == "cut") {
        world.harm.set_dead(true);
        world.disk.lose_unsynced();
    } else if (verb == "boot") {
        world.harm.set_dead(false);
    } else {
        return "error: no such command";
    }
    return "ok";
}

int run(const std::string& backing, const std::string& mountpoint, const std::string& socket) {
    World world{.harm = {}, .disk = Disk(backing)};
    const auto all = operations();
    char name[] = "chaosfs";
    char* arguments[] = {name, nullptr};
    fuse_args options = FUSE_ARGS_INIT(1, arguments);
    auto* fuse = fuse_new(&options, &all, sizeof(all), &world);
    if (fuse == nullptr || fuse_mount(fuse, mountpoint.c_str()) != 0) return 1;
    fuse_set_signal_handlers(fuse_get_session(fuse));
    const int listener = listen_on(socket);
    if (listener < 0) {
        fmt::print(stderr, "{}: {}\n", socket, std::strerror(errno));
    } else {
        const Control control(listener, [&](const std::string& line) { return obey(world, line); });
        auto* threads = fuse_loop_cfg_create();
        fuse_loop_cfg_set_max_threads(threads, 128);  // some of them hang
        fuse_loop_mt(fuse, threads);
        fuse_loop_cfg_destroy(threads);
    }
    fuse_unmount(fuse);
    std::_Exit(listener < 0 ? 1 : 0);
}

}  // namespace
}  // namespace kaas::chaos

int main(int argc, char** argv) {
    if (argc != 4) {
        fmt::print(stderr, "usage: kaas_chaosfs BACKING MOUNTPOINT SOCKET\n");
        return 2;
    }
    return kaas::chaos::run(argv[1], argv[2], argv[3]);
}
