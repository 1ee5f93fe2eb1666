#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "base/thread_pool.h"
#include "catalog/broker_identity.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/admin.h"
#include "cluster/controller_address.h"
#include "cluster/error.h"
#include "cluster/link_messages.h"
#include "cluster/node.h"
#include "cluster/partition_table.h"
#include "cluster/roll_call.h"
#include "cluster/session.h"
#include "cluster/uplink.h"
#include "storage/log_config.h"
#include "storage/memory_volume.h"
#include "storage/partition_log.h"
#include "storage/testing_log.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

/// For tests: a network within the process, between nodes, that can be cut.
namespace kaas::cluster {

class Network;

/// A broker's way to controllers over the network below. All of it runs on the network's thread.
class TestUplink final : public Uplink, public std::enable_shared_from_this<TestUplink> {
public:
    TestUplink(Network& network, std::uint16_t own_port) : network_(network), own_port_(own_port) {}

    void listen(Listener listener) override { listener_ = std::move(listener); }
    void follow(const ControllerAddress& address, Registration registration) override;
    void watch(catalog::ImageVersion have) override;
    void report(Report report) override;
    bool flush(std::chrono::milliseconds patience) override;
    void forget() override;
    [[nodiscard]] Report take_back() override;
    /// The network took the connection away.
    void end(LinkEnd how);

    /// Its process has lost its port, for ever.
    void lose_port() { own_port_ = 0; }
    [[nodiscard]] std::uint16_t own_port() const { return own_port_; }

private:
    void drop();
    void send();
    void check(const Error& why);

    Network& network_;
    std::uint16_t own_port_;
    Listener listener_;
    std::uint64_t following_ = 0;
    LinkId link_ = 0;
    std::uint16_t port_ = 0;
    BrokerLife life_{};
    bool registered_ = false;
    bool sending_ = false;
    bool heard_ = false;  ///< by the controller of now: all that there was to report
    Report pending_;
    Report under_way_;
    std::vector<std::shared_ptr<std::promise<void>>> flushed_;
};

/// Who listens at which port, and who is connected to whom.
class Network {
public:
    ~Network() { thread_.stop(); }

    base::Executor& thread() { return thread_; }
    void run(base::Executor::Work work) { thread_.post(std::move(work)); }
    void run_and_wait(const std::function<void()>& work) {
        std::promise<void> done;
        thread_.post([&] {
            work();
            done.set_value();
        });
        done.get_future().wait();
    }
    std::shared_ptr<Uplink> uplink(std::uint16_t port) {
        auto made = std::make_shared<TestUplink>(*this, port);
        run_and_wait([&] { uplinks_.push_back(made); });
        return made;
    }

    /// Connections are taken from now on, and wait for `serve`.
    void bind(std::uint16_t port) {
        run_and_wait([&] { hosts_[port] = {}; });
    }
    void serve(std::uint16_t port, RollCall& roll_call) {
        run_and_wait([&] {
            auto& host = hosts_[port];
            host.roll_call = &roll_call;
            for (auto& work : std::exchange(host.waiting, {})) work(roll_call);
        });
    }
    /// Nobody listens there any more.
    void close(std::uint16_t port) {
        run_and_wait([&] {
            hosts_[port] = {.gone = true};
            hang_up(port, LinkEnd::kGone);
        });
    }
    /// As above, and whoever listened there reaches nobody.
    void kill(std::uint16_t port) {
        cut(port);
        run_and_wait([&] {
            for (const auto& uplink : uplinks()) {
                if (uplink->own_port() == port) uplink->lose_port();
            }
            hosts_[port] = {.gone = true};
            cut_.erase(port);
        });
    }
    /// Neither reaches anybody, nor is reached: for others its process is gone.
    void cut(std::uint16_t port) {
        run_and_wait([&] {
            cut_.insert(port);
            hang_up(port, LinkEnd::kGone);
            for (const auto& uplink : uplinks()) {
                if (uplink->own_port() == port) uplink->end(LinkEnd::kSilent);
            }
        });
    }
    void mend(std::uint16_t port) {
        run_and_wait([&] { cut_.erase(port); });
    }

    // On the thread.
    using Work = std::move_only_function<void(RollCall&)>;
    /// What the caller at `from` finds at `to`; `work` is done now, or when it serves.
    std::optional<LinkEnd> call(std::uint16_t from, std::uint16_t to, Work work) {
        if (cut_.contains(from)) return LinkEnd::kSilent;
        auto& host = hosts_[to];
        if (cut_.contains(to) || host.gone) return LinkEnd::kGone;
        if (host.roll_call == nullptr) {
            host.waiting.push_back(std::move(work));
        } else {
            work(*host.roll_call);
        }
        return std::nullopt;
    }
    bool is_refused(std::uint16_t port) { return cut_.contains(port) || hosts_[port].gone; }
    LinkId connect(std::uint16_t from, std::uint16_t to) {
        links_[++last_link_] = {from, to};
        return last_link_;
    }
    void disconnect(LinkId link) {
        auto found = links_.find(link);
        if (found == links_.end()) return;
        const auto to = hosts_.find(found->second.second);
        if (to != hosts_.end() && to->second.roll_call != nullptr) {
            to->second.roll_call->disconnected(link);
        }
        links_.erase(found);
    }
    /// Where links from or to `port` end.
    [[nodiscard]] bool is_open(LinkId link) const { return links_.contains(link); }

private:
    struct Host {
        RollCall* roll_call = nullptr;
        bool gone = false;
        std::vector<Work> waiting{};
    };
    std::vector<std::shared_ptr<TestUplink>> uplinks() {
        std::vector<std::shared_ptr<TestUplink>> all;
        for (auto& one : uplinks_) {
            if (auto uplink = one.lock()) all.push_back(std::move(uplink));
        }
        return all;
    }
    void hang_up(std::uint16_t port, LinkEnd how) {
        std::set<std::uint16_t> callers;
        std::vector<LinkId> dead;
        for (const auto& [link, ends] : links_) {
            if (ends.second == port) callers.insert(ends.first);
            if (ends.first == port || ends.second == port) dead.push_back(link);
        }
        for (const auto link : dead) disconnect(link);
        for (const auto& uplink : uplinks()) {
            if (callers.contains(uplink->own_port())) uplink->end(how);
        }
    }

