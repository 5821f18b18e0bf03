// A case and its mutator as libFuzzer calls them: a third of the mutations are libFuzzer's own.
#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "random.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t limit);

#define MI350_FUZZ_TARGET(run, mutate)                                                                 \
  extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {                            \
    run({data, size});                                                                                 \
    return 0;                                                                                          \
  }                                                                                                    \
  extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t limit, unsigned seed) { \
    mi350::emu::fuzz::Random random(seed);                                                             \
    if (random.percent(33)) return LLVMFuzzerMutate(data, size, limit);                                \
    std::vector<uint8_t> bytes(data, data + size);                                                     \
    mutate(bytes, limit, random);                                                                      \
    bytes.resize(bytes.size() < limit ? bytes.size() : limit);                                         \
    if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());                                 \
    return bytes.size();                                                                               \
  }
