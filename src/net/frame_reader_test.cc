// Goal: however a stream is cut into receives, the frames come out whole, in order, where they were
// received, and memory is given back. Method: streams fed in pieces, compared with a plain cutter.
#include "net/frame_reader.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "net/frame_feed.h"
#include "net/frame_memory.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::net {
namespace {

using Next = FrameReader::Next;
constexpr std::size_t kLarge = SlabSource::kSmallFrameMax + 1;

std::string prefix(std::int32_t size) {
    std::string bytes(4, '\0');
    base::store_be(reinterpret_cast<std::byte*>(bytes.data()), size);
    return bytes;
}

std::string frame_of(std::size_t bytes, char fill) {
    return prefix(static_cast<std::int32_t>(bytes)) + std::string(bytes, fill);
}

class FrameReaderTest : public testing::Test {
protected:
    /// Feeds all of `stream`, at most `step` bytes a receive, and takes the frames as they come.
    Next run(std::string_view stream, std::size_t step, std::vector<std::string>& frames) {
        base::FrameRef frame;
        for (;;) {
            Next next = reader_.next(slabs_, false, frame);
            if (next == Next::kFrame) {
                frames.emplace_back(base::as_text(frame.bytes));
                kept_.push_back(std::exchange(frame, {}));
                continue;
            }
            if (next != Next::kReceive || stream.empty()) return next;
            stream.remove_prefix(feed(reader_, slabs_, stream, step));
        }
    }

