// A library for LD_PRELOAD that counts what a broker does with bytes: how many come from sockets,
// how many memcpy and memmove move about, how many go to files and from which memory, how many
// leave through send and how many through sendfile. Writes JSON to $COPY_COUNT_OUT when the process
// ends. See zero_copy. Nothing here may allocate or call memcpy: it stands below everything else.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

/// Copies below this are fields, names and headers; a batch of the runs in zero_copy is larger.
constexpr size_t kLarge = 1024;
constexpr size_t kPage = 4096;

struct Counter {
    std::atomic<uint64_t> calls = 0;
    std::atomic<uint64_t> bytes = 0;

    void add(uint64_t count) {
        calls.fetch_add(1, std::memory_order_relaxed);
        bytes.fetch_add(count, std::memory_order_relaxed);
    }
};

Counter from_socket, small_copies, large_copies, to_file, to_file_as_received, to_socket, sendfiles,
    from_file;

/// Pages that a socket was read into; and call sites of large copies. Open addressing, never
/// emptied.
template <size_t kSize>
class AddressSet {
public:
    /// The slot of the key, which is taken if need be; kSize if the table is full.
    size_t put(uint64_t key) {
        for (size_t probe = 0; probe < kSize; ++probe) {
            const auto slot = (key * 0x9E3779B97F4A7C15ULL + probe) % kSize;
            uint64_t found = keys_[slot].load(std::memory_order_relaxed);
            if (found == 0 && keys_[slot].compare_exchange_strong(found, key)) return slot;
            if (found == key) return slot;
        }
        return kSize;
    }
    bool has(uint64_t key) const {
        for (size_t probe = 0; probe < kSize; ++probe) {
            const auto found = keys_[(key * 0x9E3779B97F4A7C15ULL + probe) % kSize].load(
                std::memory_order_relaxed);
            if (found == 0) return false;
            if (found == key) return true;
        }
        return false;
    }
    uint64_t key(size_t slot) const { return keys_[slot].load(); }

private:
    std::array<std::atomic<uint64_t>, kSize> keys_{};
};

AddressSet<1 << 20> received_pages;
AddressSet<256> copy_sites;
std::array<Counter, 257> copies_of_site;

uint64_t page_of(const void* address) { return reinterpret_cast<uint64_t>(address) / kPage; }

void note_received(const void* address, size_t size) {
    const auto* bytes = static_cast<const char*>(address);
    for (size_t at = 0; at < size; at += kPage) received_pages.put(page_of(bytes + at));
    if (size > 0) received_pages.put(page_of(bytes + size - 1));
}

void note_copy(size_t size, const void* site) {
    if (size < kLarge) {
        small_copies.add(size);
        return;
    }
    large_copies.add(size);
    copies_of_site[copy_sites.put(reinterpret_cast<uint64_t>(site))].add(size);
}

bool is_socket(int fd) {
    struct stat status{};
    return fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);
}

void note_written(int fd, const void* data, size_t size) {
    if (is_socket(fd)) {
        to_socket.add(size);
        return;
    }
    to_file.add(size);
    if (size > 0 && received_pages.has(page_of(data))) to_file_as_received.add(size);
}

/// The first `done` bytes of the pieces, each with its part.
template <typename Note>
void for_pieces(const iovec* pieces, size_t count, ssize_t done, Note note) {
    for (size_t i = 0; i < count && done > 0; ++i) {
        const auto part = static_cast<ssize_t>(pieces[i].iov_len) < done
                              ? static_cast<ssize_t>(pieces[i].iov_len)
                              : done;
        note(pieces[i].iov_base, static_cast<size_t>(part));
        done -= part;
    }
}

void note_read(int fd, const iovec* pieces, size_t count, ssize_t done) {
    if (done <= 0) return;
    if (!is_socket(fd)) {
        from_file.add(static_cast<uint64_t>(done));
        return;
    }
    from_socket.add(static_cast<uint64_t>(done));
    for_pieces(pieces, count, done, note_received);
}

