#pragma once

#include "broker/call.h"
#include "wire/messages/create_topics.h"

namespace kaas::broker {

/// CreateTopics (19): asks the controller; answers when every living broker can route the new
/// topics, or at the client's timeout. The answer to a good topic tells its configs with their
/// sources (KIP-525).
void create_topics(CallPtr call, wire::CreateTopicsRequest request);

}  // namespace kaas::broker
