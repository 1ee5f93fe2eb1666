#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "cluster/controller.h"
#include "cluster/reign.h"
#include "storage/memory_volume.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

/// For tests: controllers on one volume, and what they were seen to do.
namespace kaas::cluster {

/// A rule taken away, to see that the test would notice.
enum class Mutant { kNone, kNoCheck, kNoMark };

/// Looks at nothing, and believes that it lives.
class NeverMarked final : public storage::DirectoryHandle {
public:
    storage::Result<storage::Liveness> look() override { return storage::Liveness::kAlive; }
    storage::Result<void> beat(std::int64_t) override { return {}; }
    storage::Result<std::int64_t> last_beat() override { return 0; }
};

/// Passes everything on, but for the rule taken away.
class MutantVolume final : public storage::Volume {
public:
    MutantVolume(storage::Volume& real, Mutant mutant) : real_(real), mutant_(mutant) {}
    template <class T>
    using Out = storage::Result<T>;
    Out<std::unique_ptr<storage::File>> create(const std::string& p) override {
        return real_.create(p);
    }
    Out<std::unique_ptr<storage::File>> create_private(const std::string& p) override {
        return real_.create_private(p);
    }
    Out<std::unique_ptr<storage::File>> open(const std::string& p, storage::OpenMode m) override {
        return real_.open(p, m);
    }
    Out<void> make_directory(const std::string& p) override { return real_.make_directory(p); }
    Out<void> sync_directory(const std::string& p) override { return real_.sync_directory(p); }
    Out<void> rename(const std::string& a, const std::string& b) override {
        return real_.rename(a, b);
    }
    Out<void> unlink(const std::string& p) override { return real_.unlink(p); }
    Out<void> remove_directory(const std::string& p) override { return real_.remove_directory(p); }
    Out<std::vector<std::string>> list(const std::string& p) override { return real_.list(p); }
    Out<std::unique_ptr<storage::FileLock>> lock(const std::string& p,
                                                 std::string_view t) override {
        return real_.lock(p, t);
    }
    Out<std::unique_ptr<storage::DirectoryHandle>> hold(const std::string& p) override {
        if (mutant_ == Mutant::kNoCheck) return std::make_unique<NeverMarked>();
        return real_.hold(p);
    }
    Out<void> mark(const std::string& p, storage::MarkKind kind) override {
        if (mutant_ == Mutant::kNoMark) return {};
        return real_.mark(p, kind);
    }
    bool is_local() const override { return real_.is_local(); }
    Out<storage::Space> space() override { return real_.space(); }
    const std::string& root() const override { return real_.root(); }

private:
    storage::Volume& real_;
    const Mutant mutant_;
};

/// One volume, any number of controllers, one broker that applies every push at once.
class ControlWorld {
public:
    explicit ControlWorld(Mutant mutant = Mutant::kNone) : seen_(volume, mutant) {
        EXPECT_TRUE(prepare_cluster(volume));
    }

    /// A controller's process.
    struct Process {
        std::unique_ptr<Controller> controller;
    };

    /// Takes office and registers the broker. Null when somebody else was faster.
    std::unique_ptr<Process> elect();
    /// A process whose reign has ended takes office again, as the broker that it is. False when
    /// that failed, too.
    bool stand_again(Process& process);
    /// True when the answer says that the topic stands.
    bool create(Process& process, const std::string& name);
    bool remove(Process& process, const std::string& name);
    std::optional<ProducerIdBlock> producer_ids(Process& process, int count);

    /// The first thing that was seen and must never be; empty when all is well. `last` is the image
    /// of a controller that took office after everything else.
    [[nodiscard]] std::string violation(const catalog::Image& last) const;

