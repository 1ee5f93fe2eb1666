#include "security/crypto.h"

#include "base/assert.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace kaas::security {
namespace {

static_assert(kDigestBytes == SHA512_DIGEST_LENGTH);

const unsigned char* in(std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* out(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

}  // namespace

std::string sha512(std::string_view text) {
    std::string digest(kDigestBytes, '\0');
    SHA512(in(text), text.size(), out(digest));
    return digest;
}

std::string hmac_sha512(std::string_view key, std::string_view text) {
    std::string digest(kDigestBytes, '\0');
    // A null key would mean that of the last call.
    const unsigned char* bytes = key.empty() ? in("") : in(key);
    const auto* done = HMAC(EVP_sha512(), bytes, static_cast<int>(key.size()), in(text),
                            text.size(), out(digest), nullptr);
    KAAS_ASSERT(done != nullptr);
    return digest;
}

std::string stretch(std::string_view password, std::string_view salt, int iterations) {
    std::string digest(kDigestBytes, '\0');
    const int done = PKCS5_PBKDF2_HMAC(password.data(), static_cast<int>(password.size()), in(salt),
                                       static_cast<int>(salt.size()), iterations, EVP_sha512(),
                                       static_cast<int>(digest.size()), out(digest));
    KAAS_ASSERT(done == 1);
    return digest;
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string random_bytes(std::size_t count) {
    std::string bytes(count, '\0');
    KAAS_ASSERT(RAND_priv_bytes(out(bytes), static_cast<int>(count)) == 1);
    return bytes;
}

}  // namespace kaas::security
