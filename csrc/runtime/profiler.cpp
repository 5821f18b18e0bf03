// The Kineto plug-in of `cdna`. A launch becomes two activities that one flow arrow joins:
//
//   host thread    aten::mm [ hipModuleLaunchKernel ]     PRIVATEUSE1_RUNTIME, flow start
//                                   \                                                        .
//   cdna stream                      [ mi350_gemm_... ]   CONCURRENT_KERNEL, flow end
//
// Both link to the aten op through the correlation id that Kineto pushed last on the launching thread.
// Kineto runs one session at a time; records of a launch that ends after stop() are dropped.
#include "runtime/profiler.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/torch_version.h"

#if MI350_HAS_KINETO_REGISTRY
#include <libkineto.h>
#include <output_base.h>
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>
#endif

namespace mi350::runtime {

std::atomic<bool> g_profiling{false};

#if !MI350_HAS_KINETO_REGISTRY

void install_profiler() {}
void record_kernel(const char*, uint64_t, uint64_t, const unsigned[3], unsigned, int, uint64_t) {}

#else

namespace {

using libkineto::ActivityType;

struct KernelRecord {
  std::string symbol;
  uint64_t begin_ns, end_ns;
  unsigned grid[3], block;
  int device;
  uint64_t stream;
  uint64_t correlation;  // of the aten op; 0: launched outside any
  int32_t thread;
};

std::mutex g_mutex;                                  // guards the two below
std::vector<KernelRecord>* g_records = nullptr;      // of the session that records now
uint64_t g_session = 0;                              // number of the last session

// Correlation ids of the ops that are open on this thread. An op that was open when a session ended never
// pops, so a stack belongs to one session and is emptied when another is seen.
struct OpenOps {
  uint64_t session = 0;
  std::vector<uint64_t> ids;
};
thread_local OpenOps t_open_ops;

class Session : public libkineto::IActivityProfilerSession {
 public:
  Session() {
    std::lock_guard<std::mutex> lock(g_mutex);
    number_ = ++g_session;
  }

  ~Session() override { detach(); }

  void start() override {
    std::lock_guard<std::mutex> lock(g_mutex);
    g_records = &records_;
    g_profiling.store(true, std::memory_order_relaxed);
    status_ = libkineto::TraceStatus::RECORDING;
  }

  void stop() override {
    detach();
    status_ = libkineto::TraceStatus::PROCESSING;
  }

  void pushCorrelationId(uint64_t id) override {
    if (t_open_ops.session != number_) {
      t_open_ops.session = number_;
      t_open_ops.ids.clear();
    }
    t_open_ops.ids.push_back(id);
  }

  void popCorrelationId() override {
    if (t_open_ops.session == number_ && !t_open_ops.ids.empty()) {
      t_open_ops.ids.pop_back();
    }
  }

  void processTrace(libkineto::ActivityLogger& logger) override {
    processTrace(logger, [](int32_t) { return nullptr; }, 0, INT64_MAX);
  }

  void processTrace(libkineto::ActivityLogger& logger, libkineto::getLinkedActivityCallback linked,
                    int64_t start_ns, int64_t end_ns) override {
    buffer_ = std::make_unique<libkineto::CpuTraceBuffer>();
    buffer_->span = libkineto::TraceSpan(start_ns, end_ns, "cdna");
    buffer_->gpuOpCount = static_cast<int>(records_.size());
    uint32_t flow = 0;
    for (const KernelRecord& record : records_) {
      if (int64_t(record.end_ns) < start_ns || int64_t(record.begin_ns) > end_ns) {
        continue;
      }
      emit(record, linked(static_cast<int32_t>(record.correlation)), ++flow);
    }
    for (const auto& activity : buffer_->activities) {
      activity->log(logger);
    }
    records_.clear();
    status_ = libkineto::TraceStatus::READY;
  }

  std::vector<std::string> errors() override { return {}; }

  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override {
    return std::make_unique<libkineto::DeviceInfo>(libkineto::DeviceInfo{
        0, libkineto::kExceedMaxPid, "cdna", "cdna 0 (gfx950 emulated: host time)"});
  }

  std::vector<libkineto::ResourceInfo> getResourceInfos() override {
    std::vector<libkineto::ResourceInfo> infos;
    for (const auto& [stream, resource] : resources_) {
      infos.push_back({resource, resource, stream.first, "stream " + std::to_string(resource)});
    }
    return infos;
  }

  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override { return std::move(buffer_); }

