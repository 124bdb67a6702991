#include "base/process/libpq_environment.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace muniment {

void ignore_libpq_variables(std::string_view uri) {
  if (!uri.empty() && !uri.starts_with(private_postgres_uri)) return;
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (text.starts_with("PG")) names.emplace_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : names) ::unsetenv(name.c_str());
}

}  // namespace muniment
