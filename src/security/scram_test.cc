// Goal: both sides of SCRAM-SHA-512 compute what RFC 5802 says, and nobody is trusted who has not
// shown the password. The vectors are RFC 7677's exchange with SHA-512 in place of SHA-256,
// computed by a program that gives the RFC's own values for SHA-256.
#include "security/scram.h"

#include "base/base64.h"
#include "security/crypto.h"
#include "security/error.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace kaas::security {
namespace {

constexpr std::string_view kClientNonce = "rOprNGfwEbeRWgbNEkqO";
constexpr std::string_view kServerNonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
constexpr std::string_view kServerFirst =
    "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
constexpr std::string_view kClientFinal =
    "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    "p=gMGXRcevScNtxZ6/8lQYpGtnsNAc3mGcmNomv+xnoOMw+3R2xNJdMNnzMlTN8PPC6wdp6dybEmDYXYTxwnYPJQ==";
constexpr std::string_view kServerFinal =
    "v=ZQnYEgWQMFmmsM8aQMF0nDDCy/AgCzkwk8CmMZYcMg0vSVlKDanekLtifDSeVGT4+5ZxXnJq199RVG2rR7N7Zw==";

const ScramCredential& pencil() {
    static const ScramCredential credential =
        make_scram_credential("pencil", *base::from_base64("W22ZaJ0SNY7soEsUEjb6gQ=="), 4096);
    return credential;
}

ScramServer server(const ScramCredential& credential = pencil()) {
    return {std::string(kServerNonce), [&credential](std::string_view user) {
                return user == "user" ? &credential : nullptr;
            }};
}
ScramClient client(const std::string& password = "pencil") {
    return {"user", password, std::string(kClientNonce)};
}

TEST(Scram, CredentialIsWhatTheRfcSays) {
    EXPECT_EQ(base::to_base64(pencil().stored_key),
              "6AAub3065EYRmyFpM2RNwqK+eGnrkYuEWbXn19LsEmBqzu8QaCXNc1FwpnX9NhH2hK/"
              "60dzj9DoO5DvVkOHbvg==");
    EXPECT_EQ(base::to_base64(pencil().server_key),
              "jZHbYjC1aHh0/hKbxyBuGFjDrgjgKTT1esA7awWiKcRZ0o/"
              "0b1yWEebBeSVkkCFewf91nLDfKF24mvD5nmE6rA==");
}

TEST(Scram, BothSidesSayWhatTheRfcSays) {
    auto theirs = server();
    auto mine = client();
    EXPECT_EQ(mine.first(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
    EXPECT_EQ(theirs.answer(mine.first()), kServerFirst);
    EXPECT_FALSE(theirs.complete());
    EXPECT_EQ(mine.answer(kServerFirst), kClientFinal);
    EXPECT_EQ(theirs.answer(kClientFinal), kServerFinal);
    EXPECT_TRUE(theirs.complete());
    EXPECT_EQ(theirs.user(), "user");
    EXPECT_TRUE(mine.finish(kServerFinal));
}

TEST(Scram, AWrongPasswordIsDenied) {
    auto theirs = server();
    auto mine = client("pen");
    const auto last = mine.answer(*theirs.answer(mine.first()));
    ASSERT_TRUE(last);
    EXPECT_EQ(theirs.answer(*last).error().code, ErrorCode::kDenied);
    EXPECT_FALSE(theirs.complete());
    EXPECT_EQ(theirs.answer(kClientFinal).error().code, ErrorCode::kOutOfTurn);
}

TEST(Scram, AnUnknownUserIsDenied) {
    auto theirs = server();
    EXPECT_EQ(theirs.answer("n,,n=other,r=nonce").error().code, ErrorCode::kDenied);
}

TEST(Scram, NobodyBecomesSomebodyElse) {
    EXPECT_TRUE(server().answer("n,a=user,n=user,r=nonce"));
    EXPECT_EQ(server().answer("n,a=root,n=user,r=nonce").error().code, ErrorCode::kOtherIdentity);
}

TEST(Scram, AnotherNonceIsDenied) {
    auto theirs = server();
    ASSERT_TRUE(theirs.answer(client().first()));
    std::string replayed(kClientFinal);
    replayed.replace(replayed.find("k0,p"), 2, "k1");
    EXPECT_EQ(theirs.answer(replayed).error().code, ErrorCode::kDenied);
}

TEST(Scram, AProofOfAnotherLengthIsDenied) {
    auto theirs = server();
    ASSERT_TRUE(theirs.answer(client().first()));
    const std::string final = std::string(kClientFinal.substr(0, kClientFinal.find("p="))) + "p=";
    EXPECT_EQ(theirs.answer(final).error().code, ErrorCode::kDenied);
}

TEST(Scram, FewIterationsAreRefusedByBoth) {
    const ScramCredential weak = make_scram_credential("pencil", "salt", 4095);
    EXPECT_EQ(server(weak).answer(client().first()).error().code, ErrorCode::kDenied);
    EXPECT_EQ(client().answer("r=rOprNGfwEbeRWgbNEkqOx,s=c2FsdA==,i=4095").error().code,
              ErrorCode::kDenied);
    EXPECT_EQ(client().answer("r=rOprNGfwEbeRWgbNEkqOx,s=c2FsdA==,i=2000000000").error().code,
              ErrorCode::kDenied);
}

TEST(Scram, AServerWithoutThePasswordIsNotTrusted) {
    auto mine = client();
    EXPECT_EQ(mine.finish("v=").error().code, ErrorCode::kDenied) << "before there was an answer";
    EXPECT_EQ(mine.answer("r=other,s=c2FsdA==,i=4096").error().code, ErrorCode::kDenied);
    ASSERT_TRUE(mine.answer(kServerFirst));
    EXPECT_EQ(mine.finish("v=AAAA").error().code, ErrorCode::kDenied);
    EXPECT_EQ(mine.finish("e=other-error").error().code, ErrorCode::kDenied);
    EXPECT_TRUE(mine.finish(kServerFinal));
}

TEST(Scram, NamesWithCommasAndEqualsSurvive) {
    const ScramCredential credential = make_scram_credential("p", "salt");
    ScramServer theirs(scram_nonce(), [&](std::string_view user) {
        return user == "a,b=c=2C" ? &credential : nullptr;
    });
    ScramClient mine("a,b=c=2C", "p", scram_nonce());
    const auto first = theirs.answer(mine.first());
    ASSERT_TRUE(first);
    const auto last = theirs.answer(*mine.answer(*first));
    ASSERT_TRUE(last);
    EXPECT_TRUE(mine.finish(*last));
    EXPECT_EQ(theirs.user(), "a,b=c=2C");
}

TEST(Scram, NoncesAreNew) { EXPECT_NE(scram_nonce(), scram_nonce()); }

TEST(Crypto, TextsOfOtherLengthsAreNotEqual) {
    EXPECT_TRUE(equal_in_constant_time("", ""));
    EXPECT_TRUE(equal_in_constant_time("ab", "ab"));
    EXPECT_FALSE(equal_in_constant_time("ab", "ac"));
    EXPECT_FALSE(equal_in_constant_time("ab", "abc"));
}

}  // namespace
}  // namespace kaas::security
