// Tables of HTML's character references.
#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "retrieval/text/formats/html.hpp"

namespace muniment::retrieval {
namespace {

// U+00A0 to U+00FF, in order.
constexpr std::string_view latin[] = {
    "nbsp",   "iexcl",  "cent",   "pound",  "curren", "yen",    "brvbar", "sect",   "uml",    "copy",   "ordf",
    "laquo",  "not",    "shy",    "reg",    "macr",   "deg",    "plusmn", "sup2",   "sup3",   "acute",  "micro",
    "para",   "middot", "cedil",  "sup1",   "ordm",   "raquo",  "frac14", "frac12", "frac34", "iquest", "Agrave",
    "Aacute", "Acirc",  "Atilde", "Auml",   "Aring",  "AElig",  "Ccedil", "Egrave", "Eacute", "Ecirc",  "Euml",
    "Igrave", "Iacute", "Icirc",  "Iuml",   "ETH",    "Ntilde", "Ograve", "Oacute", "Ocirc",  "Otilde", "Ouml",
    "times",  "Oslash", "Ugrave", "Uacute", "Ucirc",  "Uuml",   "Yacute", "THORN",  "szlig",  "agrave", "aacute",
    "acirc",  "atilde", "auml",   "aring",  "aelig",  "ccedil", "egrave", "eacute", "ecirc",  "euml",   "igrave",
    "iacute", "icirc",  "iuml",   "eth",    "ntilde", "ograve", "oacute", "ocirc",  "otilde", "ouml",   "divide",
    "oslash", "ugrave", "uacute", "ucirc",  "uuml",   "yacute", "thorn",  "yuml"};
static_assert(std::size(latin) == 96);

// From U+0391 and U+03B1; the gap is U+03A2, which is unassigned, and U+03C2 is the final sigma.
constexpr std::string_view greek[] = {
    "alpha", "beta",    "gamma", "delta", "epsilon", "zeta",  "eta", "theta",   "iota", "kappa", "lambda", "mu",   "nu",
    "xi",    "omicron", "pi",    "rho",   "sigmaf",  "sigma", "tau", "upsilon", "phi",  "chi",   "psi",    "omega"};

struct Named {
  std::string_view name;
  char32_t value;
};

constexpr Named others[] = {
    {"amp", '&'},       {"lt", '<'},        {"gt", '>'},        {"quot", '"'},       {"apos", '\''},
    {"AMP", '&'},       {"LT", '<'},        {"GT", '>'},        {"QUOT", '"'},       {"OElig", 0x152},
    {"oelig", 0x153},   {"Scaron", 0x160},  {"scaron", 0x161},  {"Yuml", 0x178},     {"fnof", 0x192},
    {"circ", 0x2C6},    {"tilde", 0x2DC},   {"ensp", 0x2002},   {"emsp", 0x2003},    {"thinsp", 0x2009},
    {"zwnj", 0x200C},   {"zwj", 0x200D},    {"lrm", 0x200E},    {"rlm", 0x200F},     {"ndash", 0x2013},
    {"mdash", 0x2014},  {"lsquo", 0x2018},  {"rsquo", 0x2019},  {"sbquo", 0x201A},   {"ldquo", 0x201C},
    {"rdquo", 0x201D},  {"bdquo", 0x201E},  {"dagger", 0x2020}, {"Dagger", 0x2021},  {"bull", 0x2022},
    {"hellip", 0x2026}, {"permil", 0x2030}, {"prime", 0x2032},  {"Prime", 0x2033},   {"lsaquo", 0x2039},
    {"rsaquo", 0x203A}, {"oline", 0x203E},  {"frasl", 0x2044},  {"euro", 0x20AC},    {"image", 0x2111},
    {"weierp", 0x2118}, {"real", 0x211C},   {"trade", 0x2122},  {"alefsym", 0x2135}, {"larr", 0x2190},
    {"uarr", 0x2191},   {"rarr", 0x2192},   {"darr", 0x2193},   {"harr", 0x2194},    {"crarr", 0x21B5},
    {"lArr", 0x21D0},   {"uArr", 0x21D1},   {"rArr", 0x21D2},   {"dArr", 0x21D3},    {"hArr", 0x21D4},
    {"forall", 0x2200}, {"part", 0x2202},   {"exist", 0x2203},  {"empty", 0x2205},   {"nabla", 0x2207},
    {"isin", 0x2208},   {"notin", 0x2209},  {"ni", 0x220B},     {"prod", 0x220F},    {"sum", 0x2211},
    {"minus", 0x2212},  {"lowast", 0x2217}, {"radic", 0x221A},  {"prop", 0x221D},    {"infin", 0x221E},
    {"ang", 0x2220},    {"and", 0x2227},    {"or", 0x2228},     {"cap", 0x2229},     {"cup", 0x222A},
    {"int", 0x222B},    {"there4", 0x2234}, {"sim", 0x223C},    {"cong", 0x2245},    {"asymp", 0x2248},
    {"ne", 0x2260},     {"equiv", 0x2261},  {"le", 0x2264},     {"ge", 0x2265},      {"sub", 0x2282},
    {"sup", 0x2283},    {"nsub", 0x2284},   {"sube", 0x2286},   {"supe", 0x2287},    {"oplus", 0x2295},
    {"otimes", 0x2297}, {"perp", 0x22A5},   {"sdot", 0x22C5},   {"lceil", 0x2308},   {"rceil", 0x2309},
    {"lfloor", 0x230A}, {"rfloor", 0x230B}, {"lang", 0x27E8},   {"rang", 0x27E9},    {"loz", 0x25CA},
    {"spades", 0x2660}, {"clubs", 0x2663},  {"hearts", 0x2665}, {"diams", 0x2666},   {"thetasym", 0x3D1},
    {"upsih", 0x3D2},   {"piv", 0x3D6},     {"check", 0x2713},  {"lbrack", '['},     {"rbrack", ']'},
    {"lbrace", '{'},    {"rbrace", '}'},    {"lpar", '('},      {"rpar", ')'},       {"num", '#'},
    {"excl", '!'},      {"dollar", '$'},    {"percnt", '%'},    {"plus", '+'},       {"comma", ','},
    {"period", '.'},    {"sol", '/'},       {"bsol", '\\'},     {"colon", ':'},      {"semi", ';'},
    {"equals", '='},    {"quest", '?'},     {"commat", '@'},    {"lowbar", '_'},     {"grave", '`'},
    {"vert", '|'},      {"NewLine", '\n'},  {"Tab", '\t'}};

// The meaning of &#128; to &#159; in every browser: windows-1252.
constexpr char32_t windows[] = {0x20AC, 0x81,   0x201A, 0x192,  0x201E, 0x2026, 0x2020, 0x2021, 0x2C6,  0x2030, 0x160,
                                0x2039, 0x152,  0x8D,   0x17D,  0x8F,   0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
                                0x2013, 0x2014, 0x2DC,  0x2122, 0x161,  0x203A, 0x153,  0x9D,   0x17E,  0x178};

// The number between "#" or "#x" and its end; U+FFFD for an invalid character.
char32_t numbered_character(std::string_view digits) {
  const bool hex = digits.starts_with('x') || digits.starts_with('X');
  if (hex) digits.remove_prefix(1);
  char32_t value = 0;
  for (const char c : digits) {
    const bool decimal = c >= '0' && c <= '9';
    const char lower = static_cast<char>(c | 0x20);
    if (!decimal && !(hex && lower >= 'a' && lower <= 'f')) return 0;
    value = value * (hex ? 16 : 10) + static_cast<char32_t>(decimal ? c - '0' : lower - 'a' + 10);
    if (value > 0x10FFFF) return 0xFFFD;
  }
  if (digits.empty()) return 0;
  if (value >= 0x80 && value < 0xA0) return windows[value - 0x80];
  return value == 0 || (value >= 0xD800 && value <= 0xDFFF) ? char32_t{0xFFFD} : value;
}

std::unordered_map<std::string, char32_t> every_name() {
  std::unordered_map<std::string, char32_t> names;
  for (const Named& one : others) names.emplace(one.name, one.value);
  for (std::size_t i = 0; i < std::size(latin); ++i) names.emplace(latin[i], static_cast<char32_t>(0xA0 + i));
  for (std::size_t i = 0; i < std::size(greek); ++i) {
    std::string name(greek[i]);
    names.emplace(name, static_cast<char32_t>(0x3B1 + i));
    if (name == "sigmaf") continue;
    name[0] = static_cast<char>(name[0] - 'a' + 'A');
    names.emplace(name, static_cast<char32_t>(0x391 + i));
  }
  return names;
}

}  // namespace

char32_t named_character(std::string_view name) {
  static const std::unordered_map<std::string, char32_t> names = every_name();
  const auto found = names.find(std::string(name));
  return found == names.end() ? 0 : found->second;
}

std::string unescape_html(std::string_view source) {
  std::string out;
  for (std::size_t at = 0; at < source.size();) {
    const std::size_t mark = std::min(source.find('&', at), source.size());
    out += source.substr(at, mark - at);
    if (mark == source.size()) break;
    const std::size_t end = source.substr(mark + 1, 32)
                                .find_first_not_of("#0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    const std::string_view name = source.substr(
        mark + 1, end == std::string_view::npos ? std::min<std::size_t>(32, source.size() - mark - 1) : end);
    const char32_t value = name.starts_with('#') ? numbered_character(name.substr(1)) : named_character(name);
    if (value == 0) {
      out += '&';
      at = mark + 1;
      continue;
    }
    append_utf8(out, value);
    at = mark + 1 + name.size();
    if (at < source.size() && source[at] == ';') ++at;
  }
  return out;
}

}  // namespace muniment::retrieval
