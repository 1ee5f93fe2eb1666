// Goal: a mount's options are read as the kernel tells them. Method: lines of mountinfo, named by
// the fault.

#include "storage/mount.h"

#include "storage/posix_volume.h"
#include "storage/testing_volume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

namespace kaas::storage {
namespace {

using ::testing::Contains;

constexpr std::string_view kTable =
    "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n"
    "210 21 0:48 / /mnt/a\\040b rw,noatime shared:9 master:2 - nfs4 nas:/vol rw,vers=4.1,softerr\n"
    "33 21 0:50 / /mnt/other rw - nfs4 nas:/other rw,hard\n"
    "34 broken\n";

TEST(Mounts, OneIsFoundByItsNumberAndNotByTheBeginningOfIt) {
    const auto root = find_mount(kTable, 21);
    ASSERT_TRUE(root);
    EXPECT_EQ(root->point, "/");
    EXPECT_EQ(root->type, "ext4");
    EXPECT_EQ(root->source, "/dev/sda1");
    EXPECT_FALSE(find_mount(kTable, 2));
}

TEST(Mounts, OptionsOfMountAndFileSystemCount) {
    const auto nfs = find_mount(kTable, 210);
    ASSERT_TRUE(nfs);
    EXPECT_EQ(nfs->point, "/mnt/a b");
    EXPECT_EQ(nfs->source, "nas:/vol");
    EXPECT_THAT(nfs->options, Contains("noatime"));
    EXPECT_THAT(nfs->options, Contains("softerr"));
}

TEST(Mounts, ALineThatIsNoneIsNoMount) {
    EXPECT_FALSE(find_mount(kTable, 34));
    EXPECT_FALSE(find_mount("", 1));
    EXPECT_EQ(find_mount(kTable, 33)->point, "/mnt/other");
}

TEST(Mounts, AVolumeKnowsItsOwn) {
    testing::TemporaryDirectory directory;
    auto volume = PosixVolume::open(directory.path());
    ASSERT_TRUE(volume);
    const auto mount = (*volume)->mount();
    ASSERT_TRUE(mount);
    EXPECT_TRUE(directory.path().starts_with(mount->point)) << mount->point;
    EXPECT_FALSE(mount->type.empty());
}

}  // namespace
}  // namespace kaas::storage
