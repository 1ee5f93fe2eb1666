#include "bin/cli.h"

#include "base/version.h"
#include "bin/help.h"
#include "catalog/config/nearest_name.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
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
        add_serve();
        add_log();
        add_volume();
        add_cluster();
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
        if (help_) return ShowCommand{std::string(page().help)};
        if (serve_->parsed()) return std::move(serve_command_);
        if (log_dump_->parsed()) {
            if (dump_command_.paths.empty()) return wrong("log dump needs a file or a directory");
            dump_command_.json = output_ == "json";
            return std::move(dump_command_);
        }
        if (volume_check_->parsed()) {
            if (volume_command_.paths.empty()) return wrong("volume check needs a directory");
            volume_command_.json = output_ == "json";
            return std::move(volume_command_);
        }
        if (cluster_status_->parsed()) {
            if (status_command_.paths.empty()) return wrong("cluster status needs a directory");
            status_command_.json = output_ == "json";
            return std::move(status_command_);
        }
        if (!log_check_->parsed()) return unexpected();
        if (check_command_.paths.empty()) return wrong("log check needs a directory");
        check_command_.json = output_ == "json";
        return std::move(check_command_);
    }

private:
    /// What the user is in: the program, or one command of it.
    struct Page {
        std::string_view name;  ///< with a space behind it; empty for the program
        std::string_view help;
        const CLI::App* app;
    };

    void add_serve() {
        serve_ = add_command(app_, "serve");
        serve_->add_option("-c,--config", serve_command_.config_file);
        // One value an option, so that a word behind it is not taken for a second value.
        serve_->add_option("--override", serve_command_.overrides)->allow_extra_args(false);
        serve_->add_flag("--ephemeral", serve_command_.ephemeral);
    }
    void add_log() {
        log_ = add_command(app_, "log");
        log_dump_ = add_command(*log_, "dump");
        log_dump_->add_option("paths", dump_command_.paths);
        log_dump_->add_flag("--records", dump_command_.records);
        log_check_ = add_command(*log_, "check");
        log_check_->add_option("paths", check_command_.paths);
        for (auto* command : {log_dump_, log_check_}) add_output(*command);
    }
    void add_volume() {
        volume_ = add_command(app_, "volume");
        volume_check_ = add_command(*volume_, "check");
        volume_check_->add_option("paths", volume_command_.paths);
        add_output(*volume_check_);
    }
    void add_cluster() {
        cluster_ = add_command(app_, "cluster");
        cluster_status_ = add_command(*cluster_, "status");
        cluster_status_->add_option("paths", status_command_.paths);
        add_output(*cluster_status_);
    }
    void add_output(CLI::App& command) {
        command.add_option("-o,--output", output_)->check(CLI::IsMember({"text", "json"}));
    }
    CLI::App* add_command(CLI::App& parent, const std::string& name) {
        auto* command = parent.add_subcommand(name);
        command->set_help_flag();
        command->add_flag("-h,--help", help_);
        return command;
    }

    Page page() const {
        if (serve_->parsed()) return {"serve ", kServeHelp, serve_};
        if (log_dump_->parsed()) return {"log dump ", kLogDumpHelp, log_dump_};
        if (log_check_->parsed()) return {"log check ", kLogCheckHelp, log_check_};
        if (log_->parsed()) return {"log dump ", kLogDumpHelp, log_};
        if (volume_check_->parsed()) return {"volume check ", kVolumeCheckHelp, volume_check_};
        if (volume_->parsed()) return {"volume check ", kVolumeCheckHelp, volume_};
        if (cluster_status_->parsed()) {
            return {"cluster status ", kClusterStatusHelp, cluster_status_};
        }
        if (cluster_->parsed()) return {"cluster status ", kClusterStatusHelp, cluster_};
        return {"", kHelp, &app_};
    }

    Command unexpected() {
        auto extra = app_.remaining(true);
        if (extra.empty()) return WrongCommand{std::string(page().help)};
        std::string text = fmt::format("'{}' is not {}", extra.front(),
                                       extra.front().starts_with('-') ? "an option" : "a command");
        catalog::NearestName nearest(extra.front());
        std::vector<std::string> known = names(*page().app);
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
        return WrongCommand{fmt::format("kaas: {}\nTry: kaas {}--help\n", why, page().name)};
    }

    CLI::App app_;
    CLI::App* serve_ = nullptr;
    CLI::App* log_ = nullptr;
    CLI::App* log_dump_ = nullptr;
    CLI::App* log_check_ = nullptr;
    CLI::App* volume_ = nullptr;
    CLI::App* volume_check_ = nullptr;
    CLI::App* cluster_ = nullptr;
    CLI::App* cluster_status_ = nullptr;
    bool help_ = false;
    bool version_ = false;
    std::string output_;
    ServeCommand serve_command_;
    LogDumpCommand dump_command_;
    LogCheckCommand check_command_;
    VolumeCheckCommand volume_command_;
    ClusterStatusCommand status_command_;
};

}  // namespace

Command parse_command_line(std::vector<std::string> arguments) {
    return Grammar().parse(std::move(arguments));
}

}  // namespace kaas::bin
