// A library with the entry point of ONNX Runtime, of a version that the product does not know.
#include "retrieval/embed/encoder/onnx_api.hpp"

namespace {

using muniment::retrieval::onnx::ApiBase;

const void* const* no_api(std::uint32_t) { return nullptr; }
const char* version() { return "1.20.1"; }
const ApiBase base = {no_api, version};

}  // namespace

extern "C" const ApiBase* OrtGetApiBase();
const ApiBase* OrtGetApiBase() { return &base; }
