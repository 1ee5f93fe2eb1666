#pragma once

#include "nfs_server.h"

#include <fmt/format.h>

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kaas::chaos {

/// How long this client believes what it has seen, and when what it writes leaves it.
struct ClientSettings {
    enum class Writeback {
        kEager,  ///< at once, as under memory pressure: others see what no sync has made durable
        kLazy,   ///< at a sync or close
        kTorn,   ///< the later half at once, the rest at a sync: others see a hole
    };
    std::chrono::milliseconds files{0};        ///< acregmax
    std::chrono::milliseconds directories{0};  ///< acdirmax: names and their absence, too
    Writeback writeback = Writeback::kEager;
};

/// One machine's NFS client: what it believes of the server, and what it has not sent yet.
/// Thread: whoever holds the world's lock. Errors are negative errnos.
class Client {
public:
    using Clock = std::chrono::steady_clock;

    Client(Server& server, int id) : server_(server), id_(id) {}

    ClientSettings settings;

    /// A name as this client believes it to be: as long as its directory is believed, and is not
    /// seen to have been changed by others.
    int lookup(Number parent, const std::string& name, Attributes& found) {
        Attributes directory;
        if (const int failed = believed(parent, directory); failed != 0) return failed;
        const auto known = names_.find({parent, name});
        if (known != names_.end() && known->second.generation == generations_[parent]) {
            if (known->second.number == 0) return -ENOENT;
            return believed(known->second.number, found);
        }
        Number number = 0;
        const int failed = server_.lookup(parent, name, number);
        if (failed != 0 && failed != -ENOENT) return stale(parent, failed);
        learn(parent, name, number);
        return failed != 0 ? failed : ask(number, found);
    }

    /// GETATTR: of what is delegated to this client, none is sent.
    int ask(Number number, Attributes& found) {
        const auto known = attributes_.find(number);
        if (known != attributes_.end() && trusts_.contains(number)) {
            found = known->second.attributes;
        } else {
            if (const int failed = refresh(number); failed != 0) return failed;
            found = attributes_[number].attributes;
        }
        found.size = std::max(found.size, end_of(dirty(number)));
        return 0;
    }

    /// For how long what `ask` or `lookup` gave may be believed.
    [[nodiscard]] double seconds_left(Number number) {
        const auto known = attributes_.find(number);
        if (known == attributes_.end()) return 0;
        const auto limit = lifetime(known->second.attributes);
        const auto left = known->second.at + limit - Clock::now();
        return std::max(0.0, std::chrono::duration<double>(left).count());
    }

    /// Close-to-open: looks at the file afresh. `differs` when it is not what was believed.
    int open(Number number, bool& differs) {
        const auto known = attributes_.find(number);
        const auto before = known == attributes_.end() ? 0 : known->second.attributes.change;
        Attributes found;
        if (const int failed = ask(number, found); failed != 0) return failed;
        if ((found.mode & ~S_IFMT) == 0) return -EACCES;  // nobody is root at a server
        differs = found.change != before;
        if (!found.is_directory()) ++opens_[number];
        return 0;
    }

    int create(Number parent, const std::string& name, mode_t mode, Attributes& found) {
        const Change change(*this, parent);
        Number made = 0;
        const int failed = server_.create(parent, name, mode, made);
        names_.erase({parent, name});  // it was not there, or is not what was believed
        if (failed != 0) return stale(parent, failed);
        learn(parent, name, made);
        return ask(made, found);
    }

    /// What is open here stays, under a name of its own until it is closed.
    int remove(Number parent, const std::string& name, bool directory) {
        Number number = 0;
        int failed = server_.lookup(parent, name, number);
        if (failed == 0 && silly_.contains(number)) return -EBUSY;
        if (failed == 0 && !directory && opens_.contains(number)) {
            return hide(parent, name, number);
        }
        const Change change(*this, parent);
        if (failed == 0) failed = server_.remove(parent, name);
        names_.erase({parent, name});
        if (failed != 0) return stale(parent, failed);
        learn(parent, name, 0);
        dirty_.erase(number);
        return 0;
    }

    int rename(Number from, const std::string& old_name, Number to, const std::string& new_name) {
        Number replaced = 0;
        if (server_.lookup(to, new_name, replaced) == 0 && opens_.contains(replaced)) {
            if (const int failed = hide(to, new_name, replaced); failed != 0) return failed;
        }
        const Change source(*this, from);
        const Change target(*this, to);
        const int failed = server_.rename(from, old_name, to, new_name);
        names_.erase({from, old_name});
        names_.erase({to, new_name});
        return failed != 0 ? stale(from, failed) : 0;
    }

    int write(Number number, std::string bytes, std::uint64_t offset) {
        Unstable write{.client = id_, .offset = offset, .bytes = std::move(bytes)};
        auto* inode = server_.find(number);
        if (inode == nullptr) return stale(number, -ESTALE);
        if (settings.writeback == ClientSettings::Writeback::kLazy) {
            dirty_[number].push_back(std::move(write));
            return 0;
        }
        if (settings.writeback == ClientSettings::Writeback::kTorn && write.bytes.size() > 1) {
            const auto half = write.bytes.size() / 2;
            dirty_[number].push_back(
                {.client = id_, .offset = offset, .bytes = write.bytes.substr(0, half)});
            write.bytes.erase(0, half);
            write.offset += half;
        }
        const int failed = server_.write(*inode, std::move(write));
        return failed != 0 ? failed : refresh(number);
    }

    /// Never beyond the end that is believed: a file that has grown elsewhere is short here.
    int read(Number number, std::uint64_t offset, std::uint64_t size, std::string& read) {
        Attributes known;
        if (const int failed = believed(number, known); failed != 0) return failed;
        const auto* inode = server_.find(number);
        if (inode == nullptr) return stale(number, -ESTALE);
        if (offset >= known.size) return 0;
        size = std::min(size, known.size - offset);
        read = Server::read(*inode, offset, size);
        read.resize(size);
        overlay(dirty(number), offset, read);
        return 0;
    }

    /// WRITE of all that is dirty, and COMMIT when it shall be durable.
    int flush(Number number, bool durably) {
        auto* inode = server_.find(number);
        if (inode == nullptr) return stale(number, -ESTALE);
        int failed = 0;
        const auto mine = dirty_.find(number);
        const bool any = mine != dirty_.end();
        if (any) failed = send(*inode, mine->second);
        if (revoked_.erase(number) != 0) failed = -EIO;
        if (any && mine->second.empty()) dirty_.erase(mine);
        if (failed != 0) return failed;
        if (durably) Server::commit(*inode);
        return any ? refresh(number) : 0;
    }

    void flush_all() {
        std::vector<Number> numbers;
        for (const auto& [number, writes] : dirty_) numbers.push_back(number);
        for (const auto number : numbers) {
            if (!revoked_.contains(number)) flush(number, false);
        }
    }

    /// A sync that fails: what was written can still be read, and is never durable.
    void lose(Number number) {
        for (auto& write : dirty_[number]) write.lost = true;
        if (auto* inode = server_.find(number)) {
            for (auto& write : inode->unstable) write.lost = true;
        }
    }

    int set(Number number, const mode_t* mode, const timespec* modified,
            const std::uint64_t* size) {
        auto* inode = server_.find(number);
        if (inode == nullptr) return stale(number, -ESTALE);
        if (size != nullptr) {
            if (const int failed = flush(number, false); failed != 0) return failed;
            server_.resize(*inode, *size);
        }
        if (mode != nullptr) Server::set_mode(*inode, *mode);
        if (modified != nullptr) Server::set_modified(*inode, *modified);
        return refresh(number);
    }

    /// Of the life in which it was opened.
    void close(Number number) {
        const auto count = opens_.find(number);
        if (count == opens_.end() || --count->second > 0) return;
        opens_.erase(count);
        trusts_.erase(number);
        const auto hidden = silly_.find(number);
        if (hidden == silly_.end()) return;
        const auto* inode = server_.find(number);
        if (inode != nullptr) {
            const Change change(*this, inode->parent);
            server_.remove(inode->parent, hidden->second);
        }
        silly_.erase(hidden);
    }

    [[nodiscard]] bool has_open(Number number) const { return opens_.contains(number); }

    /// A delegation: until it is given back, what is believed of the file is not asked again.
    void trust(Number number) { trusts_.insert(number); }
    void give_back(Number number) {
        flush(number, false);
        trusts_.erase(number);
        attributes_.erase(number);
    }
    /// The server has not waited any longer: what was not sent cannot be any more, and a sync
    /// fails.
    void lose_trust(Number number) {
        trusts_.erase(number);
        attributes_.erase(number);
        const auto mine = dirty_.find(number);
        if (mine == dirty_.end()) return;
        for (auto& write : mine->second) write.lost = true;
        revoked_.insert(number);
    }

    /// The machine is gone with all that it had in memory; `life` tells one from the next.
    void die() {
        attributes_.clear();
        names_.clear();
        dirty_.clear();
        opens_.clear();
        silly_.clear();
        trusts_.clear();
        revoked_.clear();
        ++life;
    }
    int life = 0;

private:
    struct Believed {
        Attributes attributes;
        Clock::time_point at;
    };
    struct Name {
        Number number;  ///< 0: it is not there
        std::uint64_t generation;
    };

    /// A change of a directory that this client makes: others' names in it stay believed, if it was
    /// as this client had seen it.
    class Change {
    public:
        Change(Client& client, Number directory) : client_(client), directory_(directory) {
            const auto known = client.attributes_.find(directory);
            const auto* inode = client.server_.find(directory);
            if (known == client.attributes_.end() || inode == nullptr) return;
            was_known_ = known->second.attributes.change == inode->attributes.change;
        }
        ~Change() {
            const auto known = client_.attributes_.find(directory_);
            const auto* inode = client_.server_.find(directory_);
            if (known == client_.attributes_.end() || inode == nullptr) return;
            if (was_known_) {
                known->second.attributes = inode->attributes;
            } else {
                client_.attributes_.erase(known);
                ++client_.generations_[directory_];
            }
        }
        Change(const Change&) = delete;
        Change& operator=(const Change&) = delete;

    private:
        Client& client_;
        const Number directory_;
        bool was_known_ = false;
    };

    [[nodiscard]] static bool fresh(Clock::time_point at, std::chrono::milliseconds limit) {
        return Clock::now() < at + limit;
    }
    [[nodiscard]] std::chrono::milliseconds lifetime(const Attributes& of) const {
        return of.is_directory() ? settings.directories : settings.files;
    }

    [[nodiscard]] const std::vector<Unstable>& dirty(Number number) const {
        static const std::vector<Unstable> none;
        const auto found = dirty_.find(number);
        return found == dirty_.end() ? none : found->second;
    }

    int send(Server::Inode& inode, std::vector<Unstable>& dirty) {
        int failed = 0;
        for (auto& write : dirty) {
            if (write.lost || failed != 0) continue;
            failed = server_.write(inode, write);
            write.lost = failed != 0;
        }
        std::erase_if(dirty, [&](const Unstable& write) { return !write.lost; });
        return failed;
    }

    /// As `ask`, but from memory while that is fresh.
    int believed(Number number, Attributes& found) {
        const auto known = attributes_.find(number);
        if (known == attributes_.end() ||
            !fresh(known->second.at, lifetime(known->second.attributes)))
            return ask(number, found);
        found = known->second.attributes;
        found.size = std::max(found.size, end_of(dirty(number)));
        return 0;
    }

    int refresh(Number number) {
        Attributes found;
        if (const int failed = server_.attributes(number, found); failed != 0)
            return stale(number, failed);
        auto& known = attributes_[number];
        if (found.is_directory() && known.attributes.change != found.change) ++generations_[number];
        known = {.attributes = found, .at = Clock::now()};
        return 0;
    }

    void learn(Number parent, const std::string& name, Number number) {
        names_[{parent, name}] = {.number = number, .generation = generations_[parent]};
    }

    /// What turned out to be gone is not believed any more, nor is the way there: the kernel goes
    /// it once more before it gives ESTALE to anybody, and asks the server at each name then.
    int stale(Number number, int failed) {
        if (failed != -ESTALE) return failed;
        attributes_.erase(number);
        const auto leads_here = [&](const auto& name) { return name.second.number == number; };
        for (auto name = std::ranges::find_if(names_, leads_here); name != names_.end();
             name = std::ranges::find_if(names_, leads_here)) {
            number = name->first.first;
            names_.erase(name);
        }
        return failed;
    }

    int hide(Number parent, const std::string& name, Number number) {
        const auto hidden = fmt::format(".nfs{:016x}{:08x}", number, ++hidden_);
        const Change change(*this, parent);
        if (const int failed = server_.rename(parent, name, parent, hidden); failed != 0)
            return failed;
        silly_[number] = hidden;
        learn(parent, name, 0);
        return 0;
    }

    Server& server_;
    const int id_;
    std::map<Number, Believed> attributes_;
    std::map<std::pair<Number, std::string>, Name> names_;
    std::map<Number, std::uint64_t> generations_;  ///< of directories: as seen, bar own changes
    std::map<Number, std::vector<Unstable>> dirty_;
    std::map<Number, int> opens_;
    std::map<Number, std::string> silly_;  ///< removed while open: the name that it has now
    std::set<Number> trusts_;
    std::set<Number> revoked_;  ///< with writes that were not sent: the next sync says so
    std::uint32_t hidden_ = 0;
};

}  // namespace kaas::chaos
