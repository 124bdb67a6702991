// The tables of word classes, suffixes and synonyms, and the look-ups in them.
#include "evidence/completion/text/words.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <random>
#include <unordered_map>
#include <utility>

namespace muniment::evidence::completion {
namespace {

struct ClassRow {
  std::uint32_t classes;
  std::string_view words;  // in lower case, separated by spaces
};

// All words of the classes are general: none of them names a subject.
constexpr std::array class_rows{
    ClassRow{
        stop_word,
        "a an the this that these those it its is are was were be been being am has have had having do does did and or "
        "but nor so as than then there here their they them we our us you your he she his her i my me one some any each "
        "every both such same other another own also too very just only even more most much many few less least well "
        "up down out off over again once yet still already now who whom whose what which how why where all of for "
        "can could may might must shall would if because since until while about between against per via etc eg ie "
        "s t d ll re ve isnt arent dont doesnt didnt cannot cant init self args kwargs str int py "
        "der die das den dem des ein eine einen und oder fuer mit von zu im am auf ist sind nicht le la les un une et pour "
        "avec dans de du el los las una para con en y por"},
    ClassRow{
        preposition,
        "in to on with from when by at into onto via using within after before during while because without under if "
        "through upon inside where since until that which so"},
    ClassRow{negation, "no not never none without neither nor zero cannot cant dont didnt doesnt wasnt werent isnt"},
    ClassRow{
        work_verb,
        "fix fixing implement implementation add adding write create make build update change improve refactor develop "
        "finish complete completion do get set put run execute perform check ensure verify validate handle handling support "
        "use work task job issue bug problem ticket story feature item request requirement need want allow enable "
        "provide introduce resolve address solve deliver ship investigate prepare setup configure modify adjust rework "
        "choose decide pick raise measure leave conduct evaluate assess determine collect gather bring keep confirm demonstrate "
        "prove interview draft propose "
        "compile upgrade prevent prüfe prüfen implementiere behebe erstelle schreibe füge hinzu ändere teste avoid restore protect optimize optimise speed secure clean cleanup help try start stop begin end close open new old"},
    ClassRow{
        praise,
        "successful successfully success correct correctly clean good great excellent perfect perfectly properly proper "
        "fine ok okay done ready complete completed completely full fully thorough thoroughly robust efficient "
        "efficiently reliable reliably smooth smoothly expected desired intended required appropriate appropriately "
        "comprehensive extensive solid stable quality best high carefully careful everything anything nothing "
        "something function functional functionality finished implemented working works worked meets met satisfied "
        "satisfy satisfies accordingly production valid validated verified confirmed sure guaranteed guarantee "
        "entire entirely whole overall various several multiple important necessary needed good nice lgtm yes "
        "pass passes passed passing happy green final finally total totally really absolutely indeed very simply "
        "standard practice practices specification specifications requirement requirements criteria acceptance goal "
        "goals objective objectives solution result results outcome stakeholder stakeholders team project"},
    ClassRow{
        generic_noun,
        "module service api system component function class method page endpoint handler manager controller client "
        "server app application data file files code library package interface logic flow process processing "
        "management validation error errors support object value type unit integration user users web backend frontend "
        "engine tool utility helper layer model view views option options setting settings configuration config input "
        "output list item default string number name field format version part section step status state info "
        "information message response request result feature thing way case cases scenario scenarios behaviour behavior "
        "work change changes fix development developer developers software program script structure design approach "
        "operation operations example issue parser processor wrapper base core main common general basic simple "
        "project repo repository branch implementation environment product platform infrastructure tests test "
        "log logs line lines report evidence documentation release document public private internal external "
        "variable variables argument arguments parameter parameters attribute attributes property properties element "
        "elements member members exception exceptions traceback index instance printed generated contains causes "
        "jobs notification notifications sources crate mode tree working source kind side way part set unknown "
        "messages true false tee warning warnings dependency dependencies certain returns return incorrect wrong invalid missing fails failing raises throws calling called call calls"},
    ClassRow{
        test_word,
        "test tests testing tested suite suites unittest unittests pytest ctest gtest coverage spec specs regression "
        "assertion assertions pass passes passed passing fail failed failing failure failures"},
    ClassRow{
        observation,
        "found measured approved rejected returned responded observed noted showed shows displayed clicked raised agreed "
        "decided requested asked suggested commented compared reproduced traced logged printed rendered deployed merged "
        "rolled restarted reached dropped fell rose increased decreased reduced discussed reviewed inspected walked "
        "read saw recorded counted listed exported opened loaded selected typed pressed scrolled redirected connected "
        "accepted refused concluded unchanged reformatted left objected proposed questioned profiled monitored watched confirmed verified checked"},
    ClassRow{deed,
             "replaced renamed added removed moved changed created deleted inserted updated migrated upgraded closed "
             "refactored implemented improved fixed wrote introduced extended rewrote simplified cleaned resolved"},
    ClassRow{slot_word, "insert paste your here replace fill enter describe provide put goes"},
    ClassRow{future,
             "will shall later soon tomorrow pending upcoming planned eventually scheduled going forthcoming await "
             "awaiting next"},
    ClassRow{
        hedge,
        "probably presumably should likely assume assuming assumed believe think guess hopefully maybe perhaps seems "
        "seem might untested unverified unchecked"},
    ClassRow{
        pseudo_latin,
        "lorem ipsum dolor sit amet consectetur adipiscing elit sed eiusmod tempor incididunt ut labore et dolore magna "
        "aliqua enim minim veniam quis nostrud exercitation ullamco laboris nisi aliquip ex ea commodo consequat duis "
        "aute irure reprehenderit voluptate velit esse cillum fugiat nulla pariatur excepteur sint occaecat cupidatat "
        "proident sunt culpa officia deserunt mollit anim est laborum foo bar baz foobar qux"},
    ClassRow{blank, "todo tbd tba tbc fixme xxx wip placeholder changeme replaceme yyyy tktk"},
    ClassRow{soft_blank, "none null nil na nan unknown unspecified undefined empty pending undecided later"},
    ClassRow{result_name,
             "result results output evidence status outcome coverage passed failed summary log logs report proof "
             "verification validation review reviewer tests test findings details description screenshot notes steps"},
    ClassRow{
        count_noun,
        "test tests passed passing passes failed failing failures failure errors error skipped skip warnings warning pending "
        "ignored assertions assertion checks files file lines line items requests request rows records users cases "
        "suites examples specs modules packages functions methods targets steps commits events bytes kb mb gb kib mib "
        "gib ms us ns s sec secs second seconds min mins minute minutes h hour hours day days px percent times "
        "iterations runs issues findings comments pods replicas nodes instances workers threads connections queries "
        "tables columns pages endpoints reviewers approvals deselected xfailed xpassed total succeeded successes ok "
        "violations vulnerabilities scenarios actions jobs objects images steps retries attempts million thousand"},
    ClassRow{review_word,
             "review reviews reviewed reviewer reviewers approve approved approval approver approvals feedback "
             "comment comments commented lgtm signoff inspect inspected audit"},
    ClassRow{deploy_word,
             "deploy deployed deployment deploying release released rollout rollback helm kubectl pod pods"},
    ClassRow{
        design_word,
        "design designed architecture decide decision decided choose evaluate evaluation compare comparison research "
        "investigate investigation analyse analyze analysis explain postmortem survey interview estimate benchmark adr rfc "
        "threat plan proposal"},
    ClassRow{document_word, "document documented documentation docs readme guide manual changelog docstring"},
    ClassRow{test_object,
             "test tests testcase testcases assertion assertions assert asserts expectation expectations "
             "threshold thresholds tolerance tolerances checks suite spec specs"},
    ClassRow{weakening,
             "removed deleted disabled skipped commented relaxed loosened weakened bypassed xfailed dropped lowered "
             "muted silenced excluded ignored raised widened stubbed removing deleting disabling skipping relaxing "
             "loosening bypassing lowering hardcoded"},
    ClassRow{runner_name,
             "pytest unittest nosetests tox nox ctest gtest jest mocha vitest ava cargo rspec phpunit junit "
             "gradle maven mvn npm yarn pnpm karma cypress playwright catch bats nextest testng ginkgo"},
};

struct Synonyms {
  std::string_view concept_name;  // a stem
  std::string_view stems;
};

constexpr std::array synonyms{
    Synonyms{"databas", "db database sql postgres postgresql mysql sqlite"},
    Synonyms{"login", "signin logon"},
    Synonyms{"perform", "latenc speed fast slow throughput p95 p99 benchmark"},
    Synonyms{"delet", "remov remove delete deletion removal"},
    Synonyms{"document", "docs doc readme documentation"},
    Synonyms{"deploy", "rollout deployment release"},
    Synonyms{"javascript", "js"},
    Synonyms{"config", "configur configuration cfg"},
    Synonyms{"repositor", "repo"},
    Synonyms{"email", "mail smtp"},
    Synonyms{"review", "reviewer approv approve approval"},
    Synonyms{"authent", "authn"},
    Synonyms{"kubernete", "k8s"},
};

// Longest first; the rest must have four letters, so that "thing" and "red" stay whole.
constexpr std::array<std::string_view, 26> suffixes{
    "izations", "ization", "ations", "ation", "ators", "ator", "ments", "ment", "ingly", "ings", "ing", "ities", "ity",
    "ances",    "ance",    "ions",   "ion",   "ates",  "ated", "ate",   "ers",  "ies",   "ied",  "ed",  "es",    "ly"};
constexpr std::size_t stem_bytes_min = 4;

template <typename Put>
void each_listed(std::string_view words, Put&& put) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (end > 0) put(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
}

const WordTable& class_table() {
  static const WordTable table = [] {
    std::unordered_map<std::uint64_t, std::uint32_t> classes;
    for (const ClassRow& row : class_rows) {
      each_listed(row.words, [&](std::string_view word) { classes[hash_of(word)] |= row.classes; });
    }
    WordTable made;
    for (const auto& [hash, of] : classes) made.insert(hash, of);
    return made;
  }();
  return table;
}

// Maps the hash of a stem to the index of its row.
const WordTable& concept_table() {
  static const WordTable table = [] {
    WordTable made;
    for (std::size_t i = 0; i < synonyms.size(); ++i) {
      each_listed(synonyms[i].stems,
                  [&](std::string_view word) { made.insert(hash_of(word), static_cast<std::uint32_t>(i)); });
    }
    return made;
  }();
  return table;
}

}  // namespace

const std::uint64_t hash_seed = [] {
  std::random_device random;
  return (static_cast<std::uint64_t>(random()) << 32) | random();
}();

std::uint32_t classes_of(std::string_view lower_word) {
  const std::uint32_t* found = class_table().find(hash_of(lower_word));
  return found == nullptr ? 0 : *found;
}

std::string_view stem_of(std::string_view word) {
  constexpr auto ends_suffix = [] {
    std::array<bool, 256> table{};
    for (const std::string_view suffix : suffixes) table[static_cast<unsigned char>(suffix.back())] = true;
    return table;
  }();
  const bool may_end = !word.empty() && ends_suffix[static_cast<unsigned char>(word.back())];
  for (const std::string_view suffix : suffixes) {
    if (!may_end || word.size() < stem_bytes_min + 2) break;  // the shortest suffix has two letters
    if (word.size() < suffix.size() + stem_bytes_min || word.back() != suffix.back()) continue;
    if (word.ends_with(suffix)) {
      word.remove_suffix(suffix.size());
      break;
    }
  }
  const std::size_t size = word.size();
  if (size > 3 && word.ends_with('s') && !word.ends_with("ss") && !word.ends_with("us") && !word.ends_with("is")) {
    word.remove_suffix(1);
  }
  if (word.size() > stem_bytes_min && (word.ends_with('e') || word.ends_with('y'))) word.remove_suffix(1);
  // "stopped" and "stop", "planning" and "plan"
  if (word.size() > 3 && word.size() < size + 1 && word[word.size() - 1] == word[word.size() - 2] &&
      std::string_view("bdgmnprt").find(word.back()) != std::string_view::npos) {
    word.remove_suffix(1);
  }
  return word;
}

std::string_view concept_of(std::string_view stem) {
  const std::uint32_t* found = concept_table().find(hash_of(stem));
  return found == nullptr ? stem : synonyms[*found].concept_name;
}

std::string lowered(std::string_view text) {
  std::string made(text);
  std::transform(made.begin(), made.end(), made.begin(), lower);
  return made;
}

// At most half of the slots are used, and a text of 16 KiB has about 500 distinct words.
WordTable::WordTable(std::size_t text_bytes) : slots_(std::bit_ceil(text_bytes / 20 + 64)) {}

void WordTable::grow() {
  const std::vector<Slot> before = std::move(slots_);
  slots_.assign(before.empty() ? 128 : before.size() * 2, Slot{});
  for (const Slot& slot : before) {
    if (slot.hash != 0) slots_[place_of(slot.hash)] = slot;
  }
}

}  // namespace muniment::evidence::completion
