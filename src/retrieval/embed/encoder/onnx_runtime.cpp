// Loads ONNX Runtime and runs models with it.
#include "retrieval/embed/encoder/onnx_runtime.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include "base/files/file.hpp"
#include "retrieval/embed/encoder/onnx_api.hpp"

namespace muniment::retrieval {
namespace {

using Table = const void* const*;

template <typename Release>
struct Releaser {
  Table table = nullptr;
  template <typename T>
  void operator()(T* object) const {
    Release::call(table, object);
  }
};
template <typename T, typename Release>
using Owned = std::unique_ptr<T, Releaser<Release>>;

// Calls a function that returns a Status. Errors have the runtime's message and the code that the caller gives.
template <typename Function, typename... Arguments>
Status try_call(Table table, Errc code, Arguments... arguments) {
  const Owned<onnx::Status, onnx::ReleaseStatus> failed(Function::call(table, arguments...), {table});
  if (!failed) return success();
  return Error(code, std::string("ONNX Runtime: ") + onnx::GetErrorMessage::call(table, failed.get()));
}

// Calls a function whose last parameter returns a new object.
template <typename Function, typename Release, typename T, typename... Arguments>
Result<Owned<T, Release>> make(Table table, Errc code, Arguments... arguments) {
  T* made = nullptr;
  RETURN_IF_ERROR(try_call<Function>(table, code, arguments..., &made));
  return Owned<T, Release>(made, {table});
}

using OwnedEnv = Owned<onnx::Env, onnx::ReleaseEnv>;
using OwnedSession = Owned<onnx::Session, onnx::ReleaseSession>;
using OwnedMemoryInfo = Owned<onnx::MemoryInfo, onnx::ReleaseMemoryInfo>;
using OwnedValue = Owned<onnx::Value, onnx::ReleaseValue>;

constexpr std::array<const char*, 3> input_names = {"input_ids", "attention_mask", "token_type_ids"};
constexpr const char* output_name = "last_hidden_state";

struct TensorShape {
  onnx::ElementType type{};
  std::vector<std::int64_t> sides;  // -1: any
};

Result<TensorShape> shape_of(Table table, const onnx::TensorInfo* info) {
  if (info == nullptr) return Error(Errc::corrupt, "an input or output of the model is not a tensor");
  TensorShape shape;
  std::size_t count = 0;
  RETURN_IF_ERROR(try_call<onnx::GetTensorElementType>(table, Errc::corrupt, info, &shape.type));
  RETURN_IF_ERROR(try_call<onnx::GetDimensionsCount>(table, Errc::corrupt, info, &count));
  shape.sides.resize(count);
  RETURN_IF_ERROR(try_call<onnx::GetDimensions>(table, Errc::corrupt, info, shape.sides.data(), count));
  return shape;
}

// The inputs or the outputs of a model, by name.
template <typename Count, typename Name, typename Type>
Result<std::map<std::string, TensorShape>> shapes_of(Table table, const onnx::Session* session) {
  onnx::Allocator* allocator = nullptr;
  RETURN_IF_ERROR(try_call<onnx::GetAllocatorWithDefaultOptions>(table, Errc::unavailable, &allocator));
  std::size_t count = 0;
  RETURN_IF_ERROR(try_call<Count>(table, Errc::corrupt, session, &count));
  std::map<std::string, TensorShape> shapes;
  for (std::size_t i = 0; i < count; ++i) {
    char* name = nullptr;
    RETURN_IF_ERROR(try_call<Name>(table, Errc::corrupt, session, i, allocator, &name));
    const std::string own = name;
    RETURN_IF_ERROR(try_call<onnx::AllocatorFree>(table, Errc::unavailable, allocator, static_cast<void*>(name)));
    ASSIGN_OR_RETURN(const auto type,
                     (make<Type, onnx::ReleaseTypeInfo, onnx::TypeInfo>(table, Errc::corrupt, session, i)));
    const onnx::TensorInfo* info = nullptr;  // belongs to `type`
    RETURN_IF_ERROR(try_call<onnx::CastTypeInfoToTensorInfo>(table, Errc::corrupt, type.get(), &info));
    ASSIGN_OR_RETURN(shapes[own], shape_of(table, info));
  }
  return shapes;
}

Status check_shapes(Table table, const onnx::Session* session, std::size_t dimension) {
  ASSIGN_OR_RETURN(const auto inputs,
                   (shapes_of<onnx::SessionGetInputCount, onnx::SessionGetInputName, onnx::SessionGetInputTypeInfo>(
                       table, session)));
  ASSIGN_OR_RETURN(const auto outputs,
                   (shapes_of<onnx::SessionGetOutputCount, onnx::SessionGetOutputName, onnx::SessionGetOutputTypeInfo>(
                       table, session)));
  const bool right_inputs =
      inputs.size() == input_names.size() && std::all_of(input_names.begin(), input_names.end(), [&](const char* name) {
        const auto found = inputs.find(name);
        return found != inputs.end() && found->second.type == onnx::ElementType::int64 &&
               found->second.sides.size() == 2;
      });
  if (!right_inputs) return Error(Errc::corrupt, "the model does not have the inputs of a sentence encoder");
  const auto output = outputs.find(output_name);
  if (output == outputs.end() || output->second.type != onnx::ElementType::float32 ||
      output->second.sides.size() != 3 || output->second.sides[2] != static_cast<std::int64_t>(dimension))
    return Error(Errc::corrupt, fmt::format("the model's output is not {} numbers for each token", dimension));
  return success();
}

class OnnxModel : public TokenModel {
 public:
  OnnxModel(Table table, OwnedMemoryInfo memory, OwnedSession session, std::size_t dimension)
      : table_(table), memory_(std::move(memory)), session_(std::move(session)), dimension_(dimension) {}

