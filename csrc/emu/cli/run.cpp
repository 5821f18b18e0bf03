// mi350-emu run FILE.json, mi350-emu check FILE.json: one launch from its description, plainly or in check mode.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "command.h"
#include "contents.h"
#include "emu_api.h"
#include "launch_file.h"

extern "C" {
int hipMalloc(void**, size_t);
int hipFree(void*);
int hipMemcpy(void*, const void*, size_t, int);
int hipModuleLoad(void**, const char*);
int hipModuleGetFunction(void**, void*, const char*);
int hipModuleLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                          void**, void**);
const char* hipGetErrorName(int);
}

namespace mi350::emu::cli {
namespace {

constexpr const char* kFields =
    "FILE.json, paths relative to its folder:\n"
    "  {\"object\": \"k.hsaco\", \"kernel\": \"scale\", \"grid\": [4], \"block\": [256], \"lds\": 0, \"arguments\": [\n"
    "    {\"buffer\": \"x\", \"dtype\": \"f32\", \"shape\": [1024], \"random\": [-1, 1]},\n"
    "    {\"buffer\": \"y\", \"dtype\": \"f32\", \"shape\": [1024], \"fill\": 0, \"save\": \"y.bin\",\n"
    "     \"compare\": {\"file\": \"want.bin\", \"atol\": 1e-6, \"rtol\": 0}},\n"
    "    {\"scalar\": 1024, \"dtype\": \"u32\"}]}\n"
    "  contents of a buffer: fill, values, random (with the file's seed) or file; then print, save, compare\n"
    "  \"pass\": \"buffer\" packs the arguments as HIP's `extra` takes them (argument_align, offset, bytes)\n"
    "docs/emulator.md lists every field.\n";

struct Options {
  std::string path;
  bool check = false, json = false, advise = false, help = false;
  std::string wrong;
};

Options read_options(Arguments arguments, bool check) {
  Options o;
  o.check = check;
  for (std::string_view a : arguments) {
    if (a == "--help" || a == "-h") o.help = true;
    else if (a == "--json" && check) o.json = true;
    else if (a == "--third-party" && check) o.advise = true;
    else if (a.starts_with("-") || !o.path.empty()) o.wrong = a;
    else o.path = a;
  }
  return o;
}

int usage(const Options& o) {
  std::FILE* out = o.help ? stdout : stderr;
  if (!o.wrong.empty()) std::fprintf(out, "mi350-emu: unexpected %s\n", o.wrong.c_str());
  if (o.check) {
    std::fprintf(out,
                 "usage: mi350-emu check FILE.json [--third-party] [--json]\n"
                 "Runs one kernel in check mode and reports what the checkers found. Exit status 1 on errors.\n"
                 "  --third-party  rules that code proven on hardware breaks only advise\n"
                 "  --json         findings and counters as JSON\n\n%s"
                 "examples\n  mi350-emu check softmax.json\n"
                 "  TORCH_MI350_EMU_SEED=7 TORCH_MI350_EMU_DMA=late mi350-emu check gemm.json\n",
                 kFields);
  } else {
    std::fprintf(out,
                 "usage: mi350-emu run FILE.json\n"
                 "Runs one kernel and compares, saves and prints its buffers. Exit status 1 if it fails or differs.\n\n"
                 "%sexamples\n  mi350-emu run softmax.json\n  TORCH_MI350_EMU_CUS=32 mi350-emu run split_k.json\n",
                 kFields);
  }
  return o.help ? 0 : 2;
}

int complain(const std::string& why) {
  std::fprintf(stderr, "mi350-emu: %s%s", why.c_str(), why.ends_with("\n") ? "" : "\n");
  return 1;
}
std::string failure(const char* what, int code) {
  return std::string(what) + " failed with " + hipGetErrorName(code) + ": " + mi350emuLastReport();
}

// The device side of a launch file.
class Run {
 public:
  explicit Run(const LaunchFile& file) : file_(file) {}
  ~Run() {
    for (void* p : memory_) hipFree(p);
  }
  Run(const Run&) = delete;

