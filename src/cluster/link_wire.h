#pragma once

#include "base/bytes.h"
#include "cluster/link_messages.h"
#include "wire/types.h"

#include <string_view>

/// Where in Kafka's messages that of brokers lies.
namespace kaas::cluster {

/// `text` must live until the message was encoded.
template <class Message>
void set_link_text(Message& message, std::string_view text) {
    message.unknown_tags.add(kLinkTag, wire::Bytes::borrow(base::as_bytes(text)));
}
/// Empty when there is none. Borrows from the message's frame.
template <class Message>
[[nodiscard]] std::string_view link_text(const Message& message) {
    for (const auto& tag : message.unknown_tags.all()) {
        if (tag.tag == kLinkTag) return base::as_text(tag.data.view());
    }
    return {};
}

}  // namespace kaas::cluster
