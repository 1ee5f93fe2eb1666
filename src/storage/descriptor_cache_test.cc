// Goal: files of a volume keep working however few descriptors there are for them, and none that
// somebody uses, or could not be opened again, is closed.
// Method: real files with a cache far smaller than their number; /proc/self/fd counts.
#include "storage/descriptor_cache.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/metrics.h"
#include "storage/error.h"
#include "storage/journal.h"
#include "storage/journal_format.h"
#include "storage/posix_volume.h"
#include "storage/testing_session.h"
#include "storage/testing_volume.h"
#include "storage/volume.h"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

constexpr std::size_t kLimit = 4;
constexpr int kFiles = 50;

/// The process may open nothing while this lives.
class NoMoreDescriptors {
public:
    NoMoreDescriptors() {
        EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
        rlimit now = before_;
        now.rlim_cur = 0;
        EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &now), 0);
    }
    ~NoMoreDescriptors() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }
    NoMoreDescriptors(const NoMoreDescriptors&) = delete;
    NoMoreDescriptors& operator=(const NoMoreDescriptors&) = delete;

private:
    rlimit before_{};
};

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
    /// One that had to give its descriptor to others.
    std::unique_ptr<File> make_closed(std::string_view text) {
        auto file = make(0);
        EXPECT_TRUE(write(*file, text));
        EXPECT_TRUE(file->sync());
        crowd();
        EXPECT_EQ(file->descriptor_if_open(), nullptr) << "the crowd is large enough";
        return file;
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
    const auto file = make_closed("text");
    std::byte into[4];
    EXPECT_EQ(*file->try_read_at(0, into), 0U) << "as if it was not in memory";
    EXPECT_FALSE(file->cached(0, 4));
    EXPECT_EQ(read(*file), "text");
    EXPECT_NE(file->descriptor_if_open(), nullptr);
    EXPECT_EQ(*file->try_read_at(0, into), 4U);
}

TEST_F(DescriptorCacheTest, UnlinkedWhileClosedIsStillReadable) {
    const auto file = make_closed("gone by name");
    ASSERT_TRUE(volume_->unlink("0"));
    crowd();
    EXPECT_EQ(read(*file), "gone by name");
}

TEST_F(DescriptorCacheTest, RenamedWhileClosedIsFoundByItsNewName) {
    auto file = make(0);
    for (const std::string from : {"0", "first", "second"}) {
        ASSERT_TRUE(write(*file, from + "!"));
        ASSERT_TRUE(file->sync());
        crowd();
        ASSERT_EQ(file->descriptor_if_open(), nullptr);
        const std::string to = from == "0" ? "first" : from == "first" ? "second" : "third";
        ASSERT_TRUE(volume_->rename(from, to));
        crowd();
        EXPECT_EQ(file->descriptor_if_open(), nullptr) << "it has a name: no need to stay open";
        const auto written = write(*file, to);
        EXPECT_TRUE(written) << written.error().context;
        EXPECT_TRUE(file->sync());
        EXPECT_EQ(testing::read_text(*volume_, to).substr(0, to.size()), to);
    }
    crowd();
    ASSERT_TRUE(volume_->unlink("third"));
    EXPECT_EQ(read(*file).substr(0, 5), "third");
}

TEST_F(DescriptorCacheTest, ReplacedWhileClosedIsStillReadable) {
    auto old = make(0);
    ASSERT_TRUE(write(*old, "old"));
    ASSERT_TRUE(old->sync());
    auto young = make(1);
    ASSERT_TRUE(write(*young, "young"));
    ASSERT_TRUE(young->sync());
    crowd();
    ASSERT_EQ(old->descriptor_if_open(), nullptr);
    ASSERT_TRUE(volume_->rename("1", "0"));
    EXPECT_EQ(read(*old), "old");
    EXPECT_EQ(read(*young), "young");
}

TEST_F(DescriptorCacheTest, JournalUsesFilesAgainThatWereClosedMeanwhile) {
    TestingSession session;
    base::InlineExecutor at_once;
    base::ManualClock clock;
    const auto journal = Journal::make(
        {.volume = volume_.get(),
         .session = &session,
         .io_pool = &at_once,
         .clock = &clock,
         .owner = {.broker = base::BrokerId{1}, .incarnation = {base::Uuid::random()}},
         .file_bytes = 1000,
         .most_files = 3});
    const JournalKey key{.partition = {.topic = {}, .partition = base::PartitionId{0}},
                         .epoch = base::LeaderEpoch{0}};
    const std::string batch(800, 'b');
    for (std::int64_t i = 0; i < 12; ++i) {
        const JournalEntry entry{.key = key,
                                 .base = base::Offset{i},
                                 .end = base::Offset{i + 1},
                                 .batches = {base::as_bytes(batch)}};
        const auto bytes = Journal::size_of(entry);
        // The first time asks for a file, which comes for the second.
        ASSERT_TRUE(journal->reserve(bytes) || journal->reserve(bytes)) << i;
        const auto* one = &entry;
        const auto done = journal->commit({&one, 1});
        ASSERT_TRUE(done) << i << ": " << done.error().context;
        crowd();
        journal->recorded(key, base::Offset{i});
    }
    EXPECT_LE(journal->files(), 3U) << "so there were not twelve";
}

TEST_F(DescriptorCacheTest, NameStaysWhenItsFileCannotBeOpened) {
    const auto file = make_closed("text");
    others_.clear();
    {
        const NoMoreDescriptors none;
        EXPECT_EQ(volume_->unlink("0").error().code, ErrorCode::kTooManyOpen);
        EXPECT_EQ(volume_->rename("0", "1").error().code, ErrorCode::kTooManyOpen);
    }
    EXPECT_EQ(testing::read_text(*volume_, "0"), "text");
    EXPECT_EQ(read(*file), "text");
}

TEST_F(DescriptorCacheTest, NameThatIsGoneAlreadyIsJustNotFound) {
    auto file = make(0);
    crowd();
    ASSERT_EQ(file->descriptor_if_open(), nullptr);
    std::filesystem::remove(root_.path() + "/0");
    EXPECT_EQ(volume_->unlink("0").error().code, ErrorCode::kNotFound);
    ASSERT_TRUE(volume_->create("0"));
    EXPECT_TRUE(volume_->unlink("0")) << "of another file";
}

TEST_F(DescriptorCacheTest, AnotherFileOfTheNameIsRefused) {
    const auto file = make_closed("mine");
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

}  // namespace
}  // namespace kaas::storage
