// The helper threads. The pool is never destroyed, and a child after fork() makes its own: threads do not
// survive a fork.
#include "host_threads.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace mi350::emu {
namespace {

class Pool {
 public:
  const pid_t owner = getpid();

  bool run(unsigned helpers, const std::function<void()>& work) {
    {
      std::unique_lock lock(mutex_);
      if (work_ != nullptr) return false;
      while (threads_ < helpers) start_thread();
      work_ = &work;
      wanted_ = helpers;
      ++generation_;
    }
    wake_.notify_all();
    work();
    std::unique_lock lock(mutex_);
    wanted_ = 0;  // who has not begun need not begin
    done_.wait(lock, [&] { return active_ == 0; });
    work_ = nullptr;
    return true;
  }

 private:
  void start_thread() {
    // Signals belong to the program's own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([this] { serve(); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ++threads_;
  }

  void serve() {
    std::unique_lock lock(mutex_);
    uint64_t seen = 0;
    for (;;) {
      wake_.wait(lock, [&] { return wanted_ > 0 && generation_ != seen; });
      seen = generation_;
      --wanted_;
      ++active_;
      const std::function<void()>& work = *work_;
      lock.unlock();
      work();
      lock.lock();
      if (--active_ == 0) done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void()>* work_ = nullptr;
  unsigned wanted_ = 0, active_ = 0, threads_ = 0;
  uint64_t generation_ = 0;
};

Pool& pool() {
  static std::mutex mutex;
  static Pool* current = nullptr;
  std::lock_guard lock(mutex);
  if (current == nullptr || current->owner != getpid()) current = new Pool;
  return *current;
}

}  // namespace

unsigned host_threads() {
  const char* text = std::getenv("TORCH_MI350_EMU_THREADS");
  const int set = text == nullptr ? 0 : std::atoi(text);
  if (set > 0) return static_cast<unsigned>(std::min(set, 1024));
  return std::max(1u, std::thread::hardware_concurrency());
}

void run_with_helpers(unsigned helpers, const std::function<void()>& work) {
  if (helpers == 0 || !pool().run(helpers, work)) work();
}

}  // namespace mi350::emu
