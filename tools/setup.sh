# Sourced by ./dev: brings a machine to the state in which the project builds and its tests run, from
# Debian's packages and the language registries' own clients. What is there already is not touched.

readonly BUILD_PACKAGES=(
    clang-19 lld-19 llvm-19 cmake ninja-build ccache python3 ca-certificates
    libstdc++-12-dev libboost1.81-dev libboost-json1.81-dev libboost-url1.81-dev libssl-dev
    libisal-dev zlib1g-dev liblz4-dev libzstd-dev libsnappy-dev
    libfmt-dev libspdlog-dev libcli11-dev libre2-dev libjemalloc-dev
    libgtest-dev libgmock-dev
)
readonly LINT_PACKAGES=(clang-format-19 clang-tidy-19 git)
# command=package: a machine may have the command from elsewhere. libclang-rt is the sanitizers and
# libFuzzer, which clang only recommends.
readonly TEST_PACKAGES=(
    libclang-rt-19-dev git kcat python3-venv javac=openjdk-17-jdk-headless mvn=maven node=nodejs npm=npm
    libfuse3-dev fuse3 iproute2
)
readonly BENCH_PACKAGES=(strace)
# The newest Go is taken when the machine's own is older than what the Go clients in tests/ ask for.
readonly GO_MINIMUM=1.26
readonly GO_TOOLCHAIN=go1.27.3

say() { printf '==> %s\n' "$*" >&2; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# as_root FUNCTION [ARGUMENT]...: calls a function of this file, or says how root can and stops.
as_root() {
    [ "$(id -u)" = 0 ] ||
        die "this needs root; run it, then try again:
sudo bash -ec 'source \"$ROOT/tools/setup.sh\"; $*'"
    "$@"
}

apt_install() {
    say "installing $*"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# ensure_packages [COMMAND=]PACKAGE...
ensure_packages() {
    local installed wanted missing=()
    installed=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "${@#*=}" 2>/dev/null || true)
    for wanted in "$@"; do
        case $wanted in
            *=*) command -v "${wanted%%=*}" >/dev/null || missing+=("${wanted#*=}") ;;
            *) grep -qx "ii  $wanted" <<<"$installed" || missing+=("$wanted") ;;
        esac
    done
    [ ${#missing[@]} = 0 ] || as_root apt_install "${missing[@]}"
}

# What is fetched once and kept. Linked git worktrees share the main checkout's.
cache_dir() {
    local git_dir
    if [ -n "${KAAS_CACHE_DIR:-}" ]; then
        echo "$KAAS_CACHE_DIR"
        return
    fi
    git_dir=$(git -C "$ROOT" rev-parse --path-format=absolute --git-common-dir 2>/dev/null || true)
    case $git_dir in
        */.git) echo "${git_dir%/.git}/.cache" ;;
        *) echo "$ROOT/.cache" ;;
    esac
}

version_at_least() { [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

go_version() { go env GOVERSION 2>/dev/null | sed 's/^go//'; }

# Debian 12's own Go (1.19) cannot fetch a newer toolchain; the one in its backports can. They are
# read from a list of our own, so that the machine's sources stay as they are.
install_go() {
    local mirror lists
    apt-get update -qq
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
        'Origin: Debian' 'Codename: bookworm' 'Component: main' | sed -n 1p)
    [ -n "$mirror" ] || die "no Debian 12 in the apt sources; install Go $GO_MINIMUM or newer"
    lists=$(mktemp -d)
    printf 'deb %s bookworm main\ndeb %s bookworm-backports main\n' "$mirror" "$mirror" \
        >"$lists/sources.list"
    mkdir -p "$lists/state/partial"
    local options=(-qq -o "Dir::Etc::SourceList=$lists/sources.list" -o Dir::Etc::SourceParts=-
        -o "Dir::State::Lists=$lists/state" -o APT::Sandbox::User=root)
    say "installing golang-go from bookworm-backports"
    apt-get "${options[@]}" update
    DEBIAN_FRONTEND=noninteractive apt-get "${options[@]}" install -y \
        --no-install-recommends -t bookworm-backports golang-go >/dev/null
    rm -rf "$lists"
}

ensure_go() {
    if ! command -v go >/dev/null || ! version_at_least 1.21 "$(go_version)"; then
        as_root install_go
    fi
    version_at_least "$GO_MINIMUM" "$(go_version)" || export GOTOOLCHAIN=$GO_TOOLCHAIN
}

# A virtual environment with tests/requirements.txt, made anew when that file changes. Prints its bin.
ensure_python() {
    local home stamp
    home=$(cache_dir)/venv
    stamp=$home/requirements.txt
    if ! cmp -s "$ROOT/tests/requirements.txt" "$stamp"; then
        say "installing Python packages of tests/requirements.txt"
        mkdir -p "$home"
        # Worktrees share the directory: one fills it at a time.
        (
            flock 9
            cmp -s "$ROOT/tests/requirements.txt" "$stamp" && exit 0
            python3 -m venv --clear "$home/env"
            "$home/env/bin/pip" install -q -r "$ROOT/tests/requirements.txt"
            cp "$ROOT/tests/requirements.txt" "$stamp"
        ) 9>"$home/lock" >&2
    fi
    echo "$home/env/bin"
}

ensure_build() { ensure_packages "${BUILD_PACKAGES[@]}"; }

ensure_test() {
    ensure_packages "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}"
    ensure_go
    PATH=$(ensure_python):$PATH
    export PATH
}
