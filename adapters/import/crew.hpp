// Runs imports in parallel, each on its own connection, so that the daemon can commit their events together. Runs are
// independent; their results are reported in the order of submission.
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
#include "client/connect/client.hpp"

namespace muniment::cli {

inline constexpr std::size_t import_crew_max = 8;
inline constexpr std::size_t import_waiting_max = 64;              // orders submitted and not yet reported
inline constexpr std::size_t import_waiting_bytes_max = 64 << 20;  // bytes of their sources; a larger source runs alone

class ImportCrew {
 public:
  // Reports a finished order; an error stops the import.
  using Report = std::function<Status()>;
  using Work = std::function<Report(Client&)>;

  explicit ImportCrew(std::string socket_path);
  ~ImportCrew();
  ImportCrew(const ImportCrew&) = delete;
  ImportCrew& operator=(const ImportCrew&) = delete;

  // Submits an order that holds `bytes` of memory. While too much is in progress, waits and reports. Errors: those of
  // reports.
  Status add(std::size_t bytes, Work work);
  // Waits for all orders.
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
  std::atomic<bool> stopped_ = false;  // the caller has stopped the import
  std::vector<std::thread> threads_;
};

}  // namespace muniment::cli
