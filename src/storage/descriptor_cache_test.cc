// Goal: files of a volume keep working however few descriptors there are for them, and none that
// somebody uses, or could not be opened again, is closed.
// Method: real files with a cache far smaller than their number; /proc/self/fd counts.
#include "storage/descriptor_cache.h"

#include "base/bytes.h"
#include "base/metrics.h"
#include "storage/error.h"
#include "storage/posix_volume.h"
#include "storage/testing_volume.h"
#include "storage/volume.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace kaas::storage {
namespace {

constexpr std::size_t kLimit = 4;
constexpr int kFiles = 50;

class DescriptorCacheTest : public ::testing::Test {
protected:
    void SetUp() override {
        auto volume =
            PosixVolume::open(root_.path(), {.metrics = &metrics_, .descriptors = cache_});
        ASSERT_TRUE(volume);
        volume_ = std::move(*volume);
    }

    std::unique_ptr<File> make(int number) {
        auto file = volume_->create(std::to_string(number));
        EXPECT_TRUE(file) << file.error().context;
        return std::move(*file);
    }
    static Result<void> write(File& file, std::string_view text, std::uint64_t at = 0) {
        const base::ByteView piece = base::as_bytes(text);
        return file.write_at(at, {&piece, 1});
    }
    static std::string read(File& file) {
        std::string text(64, ' ');
        auto got = file.read_at(
            0, base::MutableBytes(reinterpret_cast<std::byte*>(text.data()), text.size()));
        if (!got) return got.error().context;
        text.resize(*got);
        return text;
    }
    /// So many others are used that what was open before is not any more.
    void crowd() {
        for (int i = 0; i < kFiles; ++i) {
            auto file = volume_->create("crowd-" + std::to_string(crowd_++));
            ASSERT_TRUE(file);
            others_.push_back(std::move(*file));
        }
    }
    [[nodiscard]] static std::size_t open_here() {
        std::filesystem::directory_iterator all("/proc/self/fd");
        return static_cast<std::size_t>(std::distance(begin(all), end(all)));
    }
    [[nodiscard]] std::uint64_t syncs() {
        std::uint64_t all = 0;
        for (auto n : metrics_.histogram("kaas_storage_fsync_latency_seconds", "").counts())
            all += n;
        return all;
    }