template <typename Function>
Function* next(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

void print_counter(FILE* out, const char* name, const Counter& counter) {
    std::fprintf(out, "\"%s\":{\"calls\":%lu,\"bytes\":%lu},", name, counter.calls.load(),
                 counter.bytes.load());
}

struct Report {
    ~Report() {
        const char* path = std::getenv("COPY_COUNT_OUT");
        FILE* out = path != nullptr ? std::fopen(path, "we") : nullptr;
        if (out == nullptr) return;
        std::fputc('{', out);
        print_counter(out, "from_socket", from_socket);
        print_counter(out, "to_socket", to_socket);
        print_counter(out, "sendfile", sendfiles);
        print_counter(out, "to_file", to_file);
        print_counter(out, "to_file_as_received", to_file_as_received);
        print_counter(out, "from_file", from_file);
        print_counter(out, "small_copies", small_copies);
        print_counter(out, "large_copies", large_copies);
        std::fputs("\"sites\":[", out);
        bool first = true;
        for (size_t slot = 0; slot < 256; ++slot) {
            Dl_info info{};
            // NOLINTNEXTLINE(performance-no-int-to-ptr): an address was put in.
            const auto* site = reinterpret_cast<const char*>(copy_sites.key(slot));
            if (site == nullptr || dladdr(site, &info) == 0) continue;
            std::fprintf(out, "%s{\"module\":\"%s\",\"offset\":%ld,\"calls\":%lu,\"bytes\":%lu}",
                         first ? "" : ",", info.dli_fname,
                         site - static_cast<const char*>(info.dli_fbase),
                         copies_of_site[slot].calls.load(), copies_of_site[slot].bytes.load());
            first = false;
        }
        std::fputs("]}\n", out);
        std::fclose(out);
    }
} report;

void* copy_forward(void* to, const void* from, size_t size) {
    void* result = to;
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
    return result;
}

void* copy_backward(void* to, const void* from, size_t size) {
    void* result = to;
    auto* last_to = static_cast<char*>(to) + size - 1;
    const auto* last_from = static_cast<const char*>(from) + size - 1;
    asm volatile("std\n\trep movsb\n\tcld"
                 : "+D"(last_to), "+S"(last_from), "+c"(size)
                 :
                 : "memory");
    return result;
}

void* move(void* to, const void* from, size_t size) {
    const auto distance = reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from);
    return distance >= size ? copy_forward(to, from, size) : copy_backward(to, from, size);
}

}  // namespace