    storage::MemoryVolume volume;
    /// Images that were pushed, by controller epoch, in order.
    std::map<base::ControllerEpoch, std::vector<catalog::ImagePtr>> pushed;
    /// Answers that said yes, in order: the topic is there (or is not, any more).
    std::map<std::string, bool> stands;
    std::set<std::int64_t> producer_ids_given;
    bool producer_id_twice = false;

private:
    MutantVolume seen_;
    base::InlineExecutor here_;
};

inline std::unique_ptr<ControlWorld::Process> ControlWorld::elect() {
    auto reign = begin_reign(seen_, base::BrokerId(1), std::nullopt);
    if (!reign) return nullptr;
    auto process = std::make_unique<Process>();
    auto* place = process.get();
    process->controller = std::make_unique<Controller>(
        ControllerOptions{.config = {}, .push = [this, place](const Push& push) {
                              pushed[push.image->version().epoch].push_back(push.image);
                              place->controller->applied(base::BrokerId(1), push.image->version());
                          }});
    process->controller->begin(std::move(*reign));
    catalog::Broker broker{.id = base::BrokerId(1)};
    broker.sessions.emplace("main", base::Incarnation{base::Uuid::random()});
    bool joined = false;
    process->controller->register_broker(
        broker, {&here_, [&](Result<std::monostate> result) { joined = result.has_value(); }});
    process->controller->step();
    return joined ? std::move(process) : nullptr;
}

inline bool ControlWorld::stand_again(Process& process) {
    auto reign = begin_reign(seen_, base::BrokerId(1), std::nullopt);
    if (!reign) return false;
    pushed[reign->image->version().epoch].push_back(reign->image);
    process.controller->begin(std::move(*reign));
    return true;
}

inline bool ControlWorld::create(Process& process, const std::string& name) {
    CreateTopics request;
    request.topics = {{.name = name}};
    bool made = false;
    // Whatever the answer, it may be there again.
    if (auto known = stands.find(name); known != stands.end() && !known->second)
        stands.erase(known);
    process.controller->create_topics(request,
                                      {&here_, [&](Result<std::vector<CreatedTopic>> result) {
                                           made = result && result->front().outcome;
                                       }});
    process.controller->step();
    if (made) stands[name] = true;
    return made;
}

inline bool ControlWorld::remove(Process& process, const std::string& name) {
    DeleteTopics request;
    request.topics = {name};
    bool done = false;
    stands.erase(name);  // whatever the answer, the deletion may stand
    process.controller->delete_topics(request,
                                      {&here_, [&](Result<std::vector<DeletedTopic>> result) {
                                           done = result && result->front().outcome;
                                       }});
    process.controller->step();
    if (done) stands[name] = false;
    return done;
}

inline std::optional<ProducerIdBlock> ControlWorld::producer_ids(Process& process, int count) {
    std::optional<ProducerIdBlock> block;
    process.controller->allocate_producer_ids(count, {&here_, [&](Result<ProducerIdBlock> result) {
                                                          if (result) block = *result;
                                                      }});
    process.controller->step();
    for (int i = 0; block && i < block->count; ++i) {
        if (!producer_ids_given.insert(block->first.value() + i).second) producer_id_twice = true;
    }
    return block;
}

inline std::string ControlWorld::violation(const catalog::Image& last) const {
    if (producer_id_twice) return "a producer id was given twice";
    for (const auto& [name, there] : stands) {
        if (there && last.topic(name) == nullptr)
            return "topic " + name + " was answered and is lost";
        if (!there && last.topic(name) != nullptr)
            return "topic " + name + " was deleted and is back";
    }
    // What a controller pushed, each later one knows: its last image's topics stand, or were
    // deleted since.
    for (const auto& [epoch, images] : pushed) {
        for (const auto& [later, their_images] : pushed) {
            if (later <= epoch) continue;
            std::string lost;
            images.back()->for_each_topic([&](const catalog::Topic& topic) {
                const auto& next = *their_images.front();
                const bool known =
                    next.topic(topic.id) != nullptr || next.deletions().contains(topic.id);
                if (!known && lost.empty()) lost = topic.name;
            });
            if (!lost.empty()) {
                return "topic " + lost + " was pushed by controller " +
                       std::to_string(epoch.value()) + " and controller " +
                       std::to_string(later.value()) + " never knew it";
            }
        }
    }
    return {};
}

}  // namespace kaas::cluster
