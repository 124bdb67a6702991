// The one table of methods. A method is a schema in schema/rpc/, one function in methods/ and one
// row here; a test holds the three against each other.
#pragma once

#include <span>
#include <string_view>

#include "gateway/call.hpp"

namespace muniment::gateway {

std::span<const MethodInfo> method_table();
const MethodInfo* find_method(std::string_view name);  // nullptr: none

}  // namespace muniment::gateway
