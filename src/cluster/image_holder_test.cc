// Goal: readers see the newest image and never an older one again; waiters run once, when their
// version comes. Method: images made by hand; a race of one publisher and many readers for the
// sanitizers.

#include "cluster/image_holder.h"

#include "base/executor.h"
#include "base/ids.h"
#include "catalog/change.h"
#include "catalog/image.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace kaas::cluster {
namespace {

catalog::ImagePtr image(int epoch, int changes = 0) {
    catalog::ImageEditor editor("c");
    editor.begin_epoch(base::ControllerEpoch(epoch), base::BrokerId(1));
    for (int i = 0; i < changes; ++i) {
        EXPECT_TRUE(editor.apply(catalog::BrokerRegistered{{.id = base::BrokerId(i)}}));
    }
    return std::move(editor).finish();
}

catalog::ImageVersion version(int epoch, std::uint64_t changes) {
    return {base::ControllerEpoch(epoch), changes};
}

TEST(ImageHolder, RefusesWhatIsNotNewer) {
    ImageHolder holder;
    auto reader = holder.reader();
    EXPECT_EQ(reader.get()->topic_count(), 0U);
    EXPECT_TRUE(holder.publish(image(2, 1)));
    EXPECT_FALSE(holder.publish(image(2, 1)));
    EXPECT_FALSE(holder.publish(image(1, 5))) << "a controller that was succeeded";
    EXPECT_EQ(reader.get()->version(), version(2, 1));
    EXPECT_TRUE(holder.publish(image(3)));
    EXPECT_EQ(reader.get()->version(), version(3, 0));
    EXPECT_EQ(holder.get()->version(), version(3, 0));
}

TEST(ImageHolder, WaitersRunWhenTheirVersionHasCome) {
    ImageHolder holder;
    base::InlineExecutor here;
    std::string ran;
    holder.when(version(2, 1), here, [&] { ran += "a"; });
    holder.when(version(2, 2), here, [&] { ran += "b"; });
    holder.publish(image(1, 9));
    EXPECT_EQ(ran, "");
    holder.publish(image(2, 1));
    EXPECT_EQ(ran, "a");
    holder.publish(image(3));
    EXPECT_EQ(ran, "ab");
    holder.when(version(2, 7), here, [&] { ran += "c"; });
    EXPECT_EQ(ran, "abc") << "it is there already";
}

TEST(ImageHolder, ReadersNeverGoBack) {
    ImageHolder holder;
    std::atomic<bool> done = false;
    std::vector<std::thread> readers;
    for (int i = 0; i < 3; ++i) {
        readers.emplace_back([&] {
            auto reader = holder.reader();
            catalog::ImageVersion last;
            while (!done) {
                const auto now = reader.get()->version();
                ASSERT_LE(last, now);
                last = now;
            }
        });
    }
    for (int epoch = 1; epoch <= 500; ++epoch) holder.publish(image(epoch));
    done = true;
    for (auto& reader : readers) reader.join();
}

}  // namespace
}  // namespace kaas::cluster