    testing::TemporaryDirectory root_;
    base::metrics::Registry metrics_;
    std::shared_ptr<DescriptorCache> cache_ = std::make_shared<DescriptorCache>(kLimit);
    std::unique_ptr<Volume> volume_;
    std::vector<std::unique_ptr<File>> others_;
    int crowd_ = 0;
};

TEST_F(DescriptorCacheTest, ManyFilesFewDescriptors) {
    const auto before = open_here();
    std::vector<std::unique_ptr<File>> files;
    for (int i = 0; i < kFiles; ++i) {
        files.push_back(make(i));
        ASSERT_TRUE(write(*files.back(), std::to_string(i)));
    }
    EXPECT_LE(open_here(), before + kLimit);
    EXPECT_LE(cache_->open(), kLimit);
    for (int i = 0; i < kFiles; ++i) EXPECT_EQ(read(*files[i]), std::to_string(i));
    for (int i = 0; i < kFiles; ++i) ASSERT_TRUE(write(*files[i], "+", 3));
    for (int i = 0; i < kFiles; ++i) ASSERT_TRUE(files[i]->sync());
    EXPECT_LE(open_here(), before + kLimit);
    files.clear();
    EXPECT_EQ(cache_->open(), 0U);
    EXPECT_EQ(open_here(), before);
}

TEST_F(DescriptorCacheTest, ReaderInAnEvictedFileIsNotDisturbed) {
    auto file = make(0);
    ASSERT_TRUE(write(*file, "kept"));
    ASSERT_TRUE(file->sync());
    const auto lease = file->descriptor();
    ASSERT_TRUE(lease);
    crowd();
    char text[4];
    EXPECT_EQ(::pread((*lease)->get(), text, 4, 0), 4) << "in use: it stays open";
    EXPECT_EQ(std::string_view(text, 4), "kept");
}

TEST_F(DescriptorCacheTest, ClosedFileBlocksNoReactor) {
    auto file = make(0);
    ASSERT_TRUE(write(*file, "text"));
    ASSERT_TRUE(file->sync());
    crowd();
    ASSERT_EQ(file->descriptor_if_open(), nullptr) << "the crowd is large enough";
    std::byte into[4];
    EXPECT_EQ(*file->try_read_at(0, into), 0U) << "as if it was not in memory";
    EXPECT_FALSE(file->cached(0, 4));
    EXPECT_EQ(read(*file), "text");
    EXPECT_NE(file->descriptor_if_open(), nullptr);
    EXPECT_EQ(*file->try_read_at(0, into), 4U);
}

TEST_F(DescriptorCacheTest, UnlinkedWhileClosedIsStillReadable) {
    auto file = make(0);
    ASSERT_TRUE(write(*file, "gone by name"));
    ASSERT_TRUE(file->sync());
    crowd();
    ASSERT_EQ(file->descriptor_if_open(), nullptr);
    ASSERT_TRUE(volume_->unlink("0"));
    crowd();
    EXPECT_EQ(read(*file), "gone by name");
}

TEST_F(DescriptorCacheTest, AnotherFileOfTheNameIsRefused) {
    auto file = make(0);
    ASSERT_TRUE(write(*file, "mine"));
    ASSERT_TRUE(file->sync());
    crowd();
    ASSERT_EQ(file->descriptor_if_open(), nullptr);
    std::filesystem::rename(root_.path() + "/0", root_.path() + "/elsewhere");
    auto other = make(0);
    std::byte into[4];
    EXPECT_EQ(file->read_at(0, into).error().code, ErrorCode::kIo);
    EXPECT_EQ(file->sync().error().code, ErrorCode::kIo);
}

TEST_F(DescriptorCacheTest, UnsyncedWritesAreSyncedBeforeTheyAreClosed) {
    auto dirty = make(0);
    ASSERT_TRUE(write(*dirty, "x"));
    EXPECT_EQ(syncs(), 0U);
    for (int i = 0; i < 3; ++i) {
        others_.push_back(make(1 + i));
        ASSERT_TRUE(write(*others_.back(), "x"));
    }
    others_.push_back(make(4));
    EXPECT_EQ(syncs(), 0U) << "the new one is clean: the limit may be kept without a sync";
    ASSERT_TRUE(write(*others_.back(), "x"));
    others_.push_back(make(5));
    others_.push_back(make(6));
    EXPECT_GE(syncs(), 1U);
}

TEST_F(DescriptorCacheTest, ThreadsUseMoreFilesThanThereAreDescriptors) {
    std::vector<std::unique_ptr<File>> files;
    for (int i = 0; i < kFiles; ++i) {
        files.push_back(make(i));
        ASSERT_TRUE(write(*files.back(), std::to_string(100 + i)));
    }
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 2000; ++i) {
                const int at = (i * 7 + t * 13) % kFiles;
                if (read(*files[at]).substr(0, 3) != std::to_string(100 + at)) ++wrong;
                if (at % 4 == t && !write(*files[at], "y", 3 + t)) ++wrong;
                if (i % 50 == 0 && !files[at]->sync()) ++wrong;
            }
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    files.clear();
    EXPECT_EQ(cache_->open(), 0U);
}

/// A file whose sync takes as long as the test wants.
class Slow final : public DescriptorCache::Member {
public:
    void opened(DescriptorCache& cache) { cache.enter(*this); }
    std::atomic<bool> syncing = false;
    std::atomic<bool> may_end = false;

private:
    bool close_clean() override { return false; }
    bool close_dirty() override {
        syncing = true;
        syncing.notify_all();
        may_end.wait(false);
        return true;
    }
};

TEST(DescriptorCacheAloneTest, LeavingWaitsForTheSyncThatCloses) {
    DescriptorCache cache(1);
    auto slow = std::make_unique<Slow>();
    slow->opened(cache);
    std::thread closer([&] { EXPECT_TRUE(cache.close_one()); });
    slow->syncing.wait(false);
    std::atomic<bool> left = false;
    std::thread leaver([&] {
        cache.leave(*slow);
        left = true;
    });
    EXPECT_FALSE(left);
    slow->may_end = true;
    slow->may_end.notify_all();
    leaver.join();
    closer.join();
    EXPECT_TRUE(left);
    EXPECT_EQ(cache.open(), 0U);
}

}  // namespace
}  // namespace kaas::storage
