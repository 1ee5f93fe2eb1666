#include "security/scram_messages.h"

#include "security/error.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace kaas::security {
namespace {

std::unexpected<Error> malformed(const char* message) {
    // Not what came: it may hold a proof, and whoever sent it knows it.
    return fail(ErrorCode::kMalformed, std::string("not a SCRAM ") + message);
}

bool is_value(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
        return c >= 0x01 && c <= 0x7F && c != ',';
    });
}

bool is_nonce(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
        return c >= '!' && c <= '~' && c != ',';
    });
}

std::optional<std::string> name_of(std::string_view text) {
    if (!is_value(text)) return std::nullopt;
    std::string name;
    for (; !text.empty(); text.remove_prefix(1)) {
        if (text[0] != '=') {
            name += text[0];
            continue;
        }
        if (!text.starts_with("=2C") && !text.starts_with("=3D")) return std::nullopt;
        name += text.starts_with("=2C") ? ',' : '=';
        text.remove_prefix(2);
    }
    return name;
}

bool is_base64_digit(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/';
}

/// As Java decodes: what the last digit says beyond the last byte is ignored.
std::optional<std::string> from_base64(std::string_view text) {
    if (text.size() % 4 != 0) return std::nullopt;
    std::string_view digits = text;
    for (int padding = 0; padding < 2 && digits.ends_with('='); ++padding) digits.remove_suffix(1);
    if (!std::ranges::all_of(digits, is_base64_digit)) return std::nullopt;
    std::string bytes(text.size() / 4 * 3, '\0');
    const int decoded = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                        reinterpret_cast<const unsigned char*>(text.data()),
                                        static_cast<int>(text.size()));
    if (decoded < 0) return std::nullopt;
    bytes.resize(bytes.size() - (text.size() - digits.size()));
    return bytes;
}

/// What stands between a message's commas, taken one by one.
class Fields {
public:
    explicit Fields(std::string_view message) : rest_(message) {}

    [[nodiscard]] bool at_end() const { return at_end_; }
    /// The next one, or nothing when there is none.
    std::optional<std::string_view> next() {
        if (at_end_) return std::nullopt;
        const std::size_t comma = rest_.find(',');
        const std::string_view field = rest_.substr(0, comma);
        at_end_ = comma == std::string_view::npos;
        rest_.remove_prefix(at_end_ ? rest_.size() : comma + 1);
        return field;
    }
    /// The value of the next one, which must be called `name`.
    std::optional<std::string_view> next(char name) {
        const auto field = next();
        if (!field || !field->starts_with(name) || !field->substr(1).starts_with('=')) {
            return std::nullopt;
        }
        return field->substr(2);
    }
    /// Passes over an `m=`, which is kept for later versions of SCRAM. False when it is bad.
    bool skip_reserved() {
        if (!rest_.starts_with("m=")) return true;
        return is_value(*next('m'));
    }
    /// Passes over extensions, up to the end. False when one is bad.
    bool skip_extensions() {
        while (const auto field = next()) {
            if (!is_extension(*field)) return false;
        }
        return true;
    }

    [[nodiscard]] static bool is_extension(std::string_view field) {
        const std::size_t equals = field.find('=');
        if (equals == 0 || equals == std::string_view::npos) return false;
        const auto is_letter = [](char c) {
            return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        };
        return std::ranges::all_of(field.substr(0, equals), is_letter) &&
               is_value(field.substr(equals + 1));
    }

private:
    std::string_view rest_;
    bool at_end_ = false;
};

}  // namespace

Result<ScramClientFirst> parse_client_first(std::string_view message) {
    constexpr const char* kWhat = "client's first message";
    ScramClientFirst parsed;
    Fields fields(message);
    // The GS2 header; "y" and "p=" would ask for channel binding.
    if (fields.next() != "n") return malformed(kWhat);
    const auto identity = fields.next();
    if (!identity) return malformed(kWhat);
    if (!identity->empty()) {
        if (!identity->starts_with("a=") || !name_of(identity->substr(2))) return malformed(kWhat);
        parsed.authorization_id = identity->substr(2);
    }
    parsed.bare = message.substr(std::min(message.size(), identity->size() + 3));
    if (!fields.skip_reserved()) return malformed(kWhat);
    const auto name = fields.next('n');
    const auto user = name ? name_of(*name) : std::nullopt;
    const auto nonce = fields.next('r');
    if (!user || !nonce || !is_nonce(*nonce) || !fields.skip_extensions()) return malformed(kWhat);
    parsed.user = *user;
    parsed.nonce = *nonce;
    return parsed;
}

Result<ScramServerFirst> parse_server_first(std::string_view message) {
    constexpr const char* kWhat = "server's first message";
    ScramServerFirst parsed;
    Fields fields(message);
    if (!fields.skip_reserved()) return malformed(kWhat);
    const auto nonce = fields.next('r');
    const auto salt_text = fields.next('s');
    const auto salt = salt_text ? from_base64(*salt_text) : std::nullopt;
    const auto count = fields.next('i');
    if (!nonce || !is_nonce(*nonce) || !salt || !count || !fields.skip_extensions()) {
        return malformed(kWhat);
    }
    // Digits alone, though from_chars would take a sign.
    const bool digits = !count->empty() && std::ranges::all_of(*count, [](unsigned char c) {
        return std::isdigit(c) != 0;
    });
    const auto [end, wrong] =
        std::from_chars(count->data(), count->data() + count->size(), parsed.iterations);
    if (!digits || wrong != std::errc() || parsed.iterations <= 0) return malformed(kWhat);
    parsed.nonce = *nonce;
    parsed.salt = *salt;
    return parsed;
}

Result<ScramClientFinal> parse_client_final(std::string_view message) {
    constexpr const char* kWhat = "client's final message";
    const std::size_t last = message.rfind(',');
    if (last == std::string_view::npos) return malformed(kWhat);
    Fields fields(message.substr(0, last));
    const auto binding_text = fields.next('c');
    const auto binding = binding_text ? from_base64(*binding_text) : std::nullopt;
    const auto nonce = fields.next('r');
    const auto proof_text = Fields(message.substr(last + 1)).next('p');
    const auto proof = proof_text ? from_base64(*proof_text) : std::nullopt;
    if (!binding || !nonce || !is_nonce(*nonce) || !fields.skip_extensions() || !proof) {
        return malformed(kWhat);
    }
    return ScramClientFinal{.channel_binding = *binding,
                            .nonce = std::string(*nonce),
                            .proof = *proof,
                            .without_proof = std::string(message.substr(0, last))};
}

Result<ScramServerFinal> parse_server_final(std::string_view message) {
    constexpr const char* kWhat = "server's final message";
    Fields fields(message);
    if (message.starts_with("e=")) {
        const auto error = fields.next('e');
        if (!is_value(*error) || error->contains('=') || !fields.at_end()) return malformed(kWhat);
        return ScramServerFinal{.error = std::string(*error), .signature = {}};
    }
    const auto text = fields.next('v');
    const auto signature = text ? from_base64(*text) : std::nullopt;
    if (!signature || !fields.skip_extensions()) return malformed(kWhat);
    return ScramServerFinal{.error = {}, .signature = *signature};
}

std::string scram_name(std::string_view user) {
    std::string name;
    for (const char c : user) {
        switch (c) {
            case ',': name += "=2C"; break;
            case '=': name += "=3D"; break;
            default: name += c;
        }
    }
    return name;
}

}  // namespace kaas::security
