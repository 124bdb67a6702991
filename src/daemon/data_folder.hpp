// The data folder: made private, and held by one daemon at a time.
#pragma once

#include <string>

#include "base/result.hpp"

namespace muniment::daemon {

class DataFolder {
 public:
  // Makes the folder (0700) if it is missing and locks <folder>/munimentd.lock for as long as the
  // object lives. Errors: conflict, naming the pid that holds it; denied; unavailable.
  static Result<DataFolder> take(const std::string& path);
  ~DataFolder();
  DataFolder(DataFolder&& other) noexcept;
  DataFolder& operator=(DataFolder&&) = delete;

 private:
  explicit DataFolder(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

}  // namespace muniment::daemon
