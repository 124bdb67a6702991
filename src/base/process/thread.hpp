// Starts threads with names that top -H, gdb and perf show: "append", "worker 3".
#pragma once

#include <pthread.h>

#include <string>
#include <thread>
#include <utility>

namespace muniment {

// `name`: at most 15 bytes, the limit of Linux; a longer name is truncated.
template <typename Work>
std::thread named_thread(std::string name, Work work) {
  return std::thread([name = std::move(name), work = std::move(work)]() mutable {
    pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
    work();
  });
}

}  // namespace muniment
