#pragma once

#include "security/error.h"
#include "security/scram_messages.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace kaas::security {

inline constexpr std::string_view kScramSha512 = "SCRAM-SHA-512";
/// Apache's `ScramMechanism`: fewer are refused by both sides.
inline constexpr int kScramIterationsMin = 4096;
/// More are refused by our client: they run on the thread that asks, and a second is too long.
inline constexpr int kScramIterationsMax = 1 << 18;

/// What a server keeps of a password: enough to check a client that has it, and to show that it
/// knew it too, but not to be that client (RFC 5802, section 3).
struct ScramCredential {
    std::string salt;
    std::string stored_key;
    std::string server_key;
    int iterations = kScramIterationsMin;
};

/// Takes milliseconds.
[[nodiscard]] ScramCredential make_scram_credential(std::string_view password,
                                                    std::string_view salt,
                                                    int iterations = kScramIterationsMin);
/// A nonce, or a salt: nobody has had it before.
[[nodiscard]] std::string scram_nonce();

/// The server's side of one exchange of SCRAM-SHA-512 (RFC 5802, RFC 7677; Apache
/// `ScramSaslServer`). Passive: a message in, a message out. An error ends it.
/// Thread: one at a time.
class ScramServer {
public:
    /// The credential of a user, or null; valid until the exchange ends.
    using Find = std::function<const ScramCredential*(std::string_view user)>;

    ScramServer(std::string nonce, Find find) : nonce_(std::move(nonce)), find_(std::move(find)) {}

    /// The answer to the client's next message. Errors: kMalformed, kDenied, kOtherIdentity,
    /// kOutOfTurn.
    [[nodiscard]] Result<std::string> answer(std::string_view message);
    /// True once the client has shown that it knows the password.
    [[nodiscard]] bool complete() const { return state_ == State::kComplete; }
    /// Who it is, once complete.
    [[nodiscard]] const std::string& user() const { return first_.user; }

private:
    enum class State : std::uint8_t { kFirst, kFinal, kComplete, kFailed };

    [[nodiscard]] Result<std::string> answer_first(std::string_view message);
    [[nodiscard]] Result<std::string> answer_final(std::string_view message);

    const std::string nonce_;
    const Find find_;
    State state_ = State::kFirst;
    ScramClientFirst first_;
    std::string server_first_;
    const ScramCredential* credential_ = nullptr;
};

/// The client's side (Apache `ScramSaslClient`). Thread: one at a time.
class ScramClient {
public:
    ScramClient(std::string user, std::string password, std::string nonce);

    /// The first message.
    [[nodiscard]] std::string first() const { return "n,," + bare_; }
    /// The answer to the server's first message; takes the time of its iterations. Errors:
    /// kMalformed; kDenied for a server that is not to be trusted.
    [[nodiscard]] Result<std::string> answer(std::string_view server_first);
    /// Good when the server knows the password too. Errors: kMalformed; kDenied.
    [[nodiscard]] Result<void> finish(std::string_view server_final) const;

private:
    const std::string password_;
    const std::string nonce_;
    const std::string bare_;
    std::string expected_signature_;  ///< empty until `answer`
};

}  // namespace kaas::security
