// The table of sentence encoders, and the reading of their files.
#include "retrieval/embed/encoder/models.hpp"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "base/crypto/sha256.hpp"
#include "base/files/file.hpp"
#include "base/limits.hpp"
#include "retrieval/embed/encoder/onnx_runtime.hpp"

namespace muniment::retrieval {
namespace {

constexpr std::array<ModelSpec, 1> models = {{
    {"bge-small-en-v1.5", 384, "6c9c6101a956d62dfb5e7190c538226c0c5bb9cb27b651234b6df063ee7dbfe4",
     "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
     "Represent this sentence for searching relevant passages: "},
}};

constexpr std::string_view reading_version = "1";  // changes with the tokenizer and the cutting into parts

bool has_a_model(const std::string& folder) {
  for (const ModelSpec& spec : models) {
    if (::access((folder + "/" + std::string(spec.name) + "/model.onnx").c_str(), R_OK) == 0) return true;
  }
  return false;
}

Result<std::string> read_checked(const std::string& path, std::string_view hash) {
  ASSIGN_OR_RETURN(std::string bytes, read_file(path, limits::model_file_bytes_max));
  if (to_hex(sha256(bytes)) == hash) return bytes;
  return Error(Errc::corrupt, path + " is damaged, or of another model; install the model again");
}

}  // namespace

std::span<const ModelSpec> known_models() { return models; }

std::string version_of(const ModelSpec& spec) { return fmt::format("{}-{}", reading_version, spec.name); }

Result<const ModelSpec*> find_model(std::string_view name) {
  std::string known;
  for (const ModelSpec& spec : models) {
    if (spec.name == name) return &spec;
    known += (known.empty() ? "" : ", ") + std::string(spec.name);
  }
  return Error(Errc::not_found, "no such model: " + std::string(name) + "; known are " + known);
}

std::string default_models_folder() {
  constexpr const char* name = "/muniment/models";
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  const bool has_cache = cache != nullptr && *cache != '\0';
  const std::string own =
      (has_cache ? std::string(cache) : std::string(home == nullptr ? "" : home) + "/.cache") + name;
  const std::string of_all = std::string("/var/cache") + name;
  return has_a_model(own) || !has_a_model(of_all) ? own : of_all;
}

std::string runtime_library(const std::string& models_folder) {
  return models_folder + "/onnxruntime-" + std::string(onnx_runtime_version) + "/libonnxruntime.so";
}

Result<ModelFiles> read_model(const std::string& models_folder, const ModelSpec& spec) {
  const std::string folder = models_folder + "/" + std::string(spec.name);
  ModelFiles files;
  ASSIGN_OR_RETURN(files.model, read_checked(folder + "/model.onnx", spec.model_hash));
  ASSIGN_OR_RETURN(files.tokenizer, read_checked(folder + "/tokenizer.json", spec.tokenizer_hash));
  return files;
}

std::vector<InstalledPart> installed_parts(const std::string& models_folder) {
  const auto size_of = [](const std::string& file) {
    std::error_code failed;
    const auto size = std::filesystem::file_size(file, failed);
    return failed ? std::int64_t{0} : static_cast<std::int64_t>(size);
  };
  std::vector<InstalledPart> parts;
  for (const ModelSpec& spec : models) {
    const std::string file = models_folder + "/" + std::string(spec.name) + "/model.onnx";
    const auto read = read_model(models_folder, spec);
    const char* const state = read ? "installed" : read.error().code == Errc::not_found ? "not installed" : "damaged";
    parts.push_back({std::string(spec.name), state, spec.dimension, size_of(file),
                     fmt::format("encoder/{}/{}/{}", version_of(spec), spec.dimension, spec.model_hash.substr(0, 16)),
                     file});
  }
  const std::string library = runtime_library(models_folder);
  const bool there = ::access(library.c_str(), R_OK) == 0;
  parts.push_back({"onnxruntime", there ? "installed" : "not installed", 0, size_of(library),
                   std::string(onnx_runtime_version), library});
  return parts;
}

}  // namespace muniment::retrieval
