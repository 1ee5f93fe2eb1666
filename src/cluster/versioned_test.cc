// Goal: a reader sees the newest value and never an older one again. Method: by hand; a race of one
// publisher and many readers for the sanitizers.

#include "cluster/versioned.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace kaas::cluster {
namespace {

TEST(Versioned, ReaderSeesEachNewValueAndKeepsItMeanwhile) {
    Versioned<int> value(std::make_shared<const int>(1));
    Versioned<int>::Reader reader(value);
    EXPECT_EQ(*reader.get(), 1);
    value.set(std::make_shared<const int>(2));
    EXPECT_EQ(*reader.get(), 2);
    EXPECT_EQ(reader.get(), value.get());
}

TEST(Versioned, ReadersNeverGoBack) {
    Versioned<int> value(std::make_shared<const int>(0));
    std::atomic<bool> done = false;
    std::vector<std::thread> readers;
    for (int i = 0; i < 3; ++i) {
        readers.emplace_back([&] {
            Versioned<int>::Reader reader(value);
            int last = 0;
            while (!done) {
                const int now = *reader.get();
                ASSERT_LE(last, now);
                last = now;
            }
        });
    }
    for (int i = 1; i <= 500; ++i) value.set(std::make_shared<const int>(i));
    done = true;
    for (auto& reader : readers) reader.join();
}

}  // namespace
}  // namespace kaas::cluster
