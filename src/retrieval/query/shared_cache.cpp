// Stores answers in Redis and verifies them when they are read.
#include "retrieval/query/shared_cache.hpp"

#include <hiredis/hiredis.h>
#include <sys/time.h>

#include <charconv>
#include <utility>

#include "base/crypto/hmac.hpp"
#include "base/files/file.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"

namespace muniment::retrieval {
namespace {

constexpr std::size_t secret_bytes = 32;
constexpr std::size_t password_bytes_max = 4'096;
constexpr std::size_t links_kept_max = 8;
constexpr std::size_t answer_bytes_max = limits::redis_value_bytes_max + 4'096;

struct FreeReply {
  void operator()(void* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;

timeval patience() { return {limits::redis_ms_default / 1'000, (limits::redis_ms_default % 1'000) * 1'000}; }

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

Result<std::string> read_or_make_secret(const std::string& path) {
  auto known = read_file(path, secret_bytes);
  if (known && known->size() == secret_bytes) return *std::move(known);
  if (known)
    return Error(Errc::invalid_argument, path + " is not the cache's key file: it has " +
                                             std::to_string(known->size()) +
                                             " bytes. Remove it; the daemon creates a new one.");
  if (known.error().code != Errc::not_found) return std::move(known).error();
  std::string secret(secret_bytes, '\0');
  random_bytes(reinterpret_cast<std::uint8_t*>(secret.data()), secret.size());
  RETURN_IF_ERROR(write_file_durably(path, secret));
  return secret;
}

}  // namespace

// One connection: commands in sequence, each with a time limit.
class SharedCache::Link {
 public:
  // Returns the error as text in `why`.
  static std::unique_ptr<Link> open(const std::string& address, const std::string& password, std::string& why) {
    const std::size_t colon = address.rfind(':');
    const timeval time = patience();
    int port = 0;
    if (colon != std::string::npos) std::from_chars(address.data() + colon + 1, address.data() + address.size(), port);
    redisContext* context = address.starts_with('/')
                                ? redisConnectUnixWithTimeout(address.c_str(), time)
                                : redisConnectWithTimeout(address.substr(0, colon).c_str(), port, time);
    auto link = std::unique_ptr<Link>(new Link(context));
    if (context == nullptr || context->err != 0 || redisSetTimeout(context, time) != REDIS_OK) {
      why = context == nullptr ? "out of memory" : context->errstr;
      return nullptr;
    }
    if (!password.empty() && !link->ask({"AUTH", password}, why)) return nullptr;
    return link;
  }
  ~Link() { redisFree(context_); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Returns nullptr if the link cannot be used any more; `why` has the reason.
  Reply ask(std::initializer_list<std::string_view> words, std::string& why) {
    std::vector<const char*> texts;
    std::vector<std::size_t> sizes;
    for (const std::string_view word : words) {
      texts.push_back(word.data());
      sizes.push_back(word.size());
    }
    redisAppendCommandArgv(context_, static_cast<int>(texts.size()), texts.data(), sizes.data());
    Reply reply = receive(why);
    if (reply && reply->type == REDIS_REPLY_ERROR) {
      why.assign(reply->str, reply->len);
      return nullptr;
    }
    return reply;
  }

 private:
  explicit Link(redisContext* context) : context_(context) {}

  // Receives within the limits of time and size, whatever the server sends.
  Reply receive(std::string& why) {
    const Monotonic deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(limits::redis_ms_default);
    int sent = 0;
    while (sent == 0 && redisBufferWrite(context_, &sent) == REDIS_OK) {
    }
    void* reply = nullptr;
    while (context_->err == 0 && redisGetReplyFromReader(context_, &reply) == REDIS_OK && reply == nullptr) {
      const bool late = std::chrono::steady_clock::now() > deadline;
      if (late || context_->reader->len > answer_bytes_max) {
        why = late ? "no answer in time" : "an answer exceeds the size of stored entries";
        return nullptr;
      }
      redisBufferRead(context_);
    }
    if (reply == nullptr) why = context_->errstr;
    return Reply(static_cast<redisReply*>(reply));
  }

  redisContext* const context_;
};

Result<std::unique_ptr<SharedCache>> SharedCache::open(SharedCacheOptions options) {
  ASSIGN_OR_RETURN(std::string secret, read_or_make_secret(options.secret_file));
  std::string password;
  if (!options.password_file.empty()) {
    ASSIGN_OR_RETURN(password, read_file(options.password_file, password_bytes_max));
    password = trimmed(std::move(password));
  }
  return std::unique_ptr<SharedCache>(new SharedCache(std::move(options), std::move(secret), std::move(password)));
}

SharedCache::SharedCache(SharedCacheOptions options, std::string secret, std::string password)
    : options_(std::move(options)), secret_(std::move(secret)), password_(std::move(password)) {}

SharedCache::~SharedCache() = default;

std::string SharedCache::prefix() const {
  return "muniment:" + to_hex(hmac_sha256(secret_, {"prefix"})).substr(0, 16) + ":";
}

// Without the secret, names and values can neither be forged nor moved to another query; a name reveals nothing about
// the query.
std::string SharedCache::name_of(std::string_view key) const {
  return prefix() + to_hex(hmac_sha256(secret_, {"name\n", options_.scope, "\n", key}));
}

std::string SharedCache::mac_of(std::string_view key, std::string_view value) const {
  const std::string size = std::to_string(key.size());
  return std::string(view(hmac_sha256(secret_, {"entry\n", options_.scope, "\n", size, "\n", key, value})));
}

std::optional<std::string> SharedCache::find(std::string_view key) {
  auto link = take();
  if (!link) return std::nullopt;
  std::string why;
  const Reply reply = link->ask({"GET", name_of(key)}, why);
  if (!reply) {
    failed(why);
    return std::nullopt;
  }
  give_back(std::move(link));
  if (reply->type != REDIS_REPLY_STRING) {
    ++misses_;
    return std::nullopt;
  }
  const std::string_view entry(reply->str, reply->len);
  const std::string_view mac = entry.substr(0, sizeof(Hash)),
                         value = entry.substr(std::min(entry.size(), sizeof(Hash)));
  if (!equal_hashes(mac, mac_of(key, value))) {
    ++refused_;
    log_warning("an entry of the shared cache was not written by this daemon", {});
    return std::nullopt;
  }
  ++hits_;
  return std::string(value);
}

void SharedCache::put(std::string_view key, std::string_view value) {
  if (value.size() > limits::redis_value_bytes_max) return;
  auto link = take();
  if (!link) return;
  const std::string entry = mac_of(key, value).append(value);
  std::string why;
  if (!link->ask({"SET", name_of(key), entry, "EX", std::to_string(options_.seconds)}, why)) return failed(why);
  give_back(std::move(link));
}

void SharedCache::forget(std::string_view key) {
  ++refused_;
  auto link = take();
  if (!link) return;
  std::string why;
  if (!link->ask({"DEL", name_of(key)}, why)) return failed(why);
  give_back(std::move(link));
}

void SharedCache::forget_all() {
  auto link = take();
  std::string cursor = "0", why;
  const std::string pattern = prefix() + "*";
  while (link) {
    const Reply page = link->ask({"SCAN", cursor, "MATCH", pattern, "COUNT", "1000"}, why);
    const bool sound = page && page->type == REDIS_REPLY_ARRAY && page->elements == 2 &&
                       page->element[0]->type == REDIS_REPLY_STRING && page->element[1]->type == REDIS_REPLY_ARRAY;
    if (!sound) break;
    cursor.assign(page->element[0]->str, page->element[0]->len);
    for (std::size_t i = 0; i < page->element[1]->elements && why.empty(); ++i) {
      const redisReply* name = page->element[1]->element[i];
      if (name->type == REDIS_REPLY_STRING) link->ask({"DEL", std::string_view(name->str, name->len)}, why);
    }
    if (!why.empty()) break;
    if (cursor == "0") return give_back(std::move(link));
  }
  if (!why.empty()) failed(why);
  log_warning("the shared cache could not be emptied after an erasure: flush it, or wait until its entries end",
              {{"error", why}});
}

SharedCache::Counts SharedCache::counts() const { return {hits_, misses_, refused_, failures_}; }

std::string SharedCache::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

// Returns nullptr if the server is unreachable, or was a moment ago.
std::unique_ptr<SharedCache::Link> SharedCache::take() {
  {
    const std::lock_guard lock(mutex_);
    if (std::chrono::steady_clock::now() < closed_until_) return nullptr;
    if (!idle_.empty()) {
      auto link = std::move(idle_.back());
      idle_.pop_back();
      return link;
    }
  }
  std::string why;
  auto link = Link::open(options_.address, password_, why);
  if (!link) failed(why);
  return link;
}

void SharedCache::give_back(std::unique_ptr<Link> link) {
  const std::lock_guard lock(mutex_);
  if (!problem_.empty()) log_info("the shared cache is available again");
  failures_in_a_row_ = 0;
  problem_.clear();
  if (idle_.size() < links_kept_max) idle_.push_back(std::move(link));
}

// Drops all links of a server that failed, instead of trying each.
void SharedCache::failed(const std::string& why) {
  ++failures_;
  const std::lock_guard lock(mutex_);
  idle_.clear();
  if (++failures_in_a_row_ < limits::redis_failures_max) return;
  closed_until_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(limits::redis_pause_ms);
  if (problem_.empty()) log_warning("the shared cache is not used for a while", {{"error", why}});
  problem_ = why;
}

}  // namespace muniment::retrieval
