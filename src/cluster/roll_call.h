#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "base/uuid.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/admin.h"
#include "cluster/controller.h"
#include "cluster/error.h"
#include "cluster/link_messages.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kaas::cluster {

/// A connection to the controller, for the time that it lasts. 0: the controller's own broker,
/// which has none.
using LinkId = std::uint64_t;

/// The controller's side of the links to brokers (DESIGN 9, 10): who lives, who is told what.
///
/// Brokers register, report and ask for news, each over connections of its own. One that falls
/// silent for the session timeout, or whose connections close and do not come back within the
/// grace, is declared dead: its sessions are marked, on the I/O pool, and only then it is removed
/// from the catalog (a mark is safe at any time; a hint is enough to make one). What happens to one
/// broker happens in order: its registration waits for the marks of its earlier lives.
///
/// Knows nothing between reigns: brokers introduce themselves to each new controller. Thread: any,
/// but `begin`, `end`, `pushed` and `turn` on the control thread.
class RollCall : public std::enable_shared_from_this<RollCall> {
public:
    using Marked = std::move_only_function<void(Result<void>)>;
    struct Options {
        BrokerLife self;
        const base::Clock* clock = &base::Clock::system();
        std::chrono::milliseconds session_timeout{6'000};  ///< `broker.session.timeout.ms`
        std::chrono::milliseconds death_grace{300};        ///< `kaas.death.grace.ms`
        Controller* controller = nullptr;
        /// Ends a session on a volume, in the background. Error kStorage: not proven, so nothing
        /// may be built on it.
        std::function<void(base::BrokerId, const std::string& volume, const base::Incarnation&,
                           Marked)>
            mark;
        /// Finds out, in the background, whether anybody listens where the broker did.
        std::function<void(const catalog::Broker&, std::move_only_function<void(bool refused)>)>
            probe;
        /// `turn` has work.
        std::function<void()> wake = [] {};
        /// A broker is declared dead that has not left, so long after it was last heard of.
        std::function<void(std::chrono::milliseconds)> on_death = [](std::chrono::milliseconds) {};
        /// What a life said that this reign does not know was not taken.
        std::function<void()> on_stale = [] {};
    };

    /// Held by a shared pointer: marks and probes may come back late.
    explicit RollCall(Options options) : options_(std::move(options)) {}

    /// A reign begins. Those whom its image says to live have the session timeout to show up; of
    /// `missed` nobody has heard for as long already, so they have the grace.
    void begin(catalog::ImagePtr image, const std::set<base::BrokerId>& missed);
    /// The reign is over: all that waits gets kNotController.
    void end();
    /// The process ends: what `Options` points to may go when this returns.
    void close() KAAS_EXCLUDES(late_mutex_);
    /// What brokers are told from now on.
    void pushed(const Push& push);

    /// Answered when the broker lives in the image that `watch` gives from then on. Errors:
    /// kNotController, kWrongCluster, kDuplicateBroker, kStaleBroker (one of its sessions was
    /// marked), kStorage (an earlier one could not be: try again).
    void register_broker(LinkId link, Registration registration, Reply<std::monostate> reply)
        KAAS_EXCLUDES(mutex_);
    /// Errors: kNotController, kStaleBroker.
    void report(LinkId link, const BrokerLife& life, Report report, Reply<std::monostate> reply)
        KAAS_EXCLUDES(mutex_);
    /// Answered as soon as there is something newer than `have`. Errors: as `report`.
    void watch(LinkId link, const BrokerLife& life, catalog::ImageVersion have, Reply<News> reply)
        KAAS_EXCLUDES(mutex_);
    void disconnected(LinkId link) KAAS_EXCLUDES(mutex_);
    /// A broker's volumes do not answer it: what it has there goes to others.
    void unwell(base::BrokerId id, const std::vector<std::string>& volumes) KAAS_EXCLUDES(mutex_);

    /// Declares dead who is, and answers who asked for pictures. Gives the time of the next look.
    base::Clock::Steady turn() KAAS_EXCLUDES(mutex_);

