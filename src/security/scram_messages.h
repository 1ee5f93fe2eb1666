#pragma once

#include "security/error.h"

#include <string>
#include <string_view>

namespace kaas::security {

// The four messages of SCRAM (RFC 5802, section 7), in the forms that Apache's `ScramMessages`
// takes: ASCII alone, no channel binding asked for, extensions allowed and ignored. Names and
// nonces are what stands between the commas.

struct ScramClientFirst {
    std::string authorization_id;  ///< as in the message; empty when none
    std::string user;              ///< =2C and =3D undone
    std::string nonce;
    std::string bare;  ///< the message without its GS2 header: it is signed
};

struct ScramServerFirst {
    std::string nonce;  ///< the client's, and the server's behind it
    std::string salt;
    int iterations = 0;
};

struct ScramClientFinal {
    std::string channel_binding;
    std::string nonce;
    std::string proof;
    std::string without_proof;  ///< it is signed
};

struct ScramServerFinal {
    std::string error;  ///< empty when there is a signature
    std::string signature;
};

// Errors: kMalformed.
[[nodiscard]] Result<ScramClientFirst> parse_client_first(std::string_view message);
[[nodiscard]] Result<ScramServerFirst> parse_server_first(std::string_view message);
[[nodiscard]] Result<ScramClientFinal> parse_client_final(std::string_view message);
[[nodiscard]] Result<ScramServerFinal> parse_server_final(std::string_view message);

/// A user's name as it stands in a message.
[[nodiscard]] std::string scram_name(std::string_view user);

}  // namespace kaas::security
