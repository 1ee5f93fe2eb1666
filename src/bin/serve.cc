#include "bin/serve.h"

#include "base/log.h"
#include "base/version.h"
#include "bin/cli.h"
#include "bin/last_resort.h"
#include "bin/local_files.h"
#include "bin/signals.h"
#include "broker/broker.h"
#include "broker/config/broker_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

extern char** environ;

namespace kaas::bin {
namespace {

namespace log = base::log;
constexpr std::string_view kTarget = "serve";

/// Before logging is set up, and for what only the person at the terminal can mend.
int refuse(int exit_code, std::string_view why) {
    fmt::print(stderr, "kaas: {}\n", why);
    return exit_code;
}

std::string machine_name() {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == 0) return "localhost";
    return name.data();
}

std::vector<std::pair<std::string, std::string>> environment() {
    std::vector<std::pair<std::string, std::string>> variables;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        std::string_view text(*entry);
        std::size_t equals = text.find('=');
        if (equals != std::string_view::npos)
            variables.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
    return variables;
}

/// A connection is a descriptor; the soft limit of a login shell (1,024) is soon reached.
void raise_descriptor_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
    limit.rlim_cur = limit.rlim_max;
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0)
        log::warn(kTarget, "the limit of open files could not be raised");
}

std::string ready_text(const broker::Broker& running, const broker::BrokerConfig& config) {
    std::string text = fmt::format("ready on {}, data in {}", fmt::join(running.addresses(), ", "),
                                   config.log_dirs.front().path);
    if (config.log_dirs.size() > 1) text += fmt::format(" and {} more", config.log_dirs.size() - 1);
    if (running.health_port() != 0) {
        text += fmt::format(", health on http://{}:{}/healthz", config.health->host,
                            running.health_port());
    }
    return text;
}

/// When the broker has kept its time, the rest is a matter of milliseconds.
constexpr std::chrono::seconds kLongestEnd{2};

/// Some thread cannot be joined: it is in a system call on a volume that does not answer.
[[noreturn]] void leave_what_hangs() {
    log::error(kTarget, "the stop hangs, perhaps on a volume: ended as a kill would end it");
    std::_Exit(kFailed);
}

int run(const broker::BrokerConfig& config, Signals& signals) {
    std::optional<LastResort> last_resort;  // the broker's destruction is within its time too
    auto started = broker::Broker::start(
        config, {.on_lost = [&signals](const std::string& why) { signals.lose(why); }});
    if (!started) {
        log::error(kTarget, "not started: {}", started.error().context);
        return kFailed;
    }
    auto& running = **started;
    log::info(kTarget, "{}", ready_text(running, config));
    WakeUp woken = signals.wait();
    if (woken.lost) {
        log::error(kTarget, "cannot go on: {}", woken.why);
    } else {
        log::info(kTarget, "{}: stopping", woken.why);
    }
    last_resort.emplace(config.settings.kaas_drain_timeout_ms + kLongestEnd, leave_what_hangs);
    running.stop();
    log::info(kTarget, "stopped");
    return woken.lost ? kFailed : kDone;
}

}  // namespace

int serve(const ServeCommand& command) {
    Signals signals;
    std::string error;
    broker::ConfigInputs inputs{.environment = environment(),
                                .overrides = command.overrides,
                                .machine_name = machine_name()};
    if (command.config_file) {
        inputs.file = read_file(*command.config_file, error);
        inputs.file_name = *command.config_file;
        if (!inputs.file) return refuse(kUsage, error);
    }
    std::optional<TemporaryDirectory> temporary;
    if (command.ephemeral) {
        temporary = TemporaryDirectory::make(error);
        if (!temporary) return refuse(kFailed, error);
        inputs.ephemeral_dir = temporary->path();
    }
    auto loaded = broker::load_config(inputs);
    if (!loaded) return refuse(kUsage, loaded.error().context);

    log::configure(loaded->config.log);
    log::info(kTarget, "kaas {}, broker {}", base::kVersion, loaded->config.node_id);
    for (const auto& warning : loaded->warnings) log::warn(kTarget, "{}", warning);
    for (const auto& note : loaded->notes) log::info(kTarget, "{}", note);
    if (temporary) {
        for (const auto& path : TemporaryDirectory::remove_dead()) {
            log::info(kTarget, "{} of a killed --ephemeral process is deleted", path);
        }
        log::warn(kTarget, "ephemeral: the data in {} is never synced, and is deleted at exit",
                  temporary->path());
    }
    raise_descriptor_limit();
    return run(loaded->config, signals);
}

}  // namespace kaas::bin
