#include "bin/volume_check.h"

#include "bin/cli.h"
#include "bin/other_process.h"
#include "cluster/error.h"
#include "cluster/volume_check.h"
#include "cluster/volume_proof.h"
#include "storage/posix_volume.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <cstddef>
#include <cstdio>
#include <expected>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::bin {
namespace {

/// Enough for what fails now and then, and short enough for a person to wait for.
constexpr int kRounds = 5;
constexpr std::string_view kOtherProcess = "other process";

/// Opened twice, so that no cache of ours stands between the two.
struct Named {
    std::string path;
    std::unique_ptr<storage::PosixVolume> volume;
    std::unique_ptr<storage::PosixVolume> again;
};

storage::Result<Named> open_one(const std::string& path) {
    KAAS_TRY_ASSIGN(volume, storage::PosixVolume::open(path));
    KAAS_TRY_ASSIGN(again, storage::PosixVolume::open(path));
    return Named{path, std::move(volume), std::move(again)};
}

/// A session's end, by the hand of another process.
cluster::Finding check_other_process(const Named& named) {
    using cluster::Verdict;
    auto probe = cluster::Probe::make(*named.volume);
    auto proven =
        probe ? in_other_process([&] { return cluster::witness(*named.again, (*probe)->ticket()); })
              : std::unexpected(probe.error());
    if (proven) proven = (*probe)->confirm();
    if (proven) {
        return {kOtherProcess, Verdict::kGood, "it reads what is synced, and its mark is seen", {}};
    }
    const bool is_bad = proven.error().code == cluster::ErrorCode::kUnfitVolume;
    return {kOtherProcess, is_bad ? Verdict::kBad : Verdict::kUnknown, proven.error().context,
            "See the mount options of docs/volumes.md."};
}

class Report {
public:
    Report(std::FILE* out, bool json) : out_(out), json_(json) {}

    /// `where`: a directory, or two that are one volume.
    void add(const std::string& where, const cluster::Findings& findings) {
        if (!json_) fmt::print(out_, "{}\n", where);
        for (const auto& finding : findings) {
            using cluster::Verdict;
            wrong_ += finding.verdict == Verdict::kBad || finding.verdict == Verdict::kUnknown;
            if (json_) {
                add_json(where, finding);
            } else {
                add_text(finding);
            }
        }
    }
    [[nodiscard]] std::size_t wrong() const { return wrong_; }

private:
    void add_json(const std::string& where, const cluster::Finding& finding) {
        boost::json::object line{{"volume", where},
                                 {"property", finding.property},
                                 {"verdict", cluster::name_of(finding.verdict)},
                                 {"what", finding.what}};
        if (!finding.advice.empty()) line["advice"] = finding.advice;
        fmt::print(out_, "{}\n", boost::json::serialize(line));
    }
    void add_text(const cluster::Finding& finding) {
        fmt::print(out_, "  {:<8} {:<22} {}\n", cluster::name_of(finding.verdict), finding.property,
                   finding.what);
        if (!finding.advice.empty()) fmt::print(out_, "  {:<31} {}\n", "", finding.advice);
    }

    std::FILE* const out_;
    const bool json_;
    std::size_t wrong_ = 0;
};

void check_one(const Named& named, Report& report) {
    cluster::Findings findings;
    if (const auto mount = named.volume->mount()) findings.push_back(cluster::check_mount(*mount));
    auto proven = cluster::check_volume(*named.volume, *named.again, {.rounds = kRounds});
    findings.insert(findings.end(), std::make_move_iterator(proven.begin()),
                    std::make_move_iterator(proven.end()));
    findings.push_back(check_other_process(named));
    report.add(named.path, findings);
}

/// Two mounts of one volume are two clients of its server, as two brokers are.
storage::Result<void> check_two(const Named& one, const Named& other, Report& report) {
    KAAS_TRY_ASSIGN(same, cluster::is_same_volume(*one.volume, *other.volume));
    if (!same) return {};
    for (const auto& [mine, theirs] : {std::pair(&one, &other), std::pair(&other, &one)}) {
        report.add(fmt::format("{} seen from {}", mine->path, theirs->path),
                   cluster::check_volume(*mine->volume, *theirs->volume, {.rounds = kRounds}));
    }
    return {};
}

}  // namespace

bool check_volumes(const VolumeCheckCommand& command, std::FILE* out, std::string& error) {
    std::vector<Named> all;
    for (const auto& path : command.paths) {
        auto opened = open_one(path);
        if (!opened) {
            error = opened.error().context;
            return false;
        }
        all.push_back(std::move(*opened));
    }
    Report report(out, command.json);
    for (std::size_t i = 0; i < all.size(); ++i) {
        check_one(all[i], report);
        for (std::size_t j = 0; j < i; ++j) {
            const auto done = check_two(all[j], all[i], report);
            if (!done) {
                error = done.error().context;
                return false;
            }
        }
    }
    if (report.wrong() == 0) return true;
    error = fmt::format("{} properties are not as kaas needs them", report.wrong());
    return false;
}

}  // namespace kaas::bin
