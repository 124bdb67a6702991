#include "base/files/memory_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace muniment {

Result<Fd> memory_file(const char* name, std::string_view bytes) {
  Fd file(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.open()) return Error(Errc::system_error, std::string("memfd_create: ") + std::strerror(errno));
  RETURN_IF_ERROR(write_all(file.get(), bytes, name));
  if (::lseek(file.get(), 0, SEEK_SET) != 0)
    return Error(Errc::system_error, std::string("lseek: ") + std::strerror(errno));
  return file;
}

}  // namespace muniment
