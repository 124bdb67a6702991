// Converts Xapian's exceptions to errors: unavailable if another process changes or locks the index, or the machine
// cannot read it at present; corrupt if its files are damaged, which also causes absurd allocations.
#pragma once

#include <xapian.h>
#include <exception>
#include <string>

#include "base/result.hpp"

namespace muniment::retrieval {

inline Error lexical_error(Errc code, const char* doing, const std::string& what) {
  return Error(code, std::string("lexical index, ") + doing + ": " + what);
}

// `work` returns a Result. With `retry`, DatabaseModifiedError passes through: reopen and call again.
template <typename Work>
auto guarded(const char* doing, Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const Xapian::DatabaseModifiedError& error) {
    return lexical_error(Errc::unavailable, doing, error.get_msg());
  } catch (const Xapian::DatabaseLockError& error) {
    return lexical_error(Errc::unavailable, doing, error.get_msg());
  } catch (const Xapian::DatabaseCreateError& error) {
    return lexical_error(Errc::system_error, doing, error.get_msg());
  } catch (const Xapian::Error& error) {
    // A plain DatabaseError with a system error is caused by the disk; without one, by the file's content.
    const char* system = error.get_error_string();
    const bool plain = std::string_view(error.get_type()) == "DatabaseError";
    if (plain && system) return lexical_error(Errc::unavailable, doing, error.get_msg() + " (" + system + ")");
    return lexical_error(Errc::corrupt, doing, error.get_description());
  } catch (const std::exception& error) {
    return lexical_error(Errc::corrupt, doing, error.what());
  }
}

}  // namespace muniment::retrieval