  std::size_t dimension() const override { return dimension_; }

  Result<std::vector<float>> run(std::span<const std::int64_t> ids) const override {
    std::vector<std::int64_t> own(ids.begin(), ids.end()), ones(ids.size(), 1), zeros(ids.size(), 0);
    std::array<std::vector<std::int64_t>*, 3> data = {&own, &ones, &zeros};  // in the order of input_names
    const std::array<std::int64_t, 2> shape = {1, static_cast<std::int64_t>(ids.size())};
    std::array<OwnedValue, 3> inputs;
    std::array<const onnx::Value*, 3> pointers{};
    for (std::size_t i = 0; i < data.size(); ++i) {
      ASSIGN_OR_RETURN(inputs[i], (make<onnx::CreateTensorWithDataAsOrtValue, onnx::ReleaseValue, onnx::Value>(
                                      table_, Errc::unavailable, memory_.get(), static_cast<void*>(data[i]->data()),
                                      data[i]->size() * sizeof(std::int64_t), shape.data(), shape.size(),
                                      onnx::ElementType::int64)));
      pointers[i] = inputs[i].get();
    }
    onnx::Value* made = nullptr;
    RETURN_IF_ERROR(try_call<onnx::Run>(table_, Errc::unavailable, session_.get(), nullptr, input_names.data(),
                                        pointers.data(), pointers.size(), &output_name, std::size_t{1}, &made));
    const OwnedValue output(made, {table_});
    ASSIGN_OR_RETURN(const auto info,
                     (make<onnx::GetTensorTypeAndShape, onnx::ReleaseTensorTypeAndShapeInfo, onnx::TensorInfo>(
                         table_, Errc::unavailable, output.get())));
    ASSIGN_OR_RETURN(const TensorShape got, shape_of(table_, info.get()));
    if (got.sides != std::vector<std::int64_t>{1, shape[1], static_cast<std::int64_t>(dimension_)})
      return Error(Errc::unavailable, "the model returned vectors of another shape");
    void* numbers = nullptr;
    RETURN_IF_ERROR(try_call<onnx::GetTensorMutableData>(table_, Errc::unavailable, output.get(), &numbers));
    std::vector<float> vectors(ids.size() * dimension_);
    std::memcpy(vectors.data(), numbers, vectors.size() * sizeof(float));
    return vectors;
  }