extern "C" {

void* memcpy(void* to, const void* from, size_t size) noexcept {
    note_copy(size, __builtin_return_address(0));
    return copy_forward(to, from, size);
}
void* memmove(void* to, const void* from, size_t size) noexcept {
    note_copy(size, __builtin_return_address(0));
    return size == 0 ? to : move(to, from, size);
}
// NOLINTNEXTLINE(readability-identifier-naming): the name is the C library's.
void* __memcpy_chk(void* to, const void* from, size_t size, size_t) noexcept {
    note_copy(size, __builtin_return_address(0));
    return copy_forward(to, from, size);
}
// NOLINTNEXTLINE(readability-identifier-naming): the name is the C library's.
void* __memmove_chk(void* to, const void* from, size_t size, size_t) noexcept {
    note_copy(size, __builtin_return_address(0));
    return size == 0 ? to : move(to, from, size);
}

ssize_t recv(int fd, void* data, size_t size, int flags) {
    static auto* real = next<decltype(recv)>("recv");
    const auto done = real(fd, data, size, flags);
    const iovec piece{data, size};
    if ((flags & MSG_PEEK) == 0) note_read(fd, &piece, 1, done);
    return done;
}
ssize_t recvmsg(int fd, msghdr* message, int flags) {
    static auto* real = next<decltype(recvmsg)>("recvmsg");
    const auto done = real(fd, message, flags);
    if ((flags & MSG_PEEK) == 0) note_read(fd, message->msg_iov, message->msg_iovlen, done);
    return done;
}
ssize_t read(int fd, void* data, size_t size) {
    static auto* real = next<decltype(read)>("read");
    const auto done = real(fd, data, size);
    const iovec piece{data, size};
    note_read(fd, &piece, 1, done);
    return done;
}
ssize_t readv(int fd, const iovec* pieces, int count) {
    static auto* real = next<decltype(readv)>("readv");
    const auto done = real(fd, pieces, count);
    note_read(fd, pieces, static_cast<size_t>(count), done);
    return done;
}
ssize_t pread(int fd, void* data, size_t size, off_t offset) {
    static auto* real = next<decltype(pread)>("pread");
    const auto done = real(fd, data, size, offset);
    if (done > 0) from_file.add(static_cast<uint64_t>(done));
    return done;
}
ssize_t preadv(int fd, const iovec* pieces, int count, off_t offset) {
    static auto* real = next<decltype(preadv)>("preadv");
    const auto done = real(fd, pieces, count, offset);
    if (done > 0) from_file.add(static_cast<uint64_t>(done));
    return done;
}
ssize_t preadv2(int fd, const iovec* pieces, int count, off_t offset, int flags) {
    static auto* real = next<decltype(preadv2)>("preadv2");
    const auto done = real(fd, pieces, count, offset, flags);
    if (done > 0) from_file.add(static_cast<uint64_t>(done));
    return done;
}

ssize_t send(int fd, const void* data, size_t size, int flags) {
    static auto* real = next<decltype(send)>("send");
    const auto done = real(fd, data, size, flags);
    if (done > 0) to_socket.add(static_cast<uint64_t>(done));
    return done;
}
ssize_t sendmsg(int fd, const msghdr* message, int flags) {
    static auto* real = next<decltype(sendmsg)>("sendmsg");
    const auto done = real(fd, message, flags);
    if (done > 0) to_socket.add(static_cast<uint64_t>(done));
    return done;
}
ssize_t write(int fd, const void* data, size_t size) {
    static auto* real = next<decltype(write)>("write");
    const auto done = real(fd, data, size);
    if (done > 0) note_written(fd, data, static_cast<size_t>(done));
    return done;
}
ssize_t writev(int fd, const iovec* pieces, int count) {
    static auto* real = next<decltype(writev)>("writev");
    const auto done = real(fd, pieces, count);
    for_pieces(pieces, static_cast<size_t>(count), done,
               [fd](const void* data, size_t size) { note_written(fd, data, size); });
    return done;
}
ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
    static auto* real = next<decltype(pwrite)>("pwrite");
    const auto done = real(fd, data, size, offset);
    if (done > 0) note_written(fd, data, static_cast<size_t>(done));
    return done;
}
ssize_t pwritev(int fd, const iovec* pieces, int count, off_t offset) {
    static auto* real = next<decltype(pwritev)>("pwritev");
    const auto done = real(fd, pieces, count, offset);
    for_pieces(pieces, static_cast<size_t>(count), done,
               [fd](const void* data, size_t size) { note_written(fd, data, size); });
    return done;
}
ssize_t pwritev2(int fd, const iovec* pieces, int count, off_t offset, int flags) {
    static auto* real = next<decltype(pwritev2)>("pwritev2");
    const auto done = real(fd, pieces, count, offset, flags);
    for_pieces(pieces, static_cast<size_t>(count), done,
               [fd](const void* data, size_t size) { note_written(fd, data, size); });
    return done;
}
ssize_t sendfile(int to, int from, off_t* offset, size_t size) {
    static auto* real = next<decltype(sendfile)>("sendfile");
    const auto done = real(to, from, offset, size);
    if (done > 0) sendfiles.add(static_cast<uint64_t>(done));
    return done;
}

}  // extern "C"