    std::map<std::uint16_t, Host> hosts_;
    std::set<std::uint16_t> cut_{0};
    std::map<LinkId, std::pair<std::uint16_t, std::uint16_t>> links_;
    LinkId last_link_ = 0;
    std::vector<std::weak_ptr<TestUplink>> uplinks_;
    base::ThreadPool thread_{"network", 1};
};

inline LinkEnd end_of(ErrorCode code) {
    if (code == ErrorCode::kStaleBroker || code == ErrorCode::kStorage) return LinkEnd::kStale;
    if (code == ErrorCode::kDuplicateBroker || code == ErrorCode::kWrongCluster) {
        return LinkEnd::kRefused;
    }
    return LinkEnd::kNotController;
}

inline void TestUplink::follow(const ControllerAddress& address, Registration registration) {
    network_.run([self = shared_from_this(), port = address.port,
                  registration = std::move(registration)]() mutable {
        self->drop();
        self->port_ = port;
        self->life_ = registration.life;
        self->link_ = self->network_.connect(self->own_port_, port);
        auto refused = self->network_.call(
            self->own_port_, port,
            [self, link = self->link_, following = self->following_,
             registration = std::move(registration)](RollCall& roll_call) mutable {
                roll_call.register_broker(
                    link, std::move(registration),
                    {&self->network_.thread(), [self, following](Result<std::monostate> outcome) {
                         if (following != self->following_) return;
                         if (!outcome) return self->check(outcome.error());
                         self->registered_ = true;
                         self->listener_.on_registered();
                         self->send();
                     }});
            });
        if (refused) self->end(*refused);
    });
}

inline void TestUplink::watch(catalog::ImageVersion have) {
    network_.run([self = shared_from_this(), have] {
        if (!self->registered_) return;
        auto refused = self->network_.call(
            self->own_port_, self->port_,
            [self, have, following = self->following_](RollCall& roll_call) {
                roll_call.watch(self->link_, self->life_, have,
                                {&self->network_.thread(), [self, following](Result<News> news) {
                                     if (following != self->following_) return;
                                     if (!news) return self->check(news.error());
                                     self->listener_.on_news(std::move(*news));
                                 }});
            });
        if (refused) self->end(*refused);
    });
}

inline void TestUplink::report(Report report) {
    network_.run([self = shared_from_this(), report = std::move(report)]() mutable {
        report.add(std::move(self->pending_));
        self->pending_ = std::move(report);
        self->heard_ = false;
        self->send();
    });
}

inline void TestUplink::send() {
    if (!registered_ || sending_) return;
    sending_ = true;
    const auto intent = pending_.intent;
    under_way_ = std::exchange(pending_, {});
    pending_.intent = intent;
    auto refused =
        network_.call(own_port_, port_, [this, following = following_](RollCall& roll_call) {
            roll_call.report(link_, life_, under_way_,
                             {&network_.thread(), [self = shared_from_this(),
                                                   following](Result<std::monostate> outcome) {
                                  if (following != self->following_) return;
                                  self->sending_ = false;
                                  if (!outcome) return self->check(outcome.error());
                                  const auto told = std::exchange(self->under_way_, {}).intent;
                                  if (!self->pending_.empty() || self->pending_.intent != told) {
                                      return self->send();
                                  }
                                  self->heard_ = true;
                                  for (auto& one : std::exchange(self->flushed_, {}))
                                      one->set_value();
                              }});
        });
    if (refused) end(*refused);
}

inline bool TestUplink::flush(std::chrono::milliseconds patience) {
    auto done = std::make_shared<std::promise<void>>();
    auto heard = done->get_future();
    network_.run([self = shared_from_this(), done] {
        if (self->heard_) return done->set_value();
        self->flushed_.push_back(done);
        self->send();
    });
    return heard.wait_for(patience) == std::future_status::ready;
}

inline void TestUplink::forget() {
    network_.run([self = shared_from_this()] { self->drop(); });
}

inline Report TestUplink::take_back() {
    Report unheard;
    network_.run_and_wait([&] {
        drop();
        unheard = std::exchange(pending_, {.intent = pending_.intent});
    });
    return unheard;
}

inline void TestUplink::drop() {
    ++following_;
    registered_ = false;
    sending_ = false;
    heard_ = false;
    network_.disconnect(std::exchange(link_, 0));
    pending_.add(std::exchange(under_way_, {}));
    pending_.applied.clear();
    pending_.unwell.clear();
}

inline void TestUplink::check(const Error& why) {
    drop();
    listener_.on_end(end_of(why.code), why);
}

inline void TestUplink::end(LinkEnd how) {
    drop();
    listener_.on_end(how, {ErrorCode::kNotController, "the network ended it"});
}

}  // namespace kaas::cluster
