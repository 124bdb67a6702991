// Holds the state of the cloud service.
#include "bridge/cloud/cloud.hpp"

#include <chrono>
#include <utility>

#include "base/files/file.hpp"
#include "base/limits.hpp"

namespace muniment::bridge {
namespace {

constexpr const char* system_certificates = "/etc/ssl/certs/ca-certificates.crt";

bool expired(const TakenQuestion& question, Monotonic now) {
  return question.asked + std::chrono::seconds(limits::cloud_question_seconds) <= now;
}

}  // namespace

Cloud::Cloud(CloudSettings from, std::string pem)
    : settings(std::move(from)), ca_pem(std::move(pem)), gate(settings.limits) {}

Result<std::unique_ptr<Cloud>> Cloud::open(CloudSettings settings, const LocalRules& local) {
  std::string pem;
  if (!settings.url.empty()) {
    const std::string path = settings.ca_file.empty() ? system_certificates : settings.ca_file;
    auto read = read_trusted(path, limits::cloud_certificates_bytes_max);
    if (!read) return std::move(read).error().within("cloud_ca: the certificates of cloud_url");
    pem = *std::move(read);
  }
  std::unique_ptr<Cloud> cloud(new Cloud(std::move(settings), std::move(pem)));
  RETURN_IF_ERROR(cloud->sanitiser_.use(local));
  return cloud;
}

std::variant<Question, QuestionRefusal> Cloud::question(std::string_view query, const CorpusFrequency& frequency) {
  const std::lock_guard lock(sanitiser_mutex_);
  return make_question(query, sanitiser_, frequency, settings.private_terms);
}

SafeReply Cloud::safe(std::string reply) {
  const std::lock_guard lock(sanitiser_mutex_);
  return safe_reply(std::move(reply), sanitiser_);
}

bool Cloud::hand_out(const Uuid& call_id, TakenQuestion question) {
  const std::lock_guard lock(taken_mutex_);
  std::erase_if(taken_, [&](const auto& item) { return expired(item.second, question.asked); });
  if (taken_.size() >= limits::cloud_questions_open_max) return false;
  return taken_.emplace(call_id.text(), std::move(question)).second;
}

std::optional<TakenQuestion> Cloud::take_back(const Uuid& call_id, const std::string& actor, Monotonic now) {
  const std::lock_guard lock(taken_mutex_);
  const auto found = taken_.find(call_id.text());
  if (found == taken_.end() || found->second.actor != actor || expired(found->second, now)) return std::nullopt;
  TakenQuestion question = std::move(found->second);
  taken_.erase(found);
  return question;
}

}  // namespace muniment::bridge
