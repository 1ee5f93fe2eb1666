#include "client/channel.h"

#include "base/assert.h"
#include "client/link.h"
#include "net/reactor.h"
#include "wire/types.h"
#include "wire/writer.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

namespace kaas::client {

Channel::Channel(Options options) : link_(std::make_shared<Link>(std::move(options))) {}

Channel::~Channel() { Link::end(std::move(link_)); }

void Channel::on_change(Changed changed) { link_->on_change(std::move(changed)); }

std::int32_t Channel::next_correlation_id() { return link_->next_correlation_id(); }

wire::String Channel::client_id() const { return wire::String::borrow(link_->options().client_id); }

void Channel::submit(std::int32_t correlation_id, std::int16_t response_header, wire::Output frame,
                     std::chrono::milliseconds patience, Finish finish) {
    KAAS_ASSERT(frame.splices().empty());  // records of a file: brokers do not send each other any
    link_->submit(correlation_id, response_header, std::move(frame), patience, std::move(finish));
}

}  // namespace kaas::client