  // Empty, or why the kernel could not be prepared.
  std::string prepare() {
    void* module = nullptr;
    if (int e = hipModuleLoad(&module, file_.object.c_str())) return failure("hipModuleLoad", e);
    if (int e = hipModuleGetFunction(&function_, module, file_.kernel.c_str()))
      return failure("hipModuleGetFunction", e);
    for (const BufferSpec& b : file_.buffers) {
      std::vector<uint8_t> bytes;
      std::string error;
      void* p = nullptr;
      if (!make_contents(b, b.contents, file_.seed, &bytes, &error)) return error;
      if (int e = hipMalloc(&p, b.bytes())) return failure("hipMalloc", e);
      memory_.push_back(p);
      if (int e = hipMemcpy(p, bytes.data(), bytes.size(), 1)) return failure("hipMemcpy", e);
    }
    for (const ArgumentSpec& a : file_.arguments) values_.push_back(value_of(a));
    return "";
  }

  int launch() {
    const auto& g = file_.grid;
    const auto& b = file_.block;
    std::vector<uint8_t> packed = pack();
    size_t bytes = packed.size();
    void* extra[] = {reinterpret_cast<void*>(1), packed.data(), reinterpret_cast<void*>(2), &bytes,
                     reinterpret_cast<void*>(3)};
    std::vector<void*> params;
    for (auto& v : values_) params.push_back(v.data());
    params.push_back(nullptr);
    return hipModuleLaunchKernel(function_, g[0], g[1], g[2], b[0], b[1], b[2], file_.lds, nullptr,
                                 file_.one_buffer ? nullptr : params.data(), file_.one_buffer ? extra : nullptr);
  }

  std::vector<uint8_t> read(size_t buffer) const {
    std::vector<uint8_t> bytes(file_.buffers[buffer].bytes());
    hipMemcpy(bytes.data(), memory_[buffer], bytes.size(), 2);
    return bytes;
  }

 private:
  std::vector<uint8_t> value_of(const ArgumentSpec& a) const {
    if (a.kind != ArgumentSpec::kBuffer) return a.bytes;
    std::vector<uint8_t> bytes(8);
    const uint64_t address = reinterpret_cast<uint64_t>(memory_[a.buffer]) + a.buffer_offset;
    std::memcpy(bytes.data(), &address, 8);
    return bytes;
  }

  // Each argument at its offset, or at the next multiple of its size (of argument_align if that is given).
  std::vector<uint8_t> pack() const {
    std::vector<uint8_t> packed;
    size_t end = 0;
    for (size_t n = 0; n < values_.size(); ++n) {
      const ArgumentSpec& a = file_.arguments[n];
      const size_t own = a.kind == ArgumentSpec::kBytes ? 1 : values_[n].size();
      const size_t align = file_.argument_align != 0 ? file_.argument_align : own;
      const size_t at = a.offset ? *a.offset : (end + align - 1) / align * align;
      end = at + values_[n].size();
      if (packed.size() < end) packed.resize(end);
      std::memcpy(packed.data() + at, values_[n].data(), values_[n].size());
    }
    if (file_.argument_align != 0)
      packed.resize((packed.size() + file_.argument_align - 1) / file_.argument_align * file_.argument_align);
    return packed;
  }