    FrameMemory memory_{64 << 20, [this] { ++freed_; }};
    SlabSource slabs_{memory_};
    FrameReader reader_{100 << 20};
    std::vector<base::FrameRef> kept_;
    int freed_ = 0;
};

TEST_F(FrameReaderTest, FramesComeOutHoweverTheStreamIsCut) {
    std::mt19937 random(17);
    for (int round = 0; round < 300; ++round) {
        std::string stream;
        int count = static_cast<int>(random() % 12);
        for (int i = 0; i < count; ++i) {
            std::size_t bytes = random() % 5 == 0 ? random() % 300'000 : random() % 300;
            stream += frame_of(bytes, static_cast<char>('a' + i));
        }
        stream += frame_of(1000, 'z').substr(0, random() % 1004);
        std::size_t step = 1 + random() % (round % 3 == 0 ? 7 : 400'000);
        FrameReader fresh(100 << 20);
        std::swap(reader_, fresh);
        std::vector<std::string> frames;
        EXPECT_EQ(run(stream, step, frames), Next::kReceive);
        EXPECT_EQ(frames, cut(stream, 100 << 20).frames) << "round " << round << " step " << step;
        // Later receives have not touched frames that are still held.
        ASSERT_EQ(kept_.size(), frames.size());
        for (std::size_t i = 0; i < frames.size(); ++i) {
            EXPECT_EQ(base::as_text(kept_[i].bytes), frames[i]);
        }
        kept_.clear();
    }
    reader_ = FrameReader(1);
    slabs_.trim();
    EXPECT_EQ(memory_.used(), 0U);
}

TEST_F(FrameReaderTest, SmallFramesAreNeverMoved) {
    std::vector<std::string> frames;
    std::string stream;
    for (int i = 0; i < 400; ++i) stream += frame_of(16'000, 'x');
    EXPECT_EQ(run(stream, 70'000, frames), Next::kReceive);
    EXPECT_EQ(frames.size(), 400U);
    EXPECT_EQ(reader_.moved_bytes(), 0U);
}

TEST_F(FrameReaderTest, OfLargeFramesOnlyTheFirstOnesFirstPieceIsMoved) {
    std::vector<std::string> frames;
    std::string stream;
    for (int i = 0; i < 20; ++i) stream += frame_of(1 << 20, 'x');
    EXPECT_EQ(run(stream, 1 << 20, frames), Next::kReceive);
    EXPECT_EQ(frames.size(), 20U);
    EXPECT_LE(reader_.moved_bytes(), SlabSource::kSlabBytes);
    EXPECT_GT(reader_.moved_bytes(), 0U);
    // Each is in memory of its own, and no larger than it.
    EXPECT_EQ(kept_.back().block->capacity(), std::size_t{1} << 20);
}

TEST_F(FrameReaderTest, NothingIsHeldBetweenFrames) {
    std::vector<std::string> frames;
    EXPECT_EQ(run(frame_of(100, 'x') + frame_of(kLarge, 'y'), 50, frames), Next::kReceive);
    kept_.clear();
    EXPECT_FALSE(reader_.in_frame());
    slabs_.trim();
    EXPECT_EQ(memory_.used(), 0U);
}

TEST_F(FrameReaderTest, HoldsNoMemoryForAPieceOfAPrefix) {
    std::vector<std::string> frames;
    EXPECT_EQ(run(prefix(50).substr(0, 3), 1, frames), Next::kReceive);
    EXPECT_TRUE(reader_.in_frame());
    slabs_.trim();
    EXPECT_EQ(memory_.used(), 0U);
}

TEST_F(FrameReaderTest, ABadLengthComesAfterTheFramesBeforeIt) {
    struct Case {
        const char* fault;
        std::int32_t length;
        Next expected;
    };
    for (const Case& test :
         {Case{"negative", -1, Next::kNegative},
          Case{"least", std::numeric_limits<std::int32_t>::min(), Next::kNegative},
          Case{"one too large", (100 << 20) + 1, Next::kTooLarge},
          Case{"largest", std::numeric_limits<std::int32_t>::max(), Next::kTooLarge}}) {
        for (std::size_t step : {std::size_t{1}, std::size_t{6}, std::size_t{1000}}) {
            reader_ = FrameReader(100 << 20);
            std::vector<std::string> frames;
            std::string stream = frame_of(3, 'x') + prefix(test.length) + "rest of it";
            EXPECT_EQ(run(stream, step, frames), test.expected) << test.fault << " step " << step;
            EXPECT_EQ(frames, std::vector<std::string>{"xxx"}) << test.fault << " step " << step;
        }
    }
    kept_.clear();
    slabs_.trim();
    EXPECT_EQ(memory_.used(), 0U);
}

TEST_F(FrameReaderTest, AnEmptyFrameIsAFrame) {
    std::vector<std::string> frames;
    EXPECT_EQ(run(frame_of(0, ' ') + frame_of(kLarge, 'y') + frame_of(0, ' ') + frame_of(0, ' '), 4,
                  frames),
              Next::kReceive);
    ASSERT_EQ(frames.size(), 4U);
    EXPECT_EQ(frames[2], "");
}

TEST_F(FrameReaderTest, ALargeFrameWaitsForMemoryAndLosesNothing) {
    FrameMemory small(2'000'000, [this] { ++freed_; });
    SlabSource slabs(small);
    base::BlockRef others = small.allocate(1'500'000, false);
    std::string content;
    for (int i = 0; content.size() < 1'000'000; ++i) content += std::to_string(i);
    std::string stream = prefix(static_cast<std::int32_t>(content.size())) + content;
    base::FrameRef frame;
    ASSERT_EQ(reader_.next(slabs, false, frame), Next::kReceive);
    std::size_t at = feed(reader_, slabs, stream, 1000);
    EXPECT_EQ(reader_.next(slabs, false, frame), Next::kNoMemory);
    others = {};
    EXPECT_EQ(freed_, 1);
    while (reader_.next(slabs, true, frame) == Next::kReceive) {
        ASSERT_LT(at, stream.size());
        at += feed(reader_, slabs, std::string_view(stream).substr(at), 70'000);
    }
    EXPECT_EQ(base::as_text(frame.bytes), content);
}

TEST(FrameMemory, WhoHasWaitedMayGoBeyondTheLimitOneAtATime) {
    int freed = 0;
    FrameMemory memory(100, [&] { ++freed; });
    base::BlockRef held = memory.allocate(90, false);
    EXPECT_FALSE(memory.allocate(50, false));
    base::BlockRef beyond = memory.allocate(50, true);
    EXPECT_TRUE(beyond);
    EXPECT_FALSE(memory.allocate(50, true));
    EXPECT_EQ(memory.used(), 140U);
    beyond = {};
    EXPECT_EQ(freed, 1);
    EXPECT_TRUE(memory.allocate(50, true));
}

TEST(FrameMemory, OneFrameAlwaysFits) {
    FrameMemory memory(100, [] {});
    EXPECT_TRUE(memory.allocate(1000, false));
}

TEST(SlabSource, IsUsedAgainWhenNoFrameIsLeft) {
    FrameMemory memory(10 << 20, [] {});
    SlabSource slabs(memory);
    ASSERT_TRUE(slabs.ensure());
    const std::byte* first = slabs.room().data();
    {
        base::BlockRef frame = slabs.block();
        EXPECT_EQ(slabs.take(5000).data(), first);
        ASSERT_TRUE(slabs.ensure());
        EXPECT_EQ(slabs.room().data(), first + 5000);
    }
    ASSERT_TRUE(slabs.ensure());
    EXPECT_EQ(slabs.room().data(), first);
    EXPECT_EQ(memory.used(), 0U);
}

TEST(SlabSource, FullSlabsComeBackWithTheirLastFrame) {
    FrameMemory memory(10 << 20, [] {});
    SlabSource slabs(memory);
    ASSERT_TRUE(slabs.ensure());
    const std::byte* first = slabs.room().data();
    base::BlockRef frame = slabs.block();
    (void)slabs.take(slabs.room().size());
    ASSERT_TRUE(slabs.ensure());
    base::BlockRef other = slabs.block();
    EXPECT_NE(slabs.room().data(), first);
    (void)slabs.take(slabs.room().size());
    frame = {};
    ASSERT_TRUE(slabs.ensure());
    EXPECT_EQ(slabs.room().data(), first);
    EXPECT_EQ(memory.used(), SlabSource::kSlabBytes);
    other = {};
    slabs.trim();
    EXPECT_EQ(memory.used(), 0U);
}

}  // namespace
}  // namespace kaas::net
