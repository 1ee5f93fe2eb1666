#include "cluster/election.h"

#include "base/ids.h"
#include "base/result.h"
#include "cluster/error.h"
#include "storage/epoch_log.h"
#include "storage/error.h"
#include "storage/volume.h"

#include <fmt/format.h>

#include <algorithm>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::cluster {
namespace {

base::ControllerEpoch highest_name(const std::vector<std::string>& names) {
    base::ControllerEpoch highest{0};
    for (const auto& name : names) {
        const auto number = storage::parse_epoch_name(name);
        if (number) highest = std::max(highest, base::ControllerEpoch(*number));
    }
    return highest;
}

}  // namespace

std::string election_path(base::ControllerEpoch epoch) {
    return fmt::format("{}/{}", kElectionDirectory, storage::epoch_name(epoch.value()));
}

Result<base::ControllerEpoch> newest_election(storage::Volume& volume) {
    auto names = volume.list(std::string(kElectionDirectory));
    if (!names) return failed(std::move(names).error());
    const auto newest = highest_name(*names);
    if (newest == base::ControllerEpoch(0)) return newest;
    // Opened afresh: an epoch is made only on top of one that is surely there, so numbers have no
    // gaps.
    auto there = volume.hold(election_path(newest));
    if (!there) return failed(std::move(there).error());
    return newest;
}

Result<std::unique_ptr<ElectedEpoch>> ElectedEpoch::stand(
    storage::Volume& volume, base::ControllerEpoch first,
    std::optional<base::ControllerEpoch> over) {
    KAAS_TRY_ASSIGN(newest, newest_election(volume));
    if (over && newest > *over) {
        return fail(ErrorCode::kSuperseded, election_path(newest) + " was taken meanwhile");
    }
    const auto own = newest + 1;
    const auto path = election_path(own);
    auto made = volume.make_directory(path);
    if (!made && made.error().code == storage::ErrorCode::kExists) {
        return fail(ErrorCode::kSuperseded, path + " was taken by another candidate");
    }
    if (made) made = volume.sync_directory(path);
    if (made) made = volume.sync_directory(std::string(kElectionDirectory));
    if (!made) return failed(std::move(made).error());
    auto held = volume.hold(path);
    if (!held) return failed(std::move(held).error());
    // From here on the number is ours for ever; a candidate that dies before the marks are made
    // leaves one that nobody acts under.
    for (auto lower = newest; lower >= first; lower = lower - 1) {
        auto marked = volume.mark(election_path(lower), storage::MarkKind::kKeep);
        if (!marked) return failed(std::move(marked).error());
    }
    return std::unique_ptr<ElectedEpoch>(new ElectedEpoch(volume, own, std::move(*held)));
}

ElectedEpoch::ElectedEpoch(storage::Volume& volume, base::ControllerEpoch number,
                           std::unique_ptr<storage::DirectoryHandle> held)
    : volume_(volume),
      number_(number),
      check_(std::move(held), "controller epoch " + election_path(number)) {}

Result<void> ElectedEpoch::end() {
    auto marked = volume_.mark(election_path(number_), storage::MarkKind::kKeep);
    if (!marked) return failed(std::move(marked).error());
    return {};
}

Result<void> ElectedEpoch::beat() {
    auto done = check_.confirm();
    if (done) done = check_.held().beat(++counter_);
    if (!done) return failed(std::move(done).error());
    return {};
}

}  // namespace kaas::cluster
