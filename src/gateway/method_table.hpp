// The table of methods. A method consists of a schema in schema/rpc/, one function in methods/ and one row here; a test
// compares the three.
#pragma once

#include <span>
#include <string_view>

#include "gateway/call.hpp"

namespace muniment::gateway {

std::span<const MethodInfo> method_table();
const MethodInfo* find_method(std::string_view name);  // returns nullptr for an unknown name

}  // namespace muniment::gateway
