// Messages of any kind are refused or taken apart; what was taken from them is in them, and neither
// side of an exchange is brought to trust the other by chance.

#include "base/assert.h"
#include "security/scram.h"
#include "security/scram_messages.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace security = kaas::security;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const security::ScramCredential credential =
        security::make_scram_credential("secret", "salt");
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (const auto first = security::parse_client_first(text)) {
        KAAS_ASSERT(text.ends_with(first->bare));
        const std::string again =
            "n,,n=" + security::scram_name(first->user) + ",r=" + first->nonce;
        const auto second = security::parse_client_first(again);
        KAAS_ASSERT(second && second->user == first->user && second->nonce == first->nonce);
    }
    if (const auto final = security::parse_client_final(text)) {
        KAAS_ASSERT(text.starts_with(final->without_proof));
    }
    [[maybe_unused]] const auto last = security::parse_server_final(text);
    if (const auto first = security::parse_server_first(text)) KAAS_ASSERT(first->iterations > 0);

    // A newline parts the two messages of an exchange.
    const std::size_t cut = text.find('\n');
    security::ScramServer server("nonce", [](std::string_view) { return &credential; });
    auto answer = server.answer(text.substr(0, cut));
    if (cut != std::string_view::npos) answer = server.answer(text.substr(cut + 1));
    KAAS_ASSERT(!server.complete());
    return 0;
}
