// Goal: each promise of a file system that kaas needs is found broken when it is, under its own
// name. Method: volumes in memory behind mounts that lie in one way, a POSIX directory, and mount
// options.

#include "cluster/volume_check.h"

#include "cluster/testing_lies.h"
#include "storage/memory_volume.h"
#include "storage/mount.h"
#include "storage/posix_volume.h"
#include "storage/testing_volume.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::cluster {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The findings that are not good, as "property: verdict".
std::vector<std::string> not_good(const Findings& findings) {
    std::vector<std::string> out;
    for (const auto& finding : findings) {
        EXPECT_EQ(finding.advice.empty(), finding.verdict == Verdict::kGood) << finding.property;
        EXPECT_FALSE(finding.what.empty()) << finding.property;
        if (finding.verdict == Verdict::kGood) continue;
        out.push_back(std::string(finding.property) + ": " + std::string(name_of(finding.verdict)));
    }
    return out;
}

struct Case {
    std::string_view name;
    Lie lie;
    std::string_view found;
};
std::ostream& operator<<(std::ostream& out, const Case& one) { return out << one.name; }

class LyingMount : public ::testing::TestWithParam<Case> {};

TEST_P(LyingMount, IsFoundOut) {
    storage::MemoryVolume volume;
    LyingVolume mount(volume, GetParam().lie);
    EXPECT_EQ(
        fmt::format("{}", fmt::join(not_good(check_volume(mount, mount, {.rounds = 1})), ", ")),
        GetParam().found);
}

