// Check mode: the watch that owns the parts and forwards to them.
//
// A new checker is a Part (part.h) and a line in make_parts().
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "check/group_order.h"
#include "check/part.h"
#include "check/reporter.h"
#include "check/undefined_memory.h"
#include "watch.h"

namespace mi350::emu {

// What the host threads of one launch share.
struct LaunchChecks {
  explicit LaunchChecks(const Launch& l) : launch(l), writers(l.workgroups()) {}
  const Launch& launch;
  LineWriters writers;
  std::mutex mutex;
  std::string errors;  // text of the findings that fail the launch
  const std::shared_ptr<UndefinedMemory> undefined_memory = std::make_shared<UndefinedMemory>();

  std::unique_ptr<Watch> watch_for_thread();
};

using Parts = std::vector<std::unique_ptr<Part>>;
Parts make_parts(LaunchChecks& shared, Reporter& reporter);

class Checker final : public Watch {
 public:
  explicit Checker(LaunchChecks& shared);
  ~Checker() override;

  void start_group(Workgroup& g) override;
  void start_wave(Wave& w) override;
  void end_wave(Wave& w) override;
  void end_group(Workgroup& g) override;
  void release_barrier(Workgroup& g) override;
  void stuck(Wave& w) override;
  void before(Wave& w, const Inst& i) override;
  void after(Wave& w, const Inst& i) override;
  void access(Wave& w, const Inst& i, const Access& a) override;
  bool tolerates(Wave& w, const Inst& i, const Access& a) override;
  bool defer_dma(Wave& w, const Inst& i, const Access& a, const uint8_t* data) override;

 private:
  // Small numbers that come back.
  struct Slots {
    std::vector<uint32_t> free;
    uint32_t next = 0;
    uint32_t take();
    void give(uint32_t n) { free.push_back(n); }
  };
  // Per instruction of the program: which parts want before() (low half) and after() (high half).
  uint32_t wants_of(const Inst& i) const;

  LaunchChecks& shared_;
  Reporter reporter_;
  Parts parts_;
  std::vector<uint32_t> wants_;
  Slots waves_, groups_;
};

}  // namespace mi350::emu
