// Goal: every message in every version comes back as written, and none of its truncations does
// harm. Method: random messages from a printed seed; every version of every type. Whether the bytes
// are Kafka's is for tests/oracle to say.
#include "wire/testing/all_messages.h"

#include "wire/api.h"
#include "wire/error.h"
#include "wire/testing/random.h"
#include "wire/types.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace kaas::wire::testing {
namespace {

using Memory = std::vector<std::byte>;

class AllMessages : public ::testing::Test {
protected:
    AllMessages() { RecordProperty("seed", std::to_string(seed_)); }

    /// Calls `check(type, version, bytes)` for a message of defaults and two random ones.
    template <class Check>
    void for_each(Check check) {
        Random random(seed_);
        for (const auto& type : all_messages()) {
            for (std::int16_t version = type.min; version <= type.max; ++version) {
                for (Random* source : {static_cast<Random*>(nullptr), &random, &random}) {
                    SCOPED_TRACE(::testing::Message()
                                 << type.name << " v" << version << " seed " << seed_);
                    auto made = type.make(source, version);
                    ASSERT_TRUE(made) << made.error().context;
                    check(type, version, Memory(made->bytes().begin(), made->bytes().end()));
                }
            }
        }
    }

    const std::uint64_t seed_ = std::random_device{}();
};

TEST_F(AllMessages, ComeBackAsWritten) {
    for_each([](const MessageType& type, std::int16_t version, Memory bytes) {
        const Memory before = bytes;
        auto recoded = type.recode(bytes, version);
        ASSERT_TRUE(recoded) << recoded.error().context;
        EXPECT_EQ(recoded->left, 0U);
        EXPECT_TRUE(std::ranges::equal(recoded->output.bytes(), before));
    });
}

TEST_F(AllMessages, NoTruncationDecodes) {
    for_each([](const MessageType& type, std::int16_t version, const Memory& bytes) {
        // All short ones, a sample of long ones. Memory of the right length, so that ASan sees a
        // step too far.
        const std::size_t step = 1 + bytes.size() / 100;
        for (std::size_t size = 0; size < bytes.size(); size += step) {
            Memory cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
            EXPECT_FALSE(type.decode_only(cut, version))
                << "cut at " << size << " of " << bytes.size();
        }
    });
}

TEST_F(AllMessages, VersionsAroundTheRangeAreRefused) {
    for (const auto& type : all_messages()) {
        for (int version : {type.min - 1, type.max + 1}) {
            auto made = type.make(nullptr, static_cast<std::int16_t>(version));
            ASSERT_FALSE(made) << type.name;
            EXPECT_EQ(made.error().code, CodecError::kUnsupportedVersion);
        }
    }
}

TEST(Api, TheTableIsSortedAndFindsItself) {
    EXPECT_TRUE(std::ranges::is_sorted(kApis, {}, &Api::key));
    for (const Api& row : kApis) EXPECT_EQ(&api(row.key), &row);
    EXPECT_EQ(find_api(4), nullptr);
    EXPECT_EQ(find_api(-1), nullptr);
    EXPECT_EQ(find_api(32767), nullptr);
}

}  // namespace
}  // namespace kaas::wire::testing
