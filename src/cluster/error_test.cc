// Goal: a fence is never taken for a sick volume. Method: every code of storage through `failed`.

#include "cluster/error.h"

#include "storage/error.h"

#include <gtest/gtest.h>

namespace kaas::cluster {
namespace {

TEST(ClusterError, AFenceStaysAFence) {
    const auto error = failed({storage::ErrorCode::kFenced, "the session is marked"}).error();
    EXPECT_EQ(error.code, ErrorCode::kFenced);
    EXPECT_EQ(error.context, "the session is marked");
}

TEST(ClusterError, AnythingElseOfTheVolumeProvesNothing) {
    for (const auto code : {storage::ErrorCode::kIo, storage::ErrorCode::kNotFound,
                            storage::ErrorCode::kExists, storage::ErrorCode::kNoSpace}) {
        EXPECT_EQ(failed({code, {}}).error().code, ErrorCode::kStorage);
    }
}

}  // namespace
}  // namespace kaas::cluster
