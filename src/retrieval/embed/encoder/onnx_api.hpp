// The part of ONNX Runtime's C API that is used. The API is a table of function pointers to which new versions only
// append (the rules are in the runtime's docs/Versioning.md and in onnxruntime_c_api.h), so a function is known by its
// index; tests/functional/test_onnx_api.py compares the indices with the runtime's own header.
#pragma once

#include <cstddef>
#include <cstdint>

namespace muniment::retrieval::onnx {

// The table has all entries below since version 17 of the API (release 1.17).
inline constexpr std::uint32_t api_version = 17;

// Types of the runtime are opaque.
struct Env;
struct Status;
struct MemoryInfo;
struct Session;
struct SessionOptions;
struct RunOptions;
struct Value;
struct TypeInfo;
struct TensorInfo;
struct Allocator;

enum class LogLevel : int { error = 3 };
enum class ElementType : int { float32 = 1, int64 = 7 };
inline constexpr int device_allocator = 0;     // OrtDeviceAllocator
inline constexpr int default_memory_type = 0;  // OrtMemTypeDefault

// The result of OrtGetApiBase(), which the library exports.
struct ApiBase {
  const void* const* (*get_api)(std::uint32_t version);  // null: the library is older
  const char* (*get_version)();
};
using GetApiBase = const ApiBase* (*)();

// One function of the table. A function that returns a Status returns null on success.
template <std::size_t Index, typename Signature>
struct Function;
template <std::size_t Index, typename Result, typename... Arguments>
struct Function<Index, Result(Arguments...)> {
  static constexpr std::size_t index = Index;
  static Result call(const void* const* table, Arguments... arguments) {
    return reinterpret_cast<Result (*)(Arguments...)>(const_cast<void*>(table[Index]))(arguments...);
  }
};

using GetErrorMessage = Function<2, const char*(const Status*)>;
using CreateEnv = Function<3, Status*(LogLevel, const char* name, Env**)>;
using DisableTelemetryEvents = Function<6, Status*(const Env*)>;
using CreateSessionFromArray =
    Function<8, Status*(const Env*, const void* bytes, std::size_t size, const SessionOptions*, Session**)>;
using Run = Function<9, Status*(Session*, const RunOptions*, const char* const* input_names, const Value* const* inputs,
                                std::size_t inputs_size, const char* const* output_names, std::size_t outputs_size,
                                Value** outputs)>;
using CreateSessionOptions = Function<10, Status*(SessionOptions**)>;
using SetIntraOpNumThreads = Function<24, Status*(SessionOptions*, int)>;
using SetInterOpNumThreads = Function<25, Status*(SessionOptions*, int)>;
using SessionGetInputCount = Function<30, Status*(const Session*, std::size_t*)>;
using SessionGetOutputCount = Function<31, Status*(const Session*, std::size_t*)>;
using SessionGetInputTypeInfo = Function<33, Status*(const Session*, std::size_t index, TypeInfo**)>;
using SessionGetOutputTypeInfo = Function<34, Status*(const Session*, std::size_t index, TypeInfo**)>;
using SessionGetInputName = Function<36, Status*(const Session*, std::size_t index, Allocator*, char**)>;
using SessionGetOutputName = Function<37, Status*(const Session*, std::size_t index, Allocator*, char**)>;
using CreateTensorWithDataAsOrtValue =
    Function<49, Status*(const MemoryInfo*, void* data, std::size_t bytes, const std::int64_t* shape,
                         std::size_t dimensions, ElementType, Value**)>;
using GetTensorMutableData = Function<51, Status*(Value*, void**)>;
using CastTypeInfoToTensorInfo = Function<55, Status*(const TypeInfo*, const TensorInfo**)>;
using GetTensorElementType = Function<60, Status*(const TensorInfo*, ElementType*)>;
using GetDimensionsCount = Function<61, Status*(const TensorInfo*, std::size_t*)>;
using GetDimensions = Function<62, Status*(const TensorInfo*, std::int64_t*, std::size_t)>;
using GetTensorTypeAndShape = Function<65, Status*(const Value*, TensorInfo**)>;
using CreateCpuMemoryInfo = Function<69, Status*(int allocator, int memory_type, MemoryInfo**)>;
using AllocatorFree = Function<76, Status*(Allocator*, void*)>;
using GetAllocatorWithDefaultOptions = Function<78, Status*(Allocator**)>;
using ReleaseEnv = Function<92, void(Env*)>;
using ReleaseStatus = Function<93, void(Status*)>;
using ReleaseMemoryInfo = Function<94, void(MemoryInfo*)>;
using ReleaseSession = Function<95, void(Session*)>;
using ReleaseValue = Function<96, void(Value*)>;
using ReleaseTypeInfo = Function<98, void(TypeInfo*)>;
using ReleaseTensorTypeAndShapeInfo = Function<99, void(TensorInfo*)>;
using ReleaseSessionOptions = Function<100, void(SessionOptions*)>;

}  // namespace muniment::retrieval::onnx
