// Computes the ids by which git names its objects.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muniment {

inline constexpr std::size_t git_sha1_digits = 40;  // ids of a repository of the format sha256 have 64

// Returns the id of an object of the type ("blob", "tree", "commit") with this content, in hexadecimal digits.
// `digits`: the length of an id in the repository.
std::string git_object_id(std::string_view type, std::string_view content, std::size_t digits);

}  // namespace muniment
