# Sourced by ./demo, ./test and .ci/*: brings a fresh Debian or Ubuntu with Python >= 3.10 to a built and
# installed package in .venv, and does nothing the second time. Needs root or sudo only for missing packages.
# TORCH_MI350_TORCH: what to install as torch (default torch==2.13.0; add an index option for a CPU build).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

die() { echo "torch-mi350: $*" >&2; exit 1; }
step() { printf '\033[1m== %s\033[0m\n' "$*" >&2; }

find_python() {
  local candidate
  for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python3.10; do
    if command -v "$candidate" >/dev/null && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
      command -v "$candidate"
      return
    fi
  done
  die "no Python >= 3.10 was found: install python3 or name one with PYTHON=."
}

have_clang() {
  local candidate
  for candidate in ${MI350_CLANG:-} clang-24 clang-23 clang-22 clang-21 clang-20 /opt/rocm/llvm/bin/clang clang; do
    if command -v "$candidate" >/dev/null && [ "$("$candidate" -dumpversion | cut -d. -f1)" -ge 20 ] 2>/dev/null &&
       "$candidate" -print-targets 2>/dev/null | grep -q amdgcn; then
      return 0
    fi
  done
  return 1
}

missing_packages() {
  command -v g++ >/dev/null || echo g++
  command -v git >/dev/null || echo git
  have_clang || echo clang-22 lld-22
  [ -e /usr/include/nlohmann/json.hpp ] || echo nlohmann-json3-dev
  "$PYTHON_FOUND" -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
  "$PYTHON_FOUND" -c 'import os, sysconfig, sys; sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' || echo python3-dev
  if [ "${MI350_WITH_TESTS:-0}" = 1 ]; then
    [ -e /usr/include/gtest/gtest.h ] || echo libgtest-dev
    command -v llvm-objdump-22 >/dev/null || echo llvm-22
  fi
}

install_packages() {
  local packages sudo=""
  packages=$(missing_packages | tr '\n' ' ')
  [ -z "${packages// /}" ] && return
  command -v apt-get >/dev/null || die "these are missing, and there is no apt-get to install them: $packages"
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "these are missing; install them as root: apt-get install $packages"
    sudo=sudo
  fi
  step "installing $packages"
  $sudo apt-get update -qq || die "apt-get update failed: is there a network?"
  # shellcheck disable=SC2086
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null ||
    die "apt-get could not install: $packages. Where the archive has no clang-22, install any clang >= 20 with the AMDGPU target and its lld (the LLVM project's apt archive or ROCm's llvm has them) and name it with MI350_CLANG=."
}

# Files that decide whether the installed package is current.
sources_newer_than() {
  [ -e "$1" ] || return 0
  [ -n "$(find CMakeLists.txt setup.py pyproject.toml csrc kernels python tests/cpp tests/fuzz -type f -not -path '*/__pycache__/*' -newer "$1" -print -quit)" ]
}

install_python_packages() {
  local wanted
  wanted=$(cat .ci/requirements.txt; echo "${TORCH_MI350_TORCH:-torch==2.13.0}")
  [ -x .venv/bin/python ] || { step "creating .venv"; "$PYTHON_FOUND" -m venv .venv; }
  if [ "$(cat .venv/requirements 2>/dev/null)" != "$wanted" ]; then
    step "installing torch and the Python packages into .venv"
    # torch first and alone: a package that depends on it must find it installed, or pip may fetch another build.
    # shellcheck disable=SC2086
    .venv/bin/pip install -q --disable-pip-version-check ${TORCH_MI350_TORCH:-torch==2.13.0} || die "pip could not install ${TORCH_MI350_TORCH:-torch==2.13.0}."
    .venv/bin/pip install -q --disable-pip-version-check -r .ci/requirements.txt || die "pip could not install .ci/requirements.txt."
    printf '%s\n' "$wanted" > .venv/requirements
  fi
}

install_package() {
  local stamp=.venv/torch_mi350.stamp
  [ "${MI350_WITH_TESTS:-0}" = 1 ] && stamp=.venv/torch_mi350_tests.stamp
  sources_newer_than "$stamp" || return 0
  step "building the code objects, the emulator and the extension (first time: some minutes)"
  touch "$stamp.new"
  PATH="$PWD/.venv/bin:$PATH" MI350_CMAKE_ARGS="-DMI350_TESTS=$([ "${MI350_WITH_TESTS:-0}" = 1 ] && echo ON || echo OFF) ${MI350_CMAKE_ARGS:-}" \
    .venv/bin/pip install --disable-pip-version-check --no-build-isolation --no-deps --force-reinstall -q . >.venv/build.log 2>&1 ||
    { tail -40 .venv/build.log >&2; die "the build failed; the whole log is .venv/build.log."; }
  mv "$stamp.new" "$stamp"
}

PYTHON_FOUND=$(find_python)
install_packages
install_python_packages
install_package