INSTANTIATE_TEST_SUITE_P(
    Each, LyingMount,
    ::testing::Values(Case{"CreatesTwice", Lie::kCreatesTwice, "exclusive files: bad"},
                      Case{"LosesRaces", Lie::kLosesRaces, "exclusive files: bad"},
                      Case{"RemembersAbsence", Lie::kRemembersAbsence, "absence: bad"},
                      Case{"SyncsNothing", Lie::kSyncsNothing, "fsync: note"},
                      Case{"RemembersMarks", Lie::kRemembersMarks, "mark: bad, mode bits: bad"},
                      Case{"KeepsModes", Lie::kKeepsModes, "mode bits: bad"},
                      Case{"KeepsTimes", Lie::kKeepsTimes, "times: bad"},
                      Case{"RenamesByCopy", Lie::kRenamesByCopy, "rename: bad"},
                      Case{"SillyRenames", Lie::kSillyRenames, "remove while open: note"},
                      Case{"RemovesNothing", Lie::kRemovesNothing,
                           "remove while open: bad, clean-up: note"},
                      Case{"ShortNames", Lie::kShortNames, "long names: bad"},
                      Case{"NoLocks", Lie::kNoLocks, "lock: note"},
                      Case{"Broken", Lie::kBroken, "writing: unknown"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(VolumeCheck, WhatBreaksEverythingIsNamedFirst) {
    storage::MemoryVolume volume;
    for (const auto& [lie, first] :
         {std::pair{Lie::kMakesDirectoriesTwice, "exclusive directories: "},
          std::pair{Lie::kReadsShort, "visibility: "}, std::pair{Lie::kReadsNulls, "visibility: "},
          std::pair{Lie::kSyncFails, "fsync: "}, std::pair{Lie::kListsGone, "remove while open: "},
          std::pair{Lie::kListsShort, "list: "}}) {
        LyingVolume mount(volume, lie);
        const auto fault = first_fault(check_volume(mount, mount, {.rounds = 1}));
        EXPECT_TRUE(fault.starts_with(first)) << fault << " instead of " << first;
    }
}

TEST(VolumeCheck, AMountThatLiesIsFoundBesideOneThatDoesNot) {
    storage::MemoryVolume volume;
    LyingVolume honest(volume, Lie::kNone);
    LyingVolume stale(volume, Lie::kReadsShort);
    LyingVolume deaf(volume, Lie::kRemembersMarks);
    EXPECT_THAT(not_good(check_volume(honest, honest)), IsEmpty());
    EXPECT_THAT(first_fault(check_volume(honest, stale)), HasSubstr("visibility"));
    EXPECT_THAT(first_fault(check_volume(honest, deaf, {.rounds = 1})), HasSubstr("mark"));
}

TEST(VolumeCheck, NothingIsLeftBehind) {
    storage::MemoryVolume volume;
    for (const auto lie : {Lie::kNone, Lie::kKeepsModes, Lie::kSillyRenames, Lie::kSyncFails}) {
        LyingVolume mount(volume, lie);
        (void)check_volume(mount, mount, {.rounds = 1});
        EXPECT_THAT(*volume.list(std::string(kCheckDirectory)), IsEmpty());
    }
}

TEST(VolumeCheck, AFullVolumeIsNoBadOne) {
    storage::MemoryVolume volume;
    volume.limit_to(0);
    EXPECT_THAT(first_fault(check_volume(volume, volume)), IsEmpty());
}

TEST(VolumeCheck, ADirectoryOfThisMachineIsGood) {
    storage::testing::TemporaryDirectory directory;
    auto mine = storage::PosixVolume::open(directory.path());
    auto other = storage::PosixVolume::open(directory.path());
    ASSERT_TRUE(mine && other);
    EXPECT_THAT(not_good(check_volume(**mine, **mine)), IsEmpty());
    EXPECT_THAT(not_good(check_volume(**mine, **other, {.rounds = 3})), IsEmpty());
    EXPECT_TRUE(*is_same_volume(**mine, **other));
}

TEST(VolumeCheck, TwoDirectoriesAreNotOneVolume) {
    storage::MemoryVolume one;
    storage::MemoryVolume two;
    EXPECT_FALSE(*is_same_volume(one, two));
    EXPECT_TRUE(*is_same_volume(one, one));
}

struct MountCase {
    std::string_view name;
    storage::Mount mount;
    Verdict verdict;
};
std::ostream& operator<<(std::ostream& out, const MountCase& one) { return out << one.name; }
class MountCheck : public ::testing::TestWithParam<MountCase> {};

TEST_P(MountCheck, IsJudgedByKindAndOptions) {
    const auto found = check_mount(GetParam().mount);
    EXPECT_EQ(found.verdict, GetParam().verdict) << found.what;
    EXPECT_THAT(found.what, HasSubstr(GetParam().mount.type));
    EXPECT_EQ(found.advice.empty(), found.verdict == Verdict::kGood);
}

INSTANTIATE_TEST_SUITE_P(
    Each, MountCheck,
    ::testing::Values(
        MountCase{"Nfs", {"/v", "nfs4", "nas:/v", {"rw", "hard", "vers=4.1"}}, Verdict::kGood},
        MountCase{"NfsSoft", {"/v", "nfs4", "nas:/v", {"soft", "vers=4.1"}}, Verdict::kBad},
        MountCase{"NfsSoftErr", {"/v", "nfs4", "nas:/v", {"softerr"}}, Verdict::kBad},
        MountCase{"NfsSoftReval", {"/v", "nfs", "nas:/v", {"hard", "softreval"}}, Verdict::kBad},
        MountCase{"NfsWithoutCto", {"/v", "nfs4", "nas:/v", {"hard", "nocto"}}, Verdict::kBad},
        MountCase{"OldNfs", {"/v", "nfs", "nas:/v", {"hard", "vers=3"}}, Verdict::kNote},
        MountCase{"SoftIsOfNfsAlone", {"/v", "ext4", "/dev/a", {"soft"}}, Verdict::kGood},
        MountCase{"Smb", {"/v", "cifs", "//nas/v", {"rw"}}, Verdict::kBad},
        MountCase{"Gcs", {"/v", "fuse.gcsfuse", "bucket", {"rw"}}, Verdict::kBad},
        MountCase{"S3", {"/v", "fuse", "mountpoint-s3", {"rw"}}, Verdict::kBad},
        MountCase{"Ceph", {"/v", "ceph", "mon:/", {"rw"}}, Verdict::kGood},
        MountCase{"Memory", {"/v", "tmpfs", "tmpfs", {"rw"}}, Verdict::kNote}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace kaas::cluster