 private:
  const Table table_;
  const OwnedMemoryInfo memory_;
  const OwnedSession session_;  // any number of threads may run it
  const std::size_t dimension_;
};

class LoadedRuntime : public OnnxRuntime {
 public:
  LoadedRuntime(Table table, OwnedEnv env) : table_(table), env_(std::move(env)) {}

  Result<std::unique_ptr<TokenModel>> open(std::string_view bytes, std::size_t dimension) const override {
    ASSIGN_OR_RETURN(const auto options,
                     (make<onnx::CreateSessionOptions, onnx::ReleaseSessionOptions, onnx::SessionOptions>(
                         table_, Errc::unavailable)));
    // A run uses the thread of its caller alone, so that the runtime starts no threads.
    RETURN_IF_ERROR(try_call<onnx::SetIntraOpNumThreads>(table_, Errc::unavailable, options.get(), 1));
    RETURN_IF_ERROR(try_call<onnx::SetInterOpNumThreads>(table_, Errc::unavailable, options.get(), 1));
    ASSIGN_OR_RETURN(auto session, (make<onnx::CreateSessionFromArray, onnx::ReleaseSession, onnx::Session>(
                                       table_, Errc::corrupt, env_.get(), static_cast<const void*>(bytes.data()),
                                       bytes.size(), options.get())));
    RETURN_IF_ERROR(check_shapes(table_, session.get(), dimension));
    ASSIGN_OR_RETURN(auto memory, (make<onnx::CreateCpuMemoryInfo, onnx::ReleaseMemoryInfo, onnx::MemoryInfo>(
                                      table_, Errc::unavailable, onnx::device_allocator, onnx::default_memory_type)));
    return std::unique_ptr<TokenModel>(
        std::make_unique<OnnxModel>(table_, std::move(memory), std::move(session), dimension));
  }

 private:
  const Table table_;
  const OwnedEnv env_;
};

Error not_loadable(const std::string& library, const std::string& why) {
  return Error(Errc::unavailable, library + ": " + why);
}

}  // namespace

Result<std::shared_ptr<const OnnxRuntime>> OnnxRuntime::load(const std::string& library) {
  if (::access(library.c_str(), R_OK) != 0) return file_error("opening", library, errno);
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: it has thread-local objects
  if (handle == nullptr) {
    const char* const why = ::dlerror();
    return not_loadable(library, why != nullptr ? why : "it cannot be loaded");
  }
  const auto get_base = reinterpret_cast<onnx::GetApiBase>(::dlsym(handle, "OrtGetApiBase"));
  if (get_base == nullptr) return not_loadable(library, "it is not ONNX Runtime");
  const onnx::ApiBase* const base = get_base();
  const std::string version = base->get_version();
  if (version != onnx_runtime_version)
    return not_loadable(library, fmt::format("its version is {}, not {}", version, onnx_runtime_version));
  const Table table = base->get_api(onnx::api_version);
  if (table == nullptr) return not_loadable(library, "it does not have the API that is needed");
  ASSIGN_OR_RETURN(auto env, (make<onnx::CreateEnv, onnx::ReleaseEnv, onnx::Env>(table, Errc::unavailable,
                                                                                 onnx::LogLevel::error, "muniment")));
  RETURN_IF_ERROR(try_call<onnx::DisableTelemetryEvents>(table, Errc::unavailable, env.get()));
  return std::shared_ptr<const OnnxRuntime>(std::make_shared<LoadedRuntime>(table, std::move(env)));
}

}  // namespace muniment::retrieval
