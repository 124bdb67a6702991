// Stores the trained models that the engine received beside its indexes, so that a restart does not need them again:
// for each corpus the present model and, while its vectors are computed, the next one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace muniment::retrieval {

struct StoredModel {
  std::string corpus;
  std::string bytes;
  bool waiting = false;  // its vectors are incomplete
};

class ModelStore {
 public:
  explicit ModelStore(std::string folder) : folder_(std::move(folder)) {}

  // Returns the stored models and removes damaged files, since the log has the models. Errors: those of files.
  Result<std::vector<StoredModel>> load() const;
  // Durable on success.
  Status put_waiting(std::string_view corpus, std::string_view bytes) const;
  Status promote(std::string_view corpus) const;  // makes the waiting model the present one

 private:
  std::string path(std::string_view corpus, bool waiting) const;
  const std::string folder_;
};

}  // namespace muniment::retrieval
