// Reports. Returned pointers stay valid although other threads may fail meanwhile: the texts of the last
// failures are kept.
#include "report.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <deque>
#include <mutex>
#include <vector>

#include "emu_api.h"
#include "print.h"

namespace mi350::emu {
namespace {

std::mutex mutex;
constexpr size_t kKept = 16;
constexpr size_t kShownInstructions = 10;

std::deque<std::string>& texts() {
  static auto* kept = new std::deque<std::string>;
  return *kept;
}

[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

// Indexes of the last instructions, oldest first, the current one last. Between taken branches execution is a
// straight line, so the branch trail is all that it takes.
std::vector<uint32_t> last_instructions(const Wave& w, uint32_t current) {
  std::vector<uint32_t> path{current};
  uint32_t jumps_left = std::min(w.jump_count, Wave::kJumps);
  uint32_t newest = w.jump_count;
  while (path.size() < kShownInstructions + 1) {
    const uint32_t at = path.back();
    if (jumps_left > 0 && w.jumps[(newest - 1) % Wave::kJumps].to == at) {
      path.push_back(w.jumps[--newest % Wave::kJumps].from);
      --jumps_left;
    } else if (at > 0 && at != w.start_pc) {
      path.push_back(at - 1);
    } else {
      break;
    }
  }
  std::reverse(path.begin(), path.end());
  return path;
}

std::string line(const Program& p, uint32_t index, bool current) {
  const Inst& i = p.insts[index];
  std::string words;
  for (unsigned n = 0; n < i.size_bytes / 4u; ++n) words += format("%08x ", i.words[n]);
  return format("%s %6x:  %-36s", current ? "=>" : "  ", i.offset_bytes, words.c_str()) +
         (i.size_bytes == 0 ? "(end of the code)" : print(i)) + "\n";
}

}  // namespace

void set_last_report(std::string text) {
  std::lock_guard lock(mutex);
  texts().push_back(std::move(text));
  if (texts().size() > kKept) texts().pop_front();
}

const char* last_report() {
  std::lock_guard lock(mutex);
  return texts().empty() ? "" : texts().back().c_str();
}

std::string wave_report(const Launch& l, const Wave& w, const std::string& why) {
  const Program& p = *w.program;
  const uint32_t current = std::min(w.pc > 0 ? w.pc - 1 : 0, p.end());
  std::string text = l.kernel->name + ": " + why + "\n";
  text += format(
      "  workgroup (%u, %u, %u) of (%u, %u, %u), wave %u of %u, work-items (%u, %u, %u), exec 0x%016llx, mode "
      "0x%08x\n",
      w.group->id[0], w.group->id[1], w.group->id[2], l.grid[0], l.grid[1], l.grid[2], w.wave_in_group,
      w.group->waves, l.block[0], l.block[1], l.block[2], static_cast<unsigned long long>(w.exec()), w.mode);
  if (w.group->at_barrier != 0)
    text += format("  %u waves of the workgroup wait at a barrier, %u have ended\n", w.group->at_barrier,
                   w.group->ended);
  text += "  last instructions (offset in the text, words, disassembly):\n";
  const std::vector<uint32_t> path = last_instructions(w, current);
  for (size_t n = 0; n < path.size(); ++n) text += line(p, path[n], n + 1 == path.size());
  return text;
}

}  // namespace mi350::emu

__attribute__((visibility("default"))) const char* mi350emuLastReport() { return mi350::emu::last_report(); }
