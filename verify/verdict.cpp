#include "verify/verdict.hpp"

namespace muniment::verify {

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::verified: return "verified";
    case Verdict::tampered: return "tampered";
    case Verdict::is_unsigned: return "unsigned";
    case Verdict::wrong_key: return "wrong_key";
    case Verdict::unsigned_tail: return "unsigned_tail";
    case Verdict::unknown_schema: return "unknown_schema";
    case Verdict::unreadable: return "unreadable";
    case Verdict::incomplete: return "incomplete";
  }
  return "unreadable";
}

int exit_code_of(Verdict verdict, bool unsigned_ok) {
  switch (verdict) {
    case Verdict::verified: return 0;
    case Verdict::tampered: return 1;
    case Verdict::is_unsigned:
    case Verdict::unsigned_tail: return unsigned_ok ? 0 : 2;
    case Verdict::unknown_schema:
    case Verdict::wrong_key: return 2;
    case Verdict::unreadable: return 4;
    case Verdict::incomplete: return 5;
  }
  return 4;
}

}  // namespace muniment::verify
