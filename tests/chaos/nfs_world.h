#pragma once

#include "harm.h"
#include "nfs_client.h"
#include "nfs_server.h"

#include <fmt/format.h>

#include <fuse3/fuse_lowlevel.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace kaas::chaos {

struct World;

struct Mount {
    Mount(World& of, Server& server, int number) : world(of), id(number), client(server, number) {}

    World& world;
    const int id;
    Harm harm;
    Client client;
    bool dead = false;
    fuse_session* session = nullptr;
};

enum class Delegations { kOff, kRecall, kWithhold };

struct World {
    std::mutex mutex;  ///< of all below, and of every `client`
    Server server;
    std::vector<std::unique_ptr<Mount>> mounts;
    std::map<Number, Mount*> delegated;
    Delegations delegations = Delegations::kOff;
    std::chrono::milliseconds lease{0};
    std::condition_variable wake;
};

/// One request: waits as the rules of its mount say, then runs under the lock and answers.
class Call {
public:
    explicit Call(fuse_req_t request)
        : mount_(*static_cast<Mount*>(fuse_req_userdata(request))), request_(request) {}

    /// `act` gives a negative errno when it fails; then that is the answer, else `answer()` is.
    template <typename Act, typename Answer>
    void run(std::string_view operation, Number number, std::string_view name, Act act,
             Answer answer) {
        std::unique_lock lock(world().mutex);
        path_ = world().server.path(number);
        if (!name.empty()) path_ += fmt::format("/{}", name);
        if (path_.empty()) path_ = "/";
        lock.unlock();
        verdict_ =
            mount_.harm.meet(operation, path_, [&] { return fuse_req_interrupted(request_); });
        lock.lock();
        int failed = -verdict_.error;
        if (failed != 0 && operation == "fsync") client().lose(number);
        if (failed == 0 && mount_.dead) failed = -EIO;
        if (failed == 0) failed = act(lock);
        lock.unlock();
        if (failed != 0) {
            fuse_reply_err(request_, -failed);
        } else {
            answer();
        }
    }

    /// Waits until nobody else holds a delegation of the file.
    int recall(std::unique_lock<std::mutex>& lock, Number number) {
        if (world().delegations != Delegations::kRecall) return 0;
        const auto deadline = Client::Clock::now() + world().lease;
        for (;;) {
            const auto held = world().delegated.find(number);
            if (held == world().delegated.end() || held->second == &mount_) return 0;
            auto& holder = *held->second;
            const bool late = Client::Clock::now() >= deadline;
            const bool answers = !holder.dead && !holder.harm.hangs("delegreturn", path_);
            if (answers || late) {
                if (answers) holder.client.give_back(number);
                if (!answers) holder.client.lose_trust(number);
                world().delegated.erase(held);
                continue;
            }
            if (fuse_req_interrupted(request_) != 0) return -EINTR;
            world().wake.wait_for(lock, std::chrono::milliseconds(10));
        }
    }
    int recall(std::unique_lock<std::mutex>& lock, Number parent, const std::string& name) {
        Number number = 0;
        if (world().server.lookup(parent, name, number) != 0) return 0;
        return recall(lock, number);
    }

    /// A file that nobody else has open is delegated to who opens it.
    void delegate(Number number) {
        if (world().delegations == Delegations::kOff || world().delegated.contains(number)) return;
        for (const auto& other : world().mounts) {
            if (other.get() != &mount_ && other->client.has_open(number)) return;
        }
        world().delegated[number] = &mount_;
        client().trust(number);
    }

    [[nodiscard]] World& world() const { return mount_.world; }
    [[nodiscard]] Mount& mount() const { return mount_; }
    [[nodiscard]] Client& client() const { return mount_.client; }
    [[nodiscard]] bool half() const { return verdict_.half; }

private:
    Mount& mount_;
    fuse_req_t request_;
    std::string path_;
    Harm::Verdict verdict_;
};

}  // namespace kaas::chaos
