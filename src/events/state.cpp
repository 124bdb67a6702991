// Folds events into a state, and checks patches against it.
#include "events/state.hpp"

#include "events/catalogue.hpp"
#include "events/run_state.hpp"

namespace muniment::events {

struct State::Fold : RunState {};

State::State() : fold_(std::make_unique<Fold>()) {}
State::~State() = default;
State::State(State&&) noexcept = default;
State& State::operator=(State&&) noexcept = default;
State::State(const State& other) : fold_(std::make_unique<Fold>(*other.fold_)) {}
State& State::operator=(const State& other) {
  if (this != &other) fold_ = std::make_unique<Fold>(*other.fold_);
  return *this;
}

void State::apply(const Event& event, std::string_view spilled_patch) { fold(*fold_, event, spilled_patch); }

Status State::check_patch(std::string_view body, std::string_view spilled_patch) const {
  ASSIGN_OR_RETURN(const json::Document document, json::parse(body));
  const json::Value root = document.root();
  if (const json::Value expected = root["expected_state_hash"]) {
    const std::string actual = to_hex(state_hash());
    if (expected.string_or("") != actual) {
      return Error(Errc::conflict, "the state's hash is " + actual + " (seq " + std::to_string(seq()) +
                                       "), you expected " + expected.string_or("another") +
                                       ". Rehydrate, and send the patch again.");
    }
  }
  json::Tree working = fold_->working;
  return patch_working(working, root, spilled_patch);
}

std::int64_t State::seq() const { return fold_->seq; }
std::int64_t State::run_seq() const { return fold_->run_seq; }
const json::Tree& State::working() const { return fold_->working; }

std::string State::document() const { return write_document(*fold_); }
Hash State::state_hash() const { return sha256(document()); }

Result<State> State::parse(std::string_view document) {
  ASSIGN_OR_RETURN(RunState read, read_document(document));
  State state;
  static_cast<RunState&>(*state.fold_) = std::move(read);
  return state;
}

std::string spilled_patch_of(const Event& event) {
  if (event.type != "state.patched" || !event.body) return {};
  const std::string& body = *event.body;
  // Most bodies have no reference, which this test detects without parsing (a name may contain escapes).
  if (body.find("\"ref\"") == std::string::npos && body.find('\\') == std::string::npos) return {};
  const auto document = json::parse(body);
  if (!document || document->root()["patch"]) return {};
  return document->root()["ref"]["artifact_id"].string_or("");
}

}  // namespace muniment::events