 private:
  void detach() {
    std::lock_guard<std::mutex> lock(g_mutex);
    if (g_records == &records_) {
      g_records = nullptr;
      g_profiling.store(false, std::memory_order_relaxed);
    }
  }

  // Kineto's resource ids are 32 bits wide: streams are numbered as they appear, the null stream is 0.
  int32_t resource_of(int device, uint64_t stream) {
    const auto next = static_cast<int32_t>(resources_.size()) + 1;
    return resources_.emplace(std::pair(device, stream), stream == 0 ? 0 : next).first->second;
  }

  void emit(const KernelRecord& record, const libkineto::ITraceActivity* op, uint32_t flow) {
    // NOTE: an activity with neither link nor id 0 would be taken for an aten op of that id.
    const auto id = op != nullptr ? static_cast<int32_t>(flow) : 0;
    const auto add = [&](ActivityType type, const std::string& name) -> libkineto::GenericTraceActivity& {
      buffer_->emplace_activity(buffer_->span, type, name);
      libkineto::GenericTraceActivity& activity = *buffer_->activities.back();
      activity.startTime = static_cast<int64_t>(record.begin_ns);
      activity.endTime = static_cast<int64_t>(std::max(record.end_ns, record.begin_ns));
      activity.id = id;
      activity.threadId = record.thread;
      activity.linked = op;
      activity.flow.id = flow;
      activity.flow.type = libkineto::kLinkAsyncCpuGpu;
      activity.addMetadata("correlation", flow);
      return activity;
    };

    auto& launch = add(ActivityType::PRIVATEUSE1_RUNTIME, "hipModuleLaunchKernel");
    launch.device = static_cast<int32_t>(getpid());
    launch.resource = record.thread;
    launch.flow.start = 1;

    auto& kernel = add(ActivityType::CONCURRENT_KERNEL, record.symbol);
    kernel.device = record.device;
    kernel.resource = resource_of(record.device, record.stream);
    kernel.addMetadata("device", record.device);
    kernel.addMetadata("stream", kernel.resource);
    kernel.addMetadata("grid", fmt::format("[{}, {}, {}]", record.grid[0], record.grid[1], record.grid[2]));
    kernel.addMetadata("block", fmt::format("[{}, 1, 1]", record.block));
    kernel.addMetadataQuoted("time source", "host time of the emulator");
  }

  uint64_t number_ = 0;
  std::vector<KernelRecord> records_;
  std::map<std::pair<int, uint64_t>, int32_t> resources_;
  std::unique_ptr<libkineto::CpuTraceBuffer> buffer_;
};

class CdnaProfiler : public libkineto::IActivityProfiler {
 public:
  const std::string& name() const override { return name_; }

  const std::set<ActivityType>& availableActivities() const override { return types_; }

  // Null: not asked for kernels, for example a profile of CPU activities only.
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      const std::set<ActivityType>& types, const libkineto::Config&) override {
    if (types.count(ActivityType::CONCURRENT_KERNEL) == 0) {
      return nullptr;
    }
    return std::make_unique<Session>();
  }

  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      int64_t, int64_t, const std::set<ActivityType>& types, const libkineto::Config& config) override {
    return configure(types, config);
  }

 private:
  const std::string name_ = "cdna";
  const std::set<ActivityType> types_ = {ActivityType::CONCURRENT_KERNEL, ActivityType::PRIVATEUSE1_RUNTIME};
};

}  // namespace

void install_profiler() {
  auto& registry = torch::profiler::impl::PrivateUse1ProfilerRegistry::instance();
  if (!registry.hasFactory()) {
    registry.registerFactory([] { return std::make_unique<CdnaProfiler>(); });
  }
}

void record_kernel(const char* symbol, uint64_t begin_ns, uint64_t end_ns, const unsigned grid[3], unsigned block,
                   int device, uint64_t stream) {
  std::lock_guard<std::mutex> lock(g_mutex);
  if (g_records == nullptr) {
    return;  // stopped while the kernel ran
  }
  const bool inside_op = t_open_ops.session == g_session && !t_open_ops.ids.empty();
  g_records->push_back({symbol, begin_ns, end_ns, {grid[0], grid[1], grid[2]}, block, device, stream,
                        inside_op ? t_open_ops.ids.back() : 0, static_cast<int32_t>(syscall(SYS_gettid))});
}

#endif

}  // namespace mi350::runtime
