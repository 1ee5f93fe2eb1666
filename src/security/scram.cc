#include "security/scram.h"

#include "base/base64.h"
#include "base/result.h"
#include "security/crypto.h"
#include "security/error.h"
#include "security/scram_messages.h"

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace kaas::security {
namespace {

/// Both of one length.
std::string exclusive_or(std::string_view a, std::string_view b) {
    std::string result(a);
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = static_cast<char>(a[i] ^ b[i]);
    return result;
}

std::string signed_text(std::string_view client_first_bare, std::string_view server_first,
                        std::string_view client_final_without_proof) {
    return fmt::format("{},{},{}", client_first_bare, server_first, client_final_without_proof);
}

struct Keys {
    std::string client;
    std::string stored;
    std::string server;
};

Keys keys_of(std::string_view password, std::string_view salt, int iterations) {
    const std::string stretched = stretch(password, salt, iterations);
    const std::string client = hmac_sha512(stretched, "Client Key");
    return {client, sha512(client), hmac_sha512(stretched, "Server Key")};
}

}  // namespace

ScramCredential make_scram_credential(std::string_view password, std::string_view salt,
                                      int iterations) {
    Keys keys = keys_of(password, salt, iterations);
    return {.salt = std::string(salt),
            .stored_key = std::move(keys.stored),
            .server_key = std::move(keys.server),
            .iterations = iterations};
}

std::string scram_nonce() { return base::to_base64(random_bytes(18)); }

Result<std::string> ScramServer::answer(std::string_view message) {
    const State before = std::exchange(state_, State::kFailed);
    switch (before) {
        case State::kFirst: return answer_first(message);
        case State::kFinal: return answer_final(message);
        case State::kComplete:
        case State::kFailed: break;
    }
    return fail(ErrorCode::kOutOfTurn, "the exchange has ended");
}

Result<std::string> ScramServer::answer_first(std::string_view message) {
    KAAS_TRY_ASSIGN(first, parse_client_first(message));
    first_ = std::move(first);
    credential_ = find_(first_.user);
    // No name in what is logged: it is the peer's text, and may hold anything.
    if (credential_ == nullptr) {
        return fail(ErrorCode::kDenied, "there is no such user");
    }
    // Compared as Apache does it: one side with its =2C and =3D, the other without.
    if (!first_.authorization_id.empty() && first_.authorization_id != first_.user) {
        return fail(ErrorCode::kOtherIdentity, "it asked to be somebody else");
    }
    if (credential_->iterations < kScramIterationsMin) {
        return fail(ErrorCode::kDenied, "the user's credential has too few iterations");
    }
    server_first_ = fmt::format("r={}{},s={},i={}", first_.nonce, nonce_,
                                base::to_base64(credential_->salt), credential_->iterations);
    state_ = State::kFinal;
    return server_first_;
}

Result<std::string> ScramServer::answer_final(std::string_view message) {
    KAAS_TRY_ASSIGN(final, parse_client_final(message));
    if (final.nonce != first_.nonce + nonce_) {
        return fail(ErrorCode::kDenied, "the final message has another nonce");
    }
    const std::string text = signed_text(first_.bare, server_first_, final.without_proof);
    const std::string signature = hmac_sha512(credential_->stored_key, text);
    if (final.proof.size() != signature.size() ||
        !equal_in_constant_time(sha512(exclusive_or(final.proof, signature)),
                                credential_->stored_key)) {
        return fail(ErrorCode::kDenied, "the password is another one");
    }
    state_ = State::kComplete;
    return "v=" + base::to_base64(hmac_sha512(credential_->server_key, text));
}

ScramClient::ScramClient(std::string user, std::string password, std::string nonce)
    : password_(std::move(password)),
      nonce_(std::move(nonce)),
      bare_(fmt::format("n={},r={}", scram_name(user), nonce_)) {}

Result<std::string> ScramClient::answer(std::string_view server_first) {
    KAAS_TRY_ASSIGN(first, parse_server_first(server_first));
    if (!first.nonce.starts_with(nonce_)) {
        return fail(ErrorCode::kDenied, "the server's nonce does not begin with ours");
    }
    if (first.iterations < kScramIterationsMin || first.iterations > kScramIterationsMax) {
        return fail(ErrorCode::kDenied,
                    fmt::format("the server asks for {} iterations, not {} to "
                                "{}",
                                first.iterations, kScramIterationsMin, kScramIterationsMax));
    }
    const Keys keys = keys_of(password_, first.salt, first.iterations);
    const std::string without_proof = fmt::format("c={},r={}", base::to_base64("n,,"), first.nonce);
    const std::string text = signed_text(bare_, server_first, without_proof);
    expected_signature_ = hmac_sha512(keys.server, text);
    const std::string proof = exclusive_or(keys.client, hmac_sha512(keys.stored, text));
    return fmt::format("{},p={}", without_proof, base::to_base64(proof));
}

Result<void> ScramClient::finish(std::string_view server_final) const {
    KAAS_TRY_ASSIGN(final, parse_server_final(server_final));
    if (!final.error.empty()) return fail(ErrorCode::kDenied, "the server says: " + final.error);
    if (expected_signature_.empty() ||
        !equal_in_constant_time(final.signature, expected_signature_)) {
        return fail(ErrorCode::kDenied, "the server does not know the password");
    }
    return {};
}

}  // namespace kaas::security
