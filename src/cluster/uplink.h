#pragma once

#include "catalog/image.h"
#include "cluster/controller_address.h"
#include "cluster/error.h"
#include "cluster/link_messages.h"
#include "cluster/volume_proof.h"

#include <chrono>
#include <functional>
#include <string>

namespace kaas::cluster {

/// Why a broker lost its controller, as far as it can tell: a hint, never a proof.
enum class LinkEnd {
    kGone,           ///< nobody listens there any more: the process has ended
    kSilent,         ///< no answer, or no way there
    kNotController,  ///< it says so itself
    kStale,    ///< it does not know this life, or a session of it: look at them, register anew
    kRefused,  ///< it takes no such broker: kDuplicateBroker, kWrongCluster
};

/// A broker's way to the controller of another process. Follows one controller at a time; what it
/// hears goes to `Listener`, on any thread, and nothing of a controller comes after `follow` named
/// the next one. Thread: any.
class Uplink {
public:
    struct Listener {
        std::function<void()> on_registered;
        /// The controller's broker has witnessed what the registration asked for, and asks for the
        /// same: `follow` once more, with `witnessed`.
        std::function<void(ProbeTickets)> on_asked_to_witness = [](const ProbeTickets&) {};
        std::function<void(News)> on_news;
        /// The link has ended, and nothing more comes until `follow`.
        std::function<void(LinkEnd, Error)> on_end;
    };
    virtual ~Uplink() = default;

    virtual void listen(Listener listener) = 0;
    /// Registers with the controller at `address`, and reports to it from then on.
    virtual void follow(const ControllerAddress& address, Registration registration) = 0;
    /// Asks for what is newer than `have`; one answer. After `on_registered`.
    virtual void watch(catalog::ImageVersion have) = 0;
    /// Sent at once, and again until it was heard, also by the next controller; `applied` is for
    /// this one alone. The intent goes with every later report, too.
    virtual void report(Report report) = 0;
    /// Blocks until the controller has heard all that was reported, or for `patience`. False when
    /// it has not.
    virtual bool flush(std::chrono::milliseconds patience) = 0;
    virtual void forget() = 0;
    /// The same, at once, and gives back what no controller has heard.
    [[nodiscard]] virtual Report take_back() = 0;
};

}  // namespace kaas::cluster
