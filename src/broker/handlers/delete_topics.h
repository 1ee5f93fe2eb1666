#pragma once

#include "broker/call.h"
#include "wire/messages/delete_topics.h"

namespace kaas::broker {

/// DeleteTopics (20): by name, and from version 6 on by id. Refused as a whole when
/// `delete.topic.enable` is off.
void delete_topics(CallPtr call, wire::DeleteTopicsRequest request);

}  // namespace kaas::broker
