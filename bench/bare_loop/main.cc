// The third party of the benchmarks: a server that makes the system calls of a broker (epoll, recv,
// pwritev, fdatasync, statx, send, sendfile), checks CRC32C, and does nothing else. What it reaches
// is what the machine has to give at that moment; see README.md.

#include "bare_loop/committer.h"
#include "bare_loop/server.h"
#include "bare_loop/topics.h"
#include "common/fd.h"

#include <CLI/CLI.hpp>

#include <signal.h>
#include <sys/signalfd.h>

#include <cstdint>
#include <cstdio>

namespace kaas::bench {
namespace {

int run(int count, char** arguments) {
    CLI::App app("A bare produce and fetch loop; prints its port when it is ready.");
    uint16_t port = 0;
    size_t zero_fill_mb = 0;
    bool no_sync = false;
    Topics::Options topic_options;
    app.add_option("--port", port, "0 takes a free one");
    app.add_option("--dir", topic_options.directory, "an existing directory for its files")
        ->required();
    app.add_flag("--no-sync", no_sync, "leave out fdatasync");
    app.add_flag("--single-file", topic_options.single_file, "all partitions in one file");
    app.add_option("--zero-fill-mb", zero_fill_mb, "write zeros ahead in each file");
    CLI11_PARSE(app, count, arguments);
    topic_options.zero_fill = zero_fill_mb << 20;

    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    const Fd stop(signalfd(-1, &signals, SFD_CLOEXEC));

    Topics topics(topic_options);
    Committer committer(topic_options.directory, !no_sync);
    Server server(port, topics, committer);
    std::printf("ready 127.0.0.1:%d\n", server.port());
    std::fflush(stdout);
    server.run(stop.get());
    return 0;
}

}  // namespace
}  // namespace kaas::bench

int main(int count, char** arguments) { return kaas::bench::run(count, arguments); }
