#pragma once

#include "broker/call.h"
#include "wire/messages/metadata.h"

namespace kaas::broker {

/// Metadata (3): the brokers of the listener that was asked, and the topics wanted: all, none, by
/// name or by id (KIP-516). A topic that is not there is made in the background when both the
/// request and `auto.create.topics.enable` allow it; this answer still says that it is unknown, as
/// Apache's does.
[[nodiscard]] wire::MetadataResponse metadata(const Call& call,
                                              const wire::MetadataRequest& request);

}  // namespace kaas::broker
