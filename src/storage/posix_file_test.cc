// Goal: no sync of a file says yes when another one of it has heard of an error, however the two
// meet. Method: real files, with an fdatasync that fails when the test wants.
#include "storage/posix_file.h"

#include "base/bytes.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "storage/descriptor_cache.h"
#include "storage/error.h"
#include "storage/testing_volume.h"
#include "storage/volume.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace kaas::storage {
namespace {

using namespace std::chrono_literals;

class PosixFileTest : public ::testing::Test {
protected:
    void SetUp() override {
        shared_->root =
            base::UniqueFd(::open(root_.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
        shared_->descriptors = std::make_shared<DescriptorCache>(1);
        file_ = make("file");
    }
    std::shared_ptr<PosixFile> make(const std::string& path) {
        auto file = PosixFile::open(shared_, path, O_RDWR | O_CREAT | O_EXCL);
        EXPECT_TRUE(file) << file.error().context;
        return std::move(*file);
    }
    static Result<void> write(File& file) {
        const base::ByteView piece = base::as_bytes(std::string_view("text"));
        return file.write_at(0, {&piece, 1});
    }
    static int no_disk(int /*descriptor*/) {
        errno = EIO;
        return -1;
    }

    testing::TemporaryDirectory root_;
    std::shared_ptr<PosixShared> shared_ = std::make_shared<PosixShared>();
    std::shared_ptr<PosixFile> file_;
};

TEST_F(PosixFileTest, SyncThatMeetsAFailedOneFailsToo) {
    ASSERT_TRUE(write(*file_));
    base::Mutex mutex;
    base::CondVar met;
    int calls = 0;
    std::thread other;
    Result<void> of_other;
    shared_->datasync = [&](int) {
        base::MutexLock lock(mutex);
        if (++calls > 1) {
            met.notify_all();
            return 0;  // as the kernel does, which has told the first one
        }
        other = std::thread([&] { of_other = file_->sync(); });
        // Time enough for the two to overlap, if they may.
        while (calls == 1 && met.wait_for(mutex, 50ms)) {
        }
        return no_disk(0);
    };
    EXPECT_FALSE(file_->sync());
    other.join();
    EXPECT_FALSE(of_other);
}

TEST_F(PosixFileTest, SyncThatMeetsAFailedSyncOfEverythingFailsToo) {
    ASSERT_TRUE(write(*file_));
    shared_->datasync = [&](int) {
        file_->all_sync_begins();
        file_->all_sync_ended(fail(ErrorCode::kIo, "of everything"));
        return 0;
    };
    EXPECT_FALSE(file_->sync());
}

TEST_F(PosixFileTest, SyncOfEverythingBehindAFailedOneFailsToo) {
    ASSERT_TRUE(write(*file_));
    shared_->sync_whole = no_disk;
    EXPECT_FALSE(sync_all(*shared_, root_.path()));
    shared_->sync_whole = [](int) { return 0; };  // as the kernel does, which has told the first
    EXPECT_FALSE(sync_all(*shared_, root_.path())) << "the caller may have written before";
    EXPECT_FALSE(file_->sync());
}

TEST_F(PosixFileTest, FailureOfTheSyncThatClosesAnswersEveryLaterCall) {
    ASSERT_TRUE(write(*file_));
    shared_->datasync = no_disk;
    ASSERT_TRUE(shared_->descriptors->close_one());
    ASSERT_EQ(file_->descriptor_if_open(), nullptr);
    shared_->datasync = ::fdatasync;
    std::byte into[4];
    EXPECT_EQ(*file_->read_at(0, into), 4U) << "so it is open again";
    EXPECT_EQ(file_->sync().error().code, ErrorCode::kIo);
    EXPECT_EQ(write(*file_).error().code, ErrorCode::kIo);
}

TEST_F(PosixFileTest, NoFileIsOpenedUnderTheLockThatEndingFilesTake) {
    ASSERT_TRUE(shared_->descriptors->close_one());
    ASSERT_EQ(file_->descriptor_if_open(), nullptr);
    auto dirty = make("dirty");
    ASSERT_TRUE(write(*dirty));
    bool free = false;
    shared_->datasync = [&](int) {
        std::thread([&] {
            if (!shared_->mutex.try_lock()) return;
            shared_->mutex.unlock();
            free = true;
        }).join();
        return 0;
    };
    EXPECT_TRUE(keep_open(*shared_, "file"));
    EXPECT_TRUE(free) << "the other file was synced, to have room";
}

TEST_F(PosixFileTest, WhoGivesAFileBackWaitsForNoSyncThatClosesIt) {
    ASSERT_TRUE(write(*file_));
    base::Mutex mutex;
    base::CondVar gone;
    bool given_back = false;
    std::thread giver;
    shared_->datasync = [&](int) {
        base::MutexLock lock(mutex);
        giver = std::thread([&] {
            file_.reset();
            base::MutexLock inner(mutex);
            given_back = true;
            gone.notify_all();
        });
        while (!given_back && gone.wait_for(mutex, 2s)) {
        }
        EXPECT_TRUE(given_back) << "while the sync runs";
        return 0;
    };
    EXPECT_TRUE(shared_->descriptors->close_one());
    giver.join();
    EXPECT_EQ(shared_->descriptors->open(), 0U);
    base::MutexLock lock(shared_->mutex);
    EXPECT_TRUE(shared_->files.empty());
}

}  // namespace
}  // namespace kaas::storage
