#include "bin/cli.h"

#include "base/version.h"
#include "bin/help.h"
#include "catalog/config/nearest_name.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::bin {
namespace {

/// The grammar, and where CLI11 leaves what it reads.
class Grammar {
public:
    Grammar() {
        app_.set_help_flag();
        app_.add_flag("-h,--help", help_);
        app_.add_flag("--version", version_);
        serve_ = app_.add_subcommand("serve");
        serve_->set_help_flag();
        serve_->add_flag("-h,--help", help_);
        serve_->add_option("-c,--config", serve_command_.config_file);
        // One value an option, so that a word behind it is not taken for a second value.
        serve_->add_option("--override", serve_command_.overrides)->allow_extra_args(false);
        serve_->add_flag("--ephemeral", serve_command_.ephemeral);
    }

    Command parse(std::vector<std::string> arguments) {
        if (arguments.empty()) return WrongCommand{std::string(kHelp)};
        std::ranges::reverse(arguments);  // as CLI11 wants them
        try {
            app_.parse(arguments);
        } catch (const CLI::ExtrasError&) {
            return unexpected();
        } catch (const CLI::ParseError& error) {
            return wrong(error.what());
        }
        if (version_) return ShowCommand{fmt::format("kaas {}\n", base::kVersion)};
        if (help_) return ShowCommand{std::string(serve_->parsed() ? kServeHelp : kHelp)};
        if (serve_->parsed()) return std::move(serve_command_);
        return unexpected();
    }

private:
    Command unexpected() {
        auto extra = app_.remaining(true);
        if (extra.empty()) return WrongCommand{std::string(kHelp)};
        std::string text = fmt::format("'{}' is not {}", extra.front(),
                                       extra.front().starts_with('-') ? "an option" : "a command");
        catalog::NearestName nearest(extra.front());
        std::vector<std::string> known = names(serve_->parsed() ? *serve_ : app_);
        for (const auto& name : known) nearest.offer(name);
        if (!nearest.best().empty()) text += fmt::format("; did you mean {}?", nearest.best());
        return wrong(text);
    }
    static std::vector<std::string> names(const CLI::App& app) {
        std::vector<std::string> out;
        for (const auto* option : app.get_options()) {
            for (const auto& name : option->get_lnames()) out.push_back("--" + name);
        }
        for (const auto* command : app.get_subcommands(nullptr)) out.push_back(command->get_name());
        return out;
    }
    Command wrong(std::string_view why) const {
        return WrongCommand{
            fmt::format("kaas: {}\nTry: kaas {}--help\n", why, serve_->parsed() ? "serve " : "")};
    }

    CLI::App app_;
    CLI::App* serve_ = nullptr;
    bool help_ = false;
    bool version_ = false;
    ServeCommand serve_command_;
};

}  // namespace

Command parse_command_line(std::vector<std::string> arguments) {
    return Grammar().parse(std::move(arguments));
}

}  // namespace kaas::bin
