#include "base/log.h"
#include "bin/cli.h"
#include "bin/local_files.h"
#include "bin/log_dump.h"
#include "bin/signals.h"
#include "broker/broker.h"
#include "broker/config/broker_config.h"

#include <fmt/format.h>

#include <unistd.h>

#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace kaas::bin {
namespace {

int complain(int code, const std::string& why) {
    fmt::print(stderr, "kaas: {}\n", why);
    return code;
}

broker::ConfigInputs gather_inputs(const ServeCommand& command) {
    broker::ConfigInputs inputs;
    inputs.overrides = command.overrides;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        std::string text = *entry;
        auto equals = text.find('=');
        if (equals != std::string::npos) {
            inputs.environment.emplace_back(text.substr(0, equals), text.substr(equals + 1));
        }
    }
    return inputs;
}

void say_ready(const broker::Broker& broker, const broker::BrokerConfig& config) {
    std::string where;
    for (const auto& address : broker.addresses()) where += (where.empty() ? "" : ", ") + address;
    base::log::info("kaas", "broker {} is ready on {}, data in {}", config.node_id, where,
                    config.log_dirs.front().path);
}

int serve(const ServeCommand& command) {
    Signals signals;
    broker::ConfigInputs inputs = gather_inputs(command);
    std::string error;
    if (command.config_file) {
        inputs.file_name = *command.config_file;
        inputs.file = read_file(*command.config_file, error);
        if (!inputs.file) return complain(kUsage, error);
    }
    std::optional<TemporaryDirectory> temporary;
    if (command.ephemeral) {
        temporary = TemporaryDirectory::make(error);
        if (!temporary) return complain(kFailed, error);
        inputs.ephemeral_dir = temporary->path();
    }
    auto loaded = broker::load_config(inputs);
    if (!loaded) return complain(kUsage, loaded.error().context);
    base::log::configure(loaded->config.log);
    for (const auto& note : loaded->notes) base::log::info("config", "{}", note);
    for (const auto& warning : loaded->warnings) base::log::warn("config", "{}", warning);
    if (temporary) {
        base::log::warn("kaas", "ephemeral: nothing is synced, and {} is deleted at exit",
                        temporary->path());
    }
    broker::Broker::Options options;
    options.on_lost = [&signals](const std::string& why) { signals.lose(why); };
    auto broker = broker::Broker::start(loaded->config, std::move(options));
    if (!broker) return complain(kFailed, broker.error().context);
    say_ready(**broker, loaded->config);
    WakeUp woken = signals.wait();
    base::log::info("kaas", "stopping: {}", woken.why);
    (*broker)->stop();
    return woken.lost ? kFailed : kDone;
}

int run(const ServeCommand& command) { return serve(command); }

int run(const LogDumpCommand& command) {
    std::string error;
    if (dump_logs(command, stdout, error)) return kDone;
    return complain(kFailed, error);
}

int run(const ShowCommand& command) {
    fmt::print("{}", command.text);
    return kDone;
}

int run(const WrongCommand& command) {
    fmt::print(stderr, "{}", command.text);
    return kUsage;
}

}  // namespace
}  // namespace kaas::bin

int main(int argc, char** argv) {
    try {
        auto command = kaas::bin::parse_command_line({argv + 1, argv + argc});
        return std::visit([](const auto& wanted) { return kaas::bin::run(wanted); }, command);
    } catch (const std::exception& error) {
        fmt::print(stderr, "kaas: {}\n", error.what());
        return kaas::bin::kFailed;
    }
}
