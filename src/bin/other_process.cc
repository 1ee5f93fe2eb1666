#include "bin/other_process.h"

#include "base/unique_fd.h"
#include "cluster/error.h"

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <functional>
#include <string>

namespace kaas::bin {
namespace {

/// First byte of what a child says: its work is done, or an error of this kind follows.
constexpr char kWell = '+';
constexpr char kUnfit = '!';
constexpr char kFailed = '-';

[[noreturn]] void be_child(int out, const std::function<cluster::Result<void>()>& work) {
    const auto done = work();
    std::string said(1, kWell);
    if (!done) {
        const bool is_unfit = done.error().code == cluster::ErrorCode::kUnfitVolume;
        said = std::string(1, is_unfit ? kUnfit : kFailed) + done.error().context;
    }
    (void)!::write(out, said.data(), said.size());  // nobody to tell when the parent is gone
    ::_exit(0);
}

}  // namespace

cluster::Result<void> in_other_process(const std::function<cluster::Result<void>()>& work) {
    const auto no_child = [] { return cluster::fail(cluster::ErrorCode::kStorage, "no child"); };
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) return no_child();
    const base::UniqueFd in(ends[0]);
    base::UniqueFd out(ends[1]);
    const pid_t child = ::fork();
    if (child < 0) return no_child();
    if (child == 0) be_child(out.get(), work);
    out.reset();
    std::string said;
    std::array<char, 512> chunk{};
    while (true) {
        const auto got = ::read(in.get(), chunk.data(), chunk.size());
        if (got <= 0) break;
        said.append(chunk.data(), static_cast<std::size_t>(got));
    }
    (void)::waitpid(child, nullptr, 0);
    if (said.empty()) return no_child();
    if (said.front() == kWell) return {};
    const auto code =
        said.front() == kUnfit ? cluster::ErrorCode::kUnfitVolume : cluster::ErrorCode::kStorage;
    return cluster::fail(code, said.substr(1));
}

}  // namespace kaas::bin
