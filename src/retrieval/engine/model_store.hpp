// The trained models that the engine was given, beside its indexes, so that a restart needs nobody to
// send them again: for each corpus the one that answers and, while its vectors are made, the next.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace muniment::retrieval {

struct StoredModel {
  std::string corpus;
  std::string bytes;
  bool waiting = false;  // its vectors are not all there
};

class ModelStore {
 public:
  explicit ModelStore(std::string folder) : folder_(std::move(folder)) {}

  // What is there; a file that is damaged is removed: the log has the model. Errors: those of files.
  Result<std::vector<StoredModel>> load() const;
  // Durable when they return success.
  Status put_waiting(std::string_view corpus, std::string_view bytes) const;
  Status promote(std::string_view corpus) const;  // the waiting one is the one that answers

 private:
  std::string path(std::string_view corpus, bool waiting) const;
  const std::string folder_;
};

}  // namespace muniment::retrieval
