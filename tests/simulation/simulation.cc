// Runs histories of a cluster by seed, each in a process of its own, and stops at the first that
// goes wrong. See README.md.

#include "base/log.h"
#include "history.h"
#include "machine.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace kaas::simulation {

bool tracing = false;

namespace {

/// Who speaks, and when.
std::string prefix() {
    const auto& machine = Machine::get();
    const auto* fiber = machine.current();
    return fmt::format("{:12.6f} {:<6} {:<12} ",
                       std::chrono::duration<double>(machine.now() - std::chrono::hours(1)).count(),
                       fiber == nullptr ? "" : fiber->process->name,
                       fiber == nullptr ? "" : fiber->name);
}

/// What the log writes, with who speaks before it; nothing when nobody reads it.
ssize_t write_log(void* /*cookie*/, const char* text, size_t size) {
    if (tracing) {
        const auto line = prefix() + std::string(text, size);
        std::fwrite(line.data(), 1, line.size(), stdout);
    }
    return static_cast<ssize_t>(size);
}

/// One history, in this process, which it spoils.
int run_one(std::uint64_t seed) {
    // Never destroyed: the dead in it still hold what they held.
    auto& history = *new History(seed);
    const auto wrong = history.run();
    const auto counts = history.ledger().counts();
    if (tracing || wrong) {
        fmt::print(
            "seed {}: {}, fingerprint {:016x}, {} faults, {} switches, {} acknowledged, {} "
            "reads, {} of slots, {} openings of slots, {} images, {} reigns, {} topics\n",
            seed, wrong ? *wrong : "well", Machine::get().fingerprint(), history.faults(),
            Machine::get().switches(), counts.acked, counts.read, counts.slot_acked,
            counts.slot_opened, counts.images, counts.reigns, counts.created);
    }
    std::fflush(stdout);
    return wrong ? 1 : 0;
}

/// In a process of its own: what the dead leave behind goes with it.
bool is_good(std::uint64_t seed) {
    const auto child = ::fork();
    if (child == 0) std::_Exit(run_one(seed));
    siginfo_t end{};
    // NOLINTNEXTLINE(misc-include-cleaner): <sys/wait.h> takes it from the kernel's headers
    ::waitid(P_PID, static_cast<id_t>(child), &end, WEXITED);
    if (end.si_code == CLD_EXITED) return end.si_status == 0;
    fmt::print("seed {}: ends by signal {}\n", seed, end.si_status);
    return false;
}

}  // namespace
}  // namespace kaas::simulation

int main(int argc, char** argv) {
    namespace simulation = kaas::simulation;
    CLI::App app("Histories of a simulated cluster");
    std::uint64_t first = 0;
    std::uint64_t seeds = 100;
    app.add_option("--first", first, "the first seed");
    app.add_option("--seeds", seeds, "how many");
    app.add_flag("--trace", simulation::tracing, "say everything that happens");
    CLI11_PARSE(app, argc, argv);

    cookie_io_functions_t functions{};
    functions.write = simulation::write_log;
    // GNU's own, for which <cstdio> is not known. NOLINTNEXTLINE(misc-include-cleaner)
    stderr = ::fopencookie(nullptr, "w", functions);
    std::setvbuf(stderr, nullptr, _IOFBF, 1 << 16);
    // Also when nobody reads it: to write takes locks, and threads may take turns there.
    kaas::base::log::configure({.level = kaas::base::log::Level::kDebug});
    for (auto seed = first; seed < first + seeds; ++seed) {
        if (simulation::is_good(seed)) continue;
        fmt::print("to see it: kaas_simulation --first {} --seeds 1 --trace\n", seed);
        return 1;
    }
    fmt::print("{} histories, all well\n", seeds);
    return 0;
}

namespace kaas::simulation {

void note(const std::string& what) {
    if (!tracing) return;
    const auto line = prefix() + what + "\n";
    std::fwrite(line.data(), 1, line.size(), stdout);
}

}  // namespace kaas::simulation