    /// True when all other brokers have fallen silent at once. That is how it looks to one that is
    /// cut off from the rest, and then not they are to be replaced. Thread: the control thread.
    [[nodiscard]] bool hears_nobody() const KAAS_EXCLUDES(mutex_);
    /// What brokers were told last. Requires: a reign has begun.
    [[nodiscard]] catalog::ImagePtr image() const KAAS_EXCLUDES(mutex_);
    /// For people: since when nobody has heard of a broker.
    struct Sight {
        base::BrokerId broker;
        bool connected = false;
        std::chrono::milliseconds silent{0};
        catalog::ImageVersion has;  ///< the last that it has asked to follow
    };
    [[nodiscard]] std::vector<Sight> sights() const KAAS_EXCLUDES(mutex_);
    /// Volumes where this controller ends no sessions, though others are there that could: its
    /// marks fail, or have been on their way for the session timeout. What hangs on them goes on
    /// only under another one. Thread: the control thread.
    [[nodiscard]] std::vector<std::string> out_of_reach() const KAAS_EXCLUDES(mutex_);

private:
    struct Waiting {
        LinkId link = 0;
        Registration registration;
        Reply<std::monostate> reply;
    };
    /// A mark that is on its way, or has failed.
    struct Unproven {
        base::Clock::Steady since;
        bool failed = false;
    };
    /// A broker that lives, as far as the controller knows, or wants to.
    struct Seen {
        std::optional<base::Uuid> process;  ///< none: has not introduced itself to this reign
        std::set<LinkId> links;
        base::Clock::Steady heard;
        catalog::ImageVersion has;
        std::optional<base::Clock::Steady> gone_since;  ///< its last connection closed then
        bool probing = false;
        base::Clock::Steady probe_at{};  ///< once more, until it has introduced itself
        bool leaves = false;             ///< said so: no grace
        /// Marks under way for it, and what comes after them: its end, and registrations.
        std::size_t marking = 0;
        std::optional<Error> mark_failed;
        std::map<std::string, Unproven> unproven;  ///< its marks, by volume
        bool ends = false;
        base::Clock::Steady retry_at{};  ///< its end, when a mark has failed
        bool joining = false;            ///< the controller is registering it
        std::deque<Waiting> waiting;
    };
    struct Watcher {
        LinkId link = 0;
        catalog::ImageVersion have;
        Reply<News> reply;
    };
    /// What is to be said once the lock is gone.
    using Saying = std::vector<std::move_only_function<void()>>;

    [[nodiscard]] Seen* life_of(std::optional<LinkId> link, const BrokerLife& life)
        KAAS_REQUIRES(mutex_);
    void hear(Seen& seen, std::optional<LinkId> link) KAAS_REQUIRES(mutex_);
    [[nodiscard]] std::optional<Error> refusal(const Registration& registration) const
        KAAS_REQUIRES(mutex_);
    void admit_next(base::BrokerId id, Saying& saying) KAAS_REQUIRES(mutex_);
    /// Marks `sessions` of a broker; `marked` comes after the last one.
    void mark_all(base::BrokerId id, const Sessions& sessions, Saying& saying)
        KAAS_REQUIRES(mutex_);
    void marked(std::uint64_t reign, base::BrokerId id, const std::string& volume,
                const base::Incarnation& incarnation, const Result<void>& outcome)
        KAAS_EXCLUDES(mutex_);
    void joined(std::uint64_t reign, base::BrokerId id) KAAS_EXCLUDES(mutex_);
    void declare_dead(base::BrokerId id, const std::string& why, Saying& saying)
        KAAS_REQUIRES(mutex_);
    void probe(base::BrokerId id, Saying& saying) KAAS_REQUIRES(mutex_);
    [[nodiscard]] std::optional<News> news_since(catalog::ImageVersion have) KAAS_REQUIRES(mutex_);
    [[nodiscard]] bool is_in_history(catalog::ImageVersion have) const KAAS_REQUIRES(mutex_);
    [[nodiscard]] bool somebody_wants_a_picture() const KAAS_REQUIRES(mutex_);
    void answer_watchers(Saying& saying) KAAS_REQUIRES(mutex_);
    static void say(Saying saying);

    const Options options_;
    base::InlineExecutor here_;
    /// Held while a mark or probe that came back is worked on.
    base::Mutex late_mutex_;
    bool closed_ KAAS_GUARDED_BY(late_mutex_) = false;
    mutable base::Mutex mutex_;
    bool reigns_ KAAS_GUARDED_BY(mutex_) = false;
    bool hears_nobody_ KAAS_GUARDED_BY(mutex_) = false;
    std::uint64_t reign_ KAAS_GUARDED_BY(mutex_) = 0;  ///< marks of an earlier one change nothing
    catalog::ImagePtr image_ KAAS_GUARDED_BY(mutex_);
    std::map<base::BrokerId, Seen> seen_ KAAS_GUARDED_BY(mutex_);
    std::set<base::Incarnation> marked_ KAAS_GUARDED_BY(mutex_);  ///< in this reign
    std::map<LinkId, base::BrokerId> links_ KAAS_GUARDED_BY(mutex_);
    std::vector<Watcher> watchers_ KAAS_GUARDED_BY(mutex_);
    /// Pushes since `history_from_`, the oldest first.
    std::deque<PushedLinesPtr> history_ KAAS_GUARDED_BY(mutex_);
    std::size_t history_bytes_ KAAS_GUARDED_BY(mutex_) = 0;
    catalog::ImageVersion history_from_ KAAS_GUARDED_BY(mutex_);
    std::shared_ptr<const std::string> picture_ KAAS_GUARDED_BY(mutex_);  ///< of `image_`, if made
};

}  // namespace kaas::cluster
