#pragma once

#include <string>
#include <utility>

namespace kaas::bench {

/// Owns a descriptor.
class Fd {
public:
    Fd() = default;
    explicit Fd(int fd) : fd_(fd) {}
    Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Fd& operator=(Fd&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Fd();

    [[nodiscard]] int get() const { return fd_; }

private:
    int fd_ = -1;
};

/// Prints to stderr and ends the program: a benchmark that met an error has no result.
[[noreturn]] void fail(const std::string& message);

/// The same with the text of errno.
[[noreturn]] void fail_errno(const std::string& what);

}  // namespace kaas::bench
