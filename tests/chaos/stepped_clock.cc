// A wall clock that a test steps, for a process that preloads this: the system's, and as many
// seconds as stand in the file that $KAAS_STEPPED_CLOCK names (eight bytes, as the machine has
// them; read anew each time). All other clocks are as ever. Not libfaketime: that one needs a heap
// before it can tell the time, and kaas's heap asks for the time when it begins.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

const volatile std::int64_t* steps = nullptr;

[[gnu::constructor]] void find_steps() {
    const char* name = std::getenv("KAAS_STEPPED_CLOCK");
    const int file = name == nullptr ? -1 : ::open(name, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    auto* mapped = ::mmap(nullptr, sizeof *steps, PROT_READ, MAP_SHARED, file, 0);
    ::close(file);
    if (mapped != MAP_FAILED) steps = static_cast<const std::int64_t*>(mapped);
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
    const auto result = static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
    const bool is_wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    if (result == 0 && is_wall && steps != nullptr) now->tv_sec += *steps;
    return result;
}

int gettimeofday(timeval* now, void* /*zone*/) noexcept {
    timespec time{};
    const int result = clock_gettime(CLOCK_REALTIME, &time);
    *now = {.tv_sec = time.tv_sec, .tv_usec = time.tv_nsec / 1000};
    return result;
}

time_t time(time_t* now) noexcept {
    timespec time{};
    clock_gettime(CLOCK_REALTIME, &time);
    if (now != nullptr) *now = time.tv_sec;
    return time.tv_sec;
}
}
