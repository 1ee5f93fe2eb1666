// Goal: brokers find the newest controller, and a file that is missing, torn or of somebody else
// misleads nobody. Method: addresses on a volume in memory.

#include "cluster/controller_address.h"

#include "base/bytes.h"
#include "base/ids.h"
#include "cluster/error.h"
#include "cluster/reign.h"
#include "storage/memory_volume.h"
#include "storage/volume.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace kaas::cluster {
namespace {

class ControllerAddressTest : public ::testing::Test {
protected:
    ControllerAddressTest() { EXPECT_TRUE(prepare_cluster(volume_)); }

    static ControllerAddress address(int epoch) {
        return {base::ControllerEpoch(epoch), base::BrokerId(epoch * 10), "host", 9094, "c"};
    }
    void write(const std::string& name, std::string_view text) {
        auto file = volume_.create(std::string(kAddressDirectory) + "/" + name);
        ASSERT_TRUE(file);
        const auto bytes = base::as_bytes(text);
        ASSERT_TRUE((*file)->write_at(0, {&bytes, 1}));
    }

    storage::MemoryVolume volume_;
};

TEST_F(ControllerAddressTest, NoneBeforeTheFirstController) {
    auto found = newest_address(volume_);
    ASSERT_TRUE(found);
    EXPECT_FALSE(*found);
}

/// Who has looked for a directory that somebody else makes later may believe for a minute, on a
/// network file system, that it is not there (DESIGN rule 5): each makes it before it looks.
TEST_F(ControllerAddressTest, DirectoryIsThereBeforeAnybodyLooks) {
    EXPECT_TRUE(volume_.list(std::string(kAddressDirectory)));
}

TEST_F(ControllerAddressTest, NewestIsFoundAsItWasTold) {
    tell_address(volume_, address(1));
    tell_address(volume_, address(2));
    auto found = newest_address(volume_);
    ASSERT_TRUE(found && *found);
    EXPECT_EQ((**found).epoch, base::ControllerEpoch(2));
    EXPECT_EQ((**found).broker, base::BrokerId(20));
    EXPECT_EQ((**found).host, "host");
    EXPECT_EQ((**found).port, 9094);
    EXPECT_EQ((**found).cluster_id, "c");
    EXPECT_EQ(volume_.list(std::string(kAddressDirectory))->size(), 1U) << "older ones go";
}

TEST_F(ControllerAddressTest, OutlivesTheVolumeOfAControllerThatLivesOn) {
    tell_address(volume_, address(1));
    volume_.crash();
    auto found = newest_address(volume_);
    ASSERT_TRUE(found && *found);
    EXPECT_EQ((**found).epoch, base::ControllerEpoch(1));
}

TEST_F(ControllerAddressTest, LateControllerHidesNobody) {
    tell_address(volume_, address(3));
    tell_address(volume_, address(2));
    auto found = newest_address(volume_);
    ASSERT_TRUE(found && *found);
    EXPECT_EQ((**found).epoch, base::ControllerEpoch(3));
    tell_address(volume_, {base::ControllerEpoch(3), base::BrokerId(9), "liar", 1, "c"});
    EXPECT_EQ((**newest_address(volume_)).broker, base::BrokerId(30)) << "a name is written once";
}

TEST_F(ControllerAddressTest, FileWithoutAnEndIsNoAddress) {
    tell_address(volume_, address(1));
    for (const auto* text : {"", "{", "[]", "{\"broker\":1}",
                             R"({"broker":1,"host":"h","port":70000,"cluster":"c"})"}) {
        write("00000002.json", text);
        auto found = newest_address(volume_);
        ASSERT_TRUE(found) << text;
        EXPECT_FALSE(*found) << text;
        ASSERT_TRUE(volume_.unlink(std::string(kAddressDirectory) + "/00000002.json"));
    }
}

TEST_F(ControllerAddressTest, OtherNamesAreNotLookedAt) {
    tell_address(volume_, address(1));
    write("00000009.tmp", "{}");
    write("README", "{}");
    write("ninth.json", "{}");
    auto found = newest_address(volume_);
    ASSERT_TRUE(found && *found);
    EXPECT_EQ((**found).epoch, base::ControllerEpoch(1));
}

TEST_F(ControllerAddressTest, VolumeThatFailsIsAnError) {
    tell_address(volume_, address(1));
    volume_.halt_at(volume_.steps());
    auto found = newest_address(volume_);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, ErrorCode::kStorage);
}

}  // namespace
}  // namespace kaas::cluster
