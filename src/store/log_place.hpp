// Where one log lies: its database, its number there, and the folder to which its old bodies went.
#pragma once

#include <cstdint>
#include <string>

namespace muniment::store {

struct LogPlace {
  std::string uri;
  std::int16_t log_no = 1;
  std::string archive{};         // store/body_archive.hpp; empty: nothing of it was archived
};

}  // namespace muniment::store