  const LaunchFile& file_;
  void* function_ = nullptr;
  std::vector<void*> memory_;
  std::vector<std::vector<uint8_t>> values_;
};

// Compares, saves and prints one buffer. False if it differs or cannot be saved.
bool settle(const Run& run, const LaunchFile& file, size_t n) {
  const BufferSpec& b = file.buffers[n];
  if (!b.compare && b.save.empty() && b.print == 0) return true;
  const std::vector<uint8_t> got = run.read(n);
  bool good = true;
  std::string error;
  if (b.print != 0) print_elements(b, got);
  if (!b.save.empty() && !save(b.save, got, &error)) good = complain(error) == 0;
  if (!b.compare) return good;
  std::vector<uint8_t> want;
  if (!make_contents(b, b.compare->with, file.seed, &want, &error)) return complain(error) == 0;
  const Difference d = compare(b, got, want);
  std::printf("  %s: %llu of %llu elements differ by more than atol %g + rtol %g", b.name.c_str(),
              static_cast<unsigned long long>(d.beyond), static_cast<unsigned long long>(b.elements()),
              b.compare->atol, b.compare->rtol);
  if (d.worst > 0 || d.beyond > 0)
    std::printf("; largest difference %g at %s: %.9g, expected %.9g", d.worst, coordinates(b, d.worst_at).c_str(),
                d.got, d.want);
  std::putchar('\n');
  return good && d.beyond == 0;
}

void print_counters(const LaunchFile& file) {
  Mi350EmuCounters c;
  mi350emuCounters(&c);
  std::printf("%s: %llu workgroups, %llu wave-instructions, %llu of them MFMA, %.3f ms of emulation\n",
              file.kernel.c_str(), static_cast<unsigned long long>(c.workgroups),
              static_cast<unsigned long long>(c.instructions), static_cast<unsigned long long>(c.mfma_instructions),
              static_cast<double>(c.kernel_ns) * 1e-6);
}

using nlohmann::json;

void print_finding(const json& f) {
  const auto text = [&](const char* key) { return f.contains(key) ? f[key].get<std::string>() : std::string(); };
  std::printf("%-8s %-20s %s\n", text("severity").c_str(), text("checker").c_str(), text("message").c_str());
  std::printf("         at 0x%llx: %s%s\n", f.value("pc", 0ull), text("disassembly").c_str(),
              f.contains("source") ? ("   (" + text("source") + ")").c_str() : "");
  std::printf("         workgroup (%u, %u, %u), wave %u", f["group"][0].get<unsigned>(), f["group"][1].get<unsigned>(),
              f["group"][2].get<unsigned>(), f.value("wave", 0u));
  if (f.contains("lane")) std::printf(", lane %d", f.value("lane", 0));
  if (f.contains("where")) std::printf(", %s", text("where").c_str());
  if (f.contains("address")) std::printf(", address 0x%llx", f.value("address", 0ull));
  if (const auto count = f.value("count", 1ull); count > 1) std::printf(", %llu times", count);
  std::putchar('\n');
}

// The memory instructions that cost most beyond the ideal.
void print_costs(const json& counters) {
  constexpr size_t kShown = 5;
  struct Cost { unsigned long long taken, ideal; const char* unit; const json* of; };
  std::vector<Cost> costs;
  for (const json& c : counters) {
    if (c.value("lds_cycles", 0ull) > c.value("lds_cycles_ideal", 0ull))
      costs.push_back({c.value("lds_cycles", 0ull), c.value("lds_cycles_ideal", 0ull), "LDS cycles", &c});
    if (c.value("lines", 0ull) > c.value("lines_ideal", 0ull))
      costs.push_back({c.value("lines", 0ull), c.value("lines_ideal", 0ull), "cache lines", &c});
  }
  std::sort(costs.begin(), costs.end(),
            [](const Cost& a, const Cost& b) { return a.taken - a.ideal > b.taken - b.ideal; });
  if (!costs.empty()) std::puts("bank conflicts and scattered accesses (counts, not findings):");
  for (size_t n = 0; n < std::min(costs.size(), kShown); ++n)
    std::printf("  0x%llx: %-52s %llu %s, at best %llu\n", (*costs[n].of).value("pc", 0ull),
                (*costs[n].of).value("disassembly", std::string()).c_str(), costs[n].taken, costs[n].unit,
                costs[n].ideal);
}

void print_findings(bool as_json) {
  const json all = json::parse(mi350emuFindings());
  if (as_json) {
    std::puts(all.dump(1).c_str());
    return;
  }
  for (const json& f : all["findings"]) print_finding(f);
  print_costs(all["counters"]);
  const auto errors = mi350emuErrorCount(), findings = mi350emuFindingCount();
  std::printf("%llu errors, %llu advisories\n", static_cast<unsigned long long>(errors),
              static_cast<unsigned long long>(findings - errors));
}

int execute(const Options& o) {
  LaunchFile file;
  std::string error;
  if (!read_launch_file(o.path, &file, &error)) {
    complain(error);
    return 2;
  }
  mi350emuSetMode(o.check ? "check" : nullptr);
  if (o.advise) mi350emuSetStrict(0);
  Run run(file);
  if (const std::string why = run.prepare(); !why.empty()) return complain(why);
  const int code = run.launch();
  const bool found = mi350emuErrorCount() != 0;
  if (o.check) print_findings(o.json);
  // In check mode the findings are the report of a kernel that failed by them.
  if (code != 0 && !(o.check && found)) return complain(file.kernel + " " + failure("launch", code));
  if (code != 0) return 1;
  if (!o.json) print_counters(file);
  bool good = true;
  for (size_t n = 0; n < file.buffers.size(); ++n) good &= settle(run, file, n);
  return good && !found ? 0 : 1;
}

int run_or_check(Arguments arguments, bool check) {
  const Options o = read_options(arguments, check);
  if (o.help || !o.wrong.empty() || o.path.empty()) return usage(o);
  return execute(o);
}

}  // namespace

int run(Arguments arguments) { return run_or_check(arguments, false); }
int check(Arguments arguments) { return run_or_check(arguments, true); }

}  // namespace mi350::emu::cli
