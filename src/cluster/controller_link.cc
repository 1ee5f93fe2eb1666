#include "cluster/controller_link.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "catalog/image.h"
#include "client/channel.h"
#include "client/error.h"
#include "cluster/controller_address.h"
#include "cluster/error.h"
#include "cluster/link_messages.h"
#include "cluster/link_wire.h"
#include "cluster/uplink.h"
#include "net/reactor.h"
#include "wire/error_code.h"
#include "wire/messages/broker_heartbeat.h"
#include "wire/messages/broker_registration.h"

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace kaas::cluster {
namespace {

using W = wire::ErrorCode;
using std::chrono::milliseconds;

constexpr std::int16_t kRegistrationVersion = 4;
constexpr std::int16_t kHeartbeatVersion = 1;
/// Between attempts at a connection that closes again and again.
constexpr milliseconds kPause{20};

LinkEnd end_of(client::ErrorCode code) {
    return code == client::ErrorCode::kRefused ? LinkEnd::kGone : LinkEnd::kSilent;
}
LinkEnd end_of(W code) {
    switch (code) {
        case W::kStaleBrokerEpoch:
        case W::kKafkaStorageError:
        case W::kBrokerIdNotRegistered: return LinkEnd::kStale;
        case W::kDuplicateBrokerRegistration:
        case W::kInconsistentClusterId: return LinkEnd::kRefused;
        default: return LinkEnd::kNotController;
    }
}
Error error_of(W code) {
    switch (code) {
        case W::kDuplicateBrokerRegistration:
            return {ErrorCode::kDuplicateBroker, "another live process has the same node.id"};
        case W::kInconsistentClusterId:
            return {ErrorCode::kWrongCluster, "the controller is of another cluster"};
        default: return {ErrorCode::kNotController, std::string(wire::to_string(code))};
    }
}

}  // namespace

/// All of it runs on the reactor.
class ControllerLink::Impl : public std::enable_shared_from_this<Impl> {
public:
    explicit Impl(Options options) : options_(std::move(options)), beat_timer_(*options_.reactor) {}

    Listener listener;

    void follow(const ControllerAddress& address, Registration registration) {
        forget();
        life_ = registration.life;
        auto to = options_.channel;
        to.reactor = options_.reactor;
        to.host = address.host;
        to.port = address.port;
        reports_ = std::make_unique<client::Channel>(to);
        news_ = std::make_unique<client::Channel>(to);
        const auto changed = [this](bool up, const client::Error&) {
            if (!up && registered_) beat();  // refused, if the process is gone
        };
        reports_->on_change(changed);
        news_->on_change(changed);
        wire::BrokerRegistrationRequest request;
        request.broker_id = life_.broker.value();
        request.incarnation_id = life_.process;
        request.cluster_id = registration.cluster_id;
        const auto text = to_text(registration);
        set_link_text(request, text);
        reports_->call<wire::BrokerRegistrationRequest>(
            request, kRegistrationVersion, options_.session_timeout,
            [this, following = following_](auto answer) {
                if (following != following_) return;
                if (!answer) return end(end_of(answer.error().code), of(answer.error()));
                const auto code = (*answer)->error_code;
                const auto said = link_text(**answer);
                if (code == W::kInvalidRegistration)
                    return end(LinkEnd::kRefused, {ErrorCode::kUnfitVolume, std::string(said)});
                if (code != W::kNone) return end(end_of(code), error_of(code));
                if (!said.empty()) return asked_to_witness(said);
                registered_ = true;
                answered_ = options_.reactor->now();
                listener.on_registered();
                beat();
            });
    }

    void watch(catalog::ImageVersion have) {
        if (!registered_) return;
        wire::BrokerHeartbeatRequest request;
        request.broker_id = life_.broker.value();
        const auto text = to_text(Heartbeat{life_, have});
        set_link_text(request, text);
        // For ever: the other connection finds out whether the controller lives.
        news_->call<wire::BrokerHeartbeatRequest>(
            request, kHeartbeatVersion, std::chrono::hours(24),
            [this, have, following = following_](auto answer) {
                if (following != following_ || !registered_) return;
                if (!answer) return watch_soon(have);
                const auto code = (*answer)->error_code;
                if (code != W::kNone) return end(end_of(code), error_of(code));
                auto news = parse_news(link_text(**answer));
                if (!news) return end(LinkEnd::kSilent, news.error());
                listener.on_news(std::move(*news));
            });
    }

    void report(Report report) {
        report.add(std::move(pending_));
        pending_ = std::move(report);
        heard_ = false;
        beat();
    }

    void when_heard(base::Executor::Work told) {
        if (heard_) return told();
        told_ = std::move(told);
        if (!beating_) beat();
    }

    void forget() {
        ++following_;
        registered_ = false;
        beating_ = false;
        heard_ = false;
        beat_timer_.cancel();
        reports_.reset();
        news_.reset();
        watch_timer_.reset();
        pending_.add(std::move(under_way_));
        under_way_ = {};
        pending_.applied.clear();  // of a controller that does not ask any more
        pending_.unwell.clear();   // perhaps not any more
    }

    /// The intent stays: it goes with every report.
    [[nodiscard]] Report take_unheard() {
        const auto intent = pending_.intent;
        auto unheard = std::exchange(pending_, {});
        pending_.intent = intent;
        return unheard;
    }

private:
    static Error of(const client::Error& error) {
        return {ErrorCode::kNotController, error.context};
    }

    void asked_to_witness(std::string_view text) {
        auto tickets = parse_tickets(text);
        if (!tickets) return end(LinkEnd::kSilent, tickets.error());
        listener.on_asked_to_witness(std::move(*tickets));
    }

    void watch_soon(catalog::ImageVersion have) {
        watch_timer_.emplace(*options_.reactor);
        watch_timer_->arm(kPause, [this, have] { watch(have); });
    }

    /// At most one is under way; what is to be reported meanwhile goes with the next.
    void beat() {
        if (!registered_ || beating_) return;
        beating_ = true;
        beat_timer_.cancel();
        under_way_ = take_unheard();
        wire::BrokerHeartbeatRequest request;
        request.broker_id = life_.broker.value();
        request.want_shut_down = under_way_.intent != Report::Intent::kStay;
        const auto text = to_text(Heartbeat{life_, under_way_});
        set_link_text(request, text);
        reports_->call<wire::BrokerHeartbeatRequest>(
            request, kHeartbeatVersion, options_.session_timeout,
            [this, following = following_, sent = options_.reactor->now()](auto answer) {
                if (following != following_) return;
                beating_ = false;
                if (!answer) return not_answered(answer.error());
                if (options_.round_trip != nullptr) {
                    options_.round_trip->observe_us(
                        duration_cast<std::chrono::microseconds>(options_.reactor->now() - sent)
                            .count());
                }
                const auto code = (*answer)->error_code;
                if (code != W::kNone) return end(end_of(code), error_of(code));
                answered_ = options_.reactor->now();
                const bool told_all =
                    pending_.empty() && pending_.intent == std::exchange(under_way_, {}).intent;
                if (!told_all) return beat();
                heard_ = true;
                if (told_) std::exchange(told_, {})();
                beat_timer_.arm(options_.heartbeat_interval, [this] { beat(); });
            });
    }

    void not_answered(const client::Error& error) {
        pending_.add(std::exchange(under_way_, {}));
        // One that closed is opened again, unless that goes on for too long.
        const bool again = error.code == client::ErrorCode::kDown &&
                           options_.reactor->now() - answered_ < options_.session_timeout;
        if (!again) return end(end_of(error.code), of(error));
        beat_timer_.arm(kPause, [this] { beat(); });
    }

    void end(LinkEnd how, Error why) {
        // Not within the callback of a channel that goes with it: it allows that, by contract.
        forget();
        listener.on_end(how, std::move(why));
    }

    const Options options_;
    BrokerLife life_{};
    std::uint64_t following_ = 0;  ///< answers of an earlier one are late
    bool registered_ = false;
    bool beating_ = false;
    bool heard_ = false;  ///< by the controller of now: all that there was to report
    base::Clock::Steady answered_{};
    base::Executor::Work told_;  ///< once nothing is left to report
    Report pending_;
    Report under_way_;
    net::ReactorTimer beat_timer_;
    std::optional<net::ReactorTimer> watch_timer_;
    std::unique_ptr<client::Channel> reports_;
    std::unique_ptr<client::Channel> news_;
};

ControllerLink::ControllerLink(Options options)
    : reactor_(*options.reactor), impl_(std::make_shared<Impl>(std::move(options))) {}

ControllerLink::~ControllerLink() {
    reactor_.run_and_wait([this] {
        impl_->forget();
        impl_.reset();
    });
}

void ControllerLink::listen(Listener listener) {
    reactor_.run_and_wait([this, &listener] { impl_->listener = std::move(listener); });
}
void ControllerLink::follow(const ControllerAddress& address, Registration registration) {
    reactor_.post([impl = impl_, address, registration = std::move(registration)]() mutable {
        impl->follow(address, std::move(registration));
    });
}
void ControllerLink::watch(catalog::ImageVersion have) {
    reactor_.post([impl = impl_, have] { impl->watch(have); });
}
void ControllerLink::report(Report report) {
    reactor_.post(
        [impl = impl_, report = std::move(report)]() mutable { impl->report(std::move(report)); });
}
bool ControllerLink::flush(milliseconds patience) {
    auto heard = std::make_shared<std::promise<void>>();
    auto done = heard->get_future();
    reactor_.post([impl = impl_, heard] { impl->when_heard([heard] { heard->set_value(); }); });
    return done.wait_for(patience) == std::future_status::ready;
}
Report ControllerLink::take_back() {
    Report unheard;
    reactor_.run_and_wait([&] {
        impl_->forget();
        unheard = impl_->take_unheard();
    });
    return unheard;
}
void ControllerLink::forget() {
    reactor_.post([impl = impl_] { impl->forget(); });
}

}  // namespace kaas::cluster
