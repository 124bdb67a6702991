// Imports side by side, each on a connection of its own: the daemon commits what several of them send at once. Runs do
// not depend on each other; what is told of them is told in the order in which they were given.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "base/bounded_queue.hpp"
#include "base/result.hpp"
#include "cli/connect/client.hpp"

namespace muniment::cli {

inline constexpr std::size_t import_crew_max = 8;
inline constexpr std::size_t import_waiting_max = 64;              // works that are given and not told of
inline constexpr std::size_t import_waiting_bytes_max = 64 << 20;  // of their sources; one that is larger goes alone

class ImportCrew {
 public:
  // What is told of a work that is done; an error stops the import.
  using Report = std::function<Status()>;
  using Work = std::function<Report(Client&)>;

  explicit ImportCrew(std::string socket_path);
  ~ImportCrew();
  ImportCrew(const ImportCrew&) = delete;
  ImportCrew& operator=(const ImportCrew&) = delete;

  // `bytes` is what the work holds in memory. Waits, and tells, where too much is under way. Errors: those of reports.
  Status add(std::size_t bytes, Work work);
  // Waits for all of it.
  Status finish();

 private:
  struct Order {
    Work work;
    std::promise<Report> done;
  };
  struct Waiting {
    std::future<Report> done;
    std::size_t bytes = 0;
  };
  void serve();
  Status tell_first();

  const std::string socket_path_;
  BoundedQueue<Order> orders_{import_waiting_max + 1};
  std::deque<Waiting> waiting_;
  std::size_t bytes_ = 0;
  std::atomic<bool> stopped_ = false;  // nobody asks any more
  std::vector<std::thread> threads_;
};

}  // namespace muniment::cli
