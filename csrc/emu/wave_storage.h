// Waves, LDS and private memory of the workgroups that one host thread runs: taken from the system in pages
// that cost nothing until touched, kept for the next workgroup, given back when more are kept than a normal
// launch needs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "wave.h"

namespace mi350::emu {

class Storage {
 public:
  ~Storage();
  static Storage& of_thread();

  Wave* take_wave();
  uint8_t* take_lds();          // kLdsCapacity bytes, contents undefined
  uint8_t* take_scratch(size_t bytes);
  void give_wave(Wave* w);
  void give_lds(uint8_t* p);
  void give_scratch(uint8_t* p, size_t bytes);
  // After a launch: keeps at most kKeptBytes.
  void trim();

 private:
  struct Block { uint8_t* p; size_t bytes; };
  std::vector<Wave*> waves_;
  std::vector<uint8_t*> lds_;
  std::vector<Block> scratch_;
};

constexpr size_t kLdsCapacity = 160 * 1024;

}  // namespace mi350::emu
