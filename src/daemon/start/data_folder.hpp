// The data folder: private to its user, and locked by one daemon at a time.
#pragma once

#include <string>

#include "base/result.hpp"

namespace muniment::daemon {

class DataFolder {
 public:
  // Creates the folder (0700) if it is missing and locks <folder>/munimentd.lock for the lifetime of the object.
  // Errors: conflict, naming the pid that holds the lock; denied; unavailable.
  static Result<DataFolder> take(const std::string& path);
  ~DataFolder();
  DataFolder(DataFolder&& other) noexcept;
  DataFolder& operator=(DataFolder&&) = delete;

 private:
  explicit DataFolder(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

}  // namespace muniment::daemon
