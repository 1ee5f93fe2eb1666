#pragma once

// Included by generated sources only; users take all_messages.h.

#include "wire/message.h"
#include "wire/testing/all_messages.h"
#include "wire/testing/json.h"
#include "wire/testing/random.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kaas::wire::testing {

template <class Message>
Result<Recoded> recode(MutableBytes bytes, std::int16_t version) {
    Reader in(bytes);
    KAAS_TRY_ASSIGN(message, decode<Message>(in, version));
    Writer out;
    KAAS_TRY(encode(out, message, version));
    Json json;
    write_json(json, message, version);
    return Recoded{.output = out.take(), .json = json.text(), .left = in.remaining()};
}

template <class Message>
Result<void> decode_only(MutableBytes bytes, std::int16_t version) {
    Reader in(bytes);
    KAAS_TRY_ASSIGN(message, decode<Message>(in, version));
    (void)message;
    return {};
}

template <class Message>
Result<Output> make(Random* random, std::int16_t version) {
    Message message;
    if (random != nullptr) fill(*random, message, version);
    Writer out;
    KAAS_TRY(encode(out, message, version));
    return out.take();
}

template <class Message>
MessageType message_type(Kind kind, std::int16_t key) {
    return {.name = Message::kName,
            .kind = kind,
            .key = key,
            .min = Message::kMinVersion,
            .max = Message::kMaxVersion,
            .recode = &recode<Message>,
            .decode_only = &decode_only<Message>,
            .make = &make<Message>};
}

}  // namespace kaas::wire::testing
