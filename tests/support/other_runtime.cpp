// A library with the entry point of ONNX Runtime, of a version that the product does not know.
#include <cstdint>

namespace {

struct ApiBase {
  const void* (*get_api)(std::uint32_t);
  const char* (*get_version)();
};

const ApiBase base = {[](std::uint32_t) -> const void* { return nullptr; }, [] { return "1.20.1"; }};

}  // namespace

extern "C" const ApiBase* OrtGetApiBase();
const ApiBase* OrtGetApiBase() { return &base; }
