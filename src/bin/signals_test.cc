// Goal: the main thread wakes when it should, and for the right reason. Method: signals that the
// process sends to itself; blocked ones stay pending, so nothing races.

#include "bin/signals.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <unistd.h>

#include <csignal>

namespace kaas::bin {
namespace {

TEST(Signals, TermAsksForAStop) {
    Signals signals;
    ::kill(::getpid(), SIGTERM);
    WakeUp woken = signals.wait();
    EXPECT_FALSE(woken.lost);
    EXPECT_EQ(woken.why, "SIGTERM");
}

TEST(Signals, SecondOneEndsTheProcessAtOnce) {
    for (int signal : {SIGTERM, SIGINT}) {
        EXPECT_EXIT(
            {
                Signals signals;
                ::kill(::getpid(), SIGTERM);
                (void)signals.wait();
                ::kill(::getpid(), signal);
                (void)signals.wait();  // for ever, as a drain that hangs
            },
            ::testing::KilledBySignal(signal), "");
    }
}

TEST(Signals, LostSaysWhyAndTheFirstReasonCounts) {
    Signals signals;
    signals.lose("fenced");
    signals.lose("and more");
    WakeUp woken = signals.wait();
    EXPECT_TRUE(woken.lost);
    EXPECT_EQ(woken.why, "fenced");
}

TEST(Signals, HangUpBrokenPipeAndAStrangersSignalMeanNothing) {
    Signals signals;
    for (int signal : {SIGHUP, SIGPIPE, SIGXFSZ, SIGUSR1, SIGTERM}) ::kill(::getpid(), signal);
    EXPECT_EQ(signals.wait().why, "SIGTERM");
}

}  // namespace
}  // namespace kaas::bin
