// Serializes values for the channels between the daemon and its children. Both ends are the same program on one
// machine, so numbers have the machine's format; but neither end trusts the other, because a hostile document may
// control a child.
//
// A struct is described once (messages.hpp) by its members in order, which serves both directions:
//   template <typename Archive, Of<Facts> T> void members(Archive& archive, T& facts) { archive(facts.labels, …); }
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace muniment::retrieval {

template <typename T, typename U>
concept Of = std::same_as<std::remove_const_t<T>, U>;

template <typename T>
concept WireNumber = std::integral<T> && !std::same_as<T, bool>;

// The last value of each enumeration that is sent.
constexpr Errc last_of(Errc) { return Errc::system_error; }

class WireWriter {
 public:
  template <typename... Values>
  void operator()(const Values&... values) {
    (put(values), ...);
  }
  std::string take() && { return std::move(bytes_); }

 private:
  template <WireNumber T>
  void put(T value) {
    raw(&value, sizeof value);
  }
  void put(double value) { raw(&value, sizeof value); }
  void put(bool value) { put(static_cast<std::uint8_t>(value ? 1 : 0)); }
  void put(std::string_view text) {
    put(static_cast<std::uint32_t>(text.size()));
    bytes_.append(text);
  }
  void put(const std::string& text) { put(std::string_view(text)); }
  template <typename T>
  void put(const std::vector<T>& items) {
    put(static_cast<std::uint32_t>(items.size()));
    for (const T& item : items) put(item);
  }
  template <typename T>
  void put(const std::optional<T>& item) {
    put(item.has_value());
    if (item) put(*item);
  }
  template <typename A, typename B>
  void put(const std::pair<A, B>& both) {
    (*this)(both.first, both.second);
  }
  template <typename T>
  requires std::is_enum_v<T>
  void put(T value) { put(static_cast<std::uint8_t>(value)); }
  template <typename T>
  requires std::is_class_v<T>
  void put(const T& value) { members(*this, value); }
  void raw(const void* from, std::size_t size) { bytes_.append(static_cast<const char*>(from), size); }

  std::string bytes_;
};

// Reads what a WireWriter wrote. After the first fault it reads nothing more, and `end` reports it. Accepts exactly the
// bytes that a WireWriter would write.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : left_(bytes) {}
  template <typename... Values>
  void operator()(Values&... values) {
    (get(values), ...);
  }

  // Errors: corrupt unless all bytes were read without a fault.
  Status end() const {
    if (wrong_ || !left_.empty()) return Error(Errc::corrupt, "a message is malformed");
    return success();
  }

 private:
  template <WireNumber T>
  void get(T& value) {
    raw(&value, sizeof value);
  }
  void get(double& value) {
    raw(&value, sizeof value);
    if (!std::isfinite(value)) value = 0, wrong_ = true;
  }
  void get(bool& value) {
    std::uint8_t byte = 0;
    get(byte);
    value = byte == 1;
    wrong_ = wrong_ || byte > 1;
  }
  void get(std::string& text) {
    std::uint32_t size = 0;
    get(size);
    if (size > left_.size()) wrong_ = true;
    if (wrong_) return;
    text.assign(left_.substr(0, size));
    left_.remove_prefix(size);
  }
  // Memory is not reserved by the count: every item takes bytes, so memory is bounded by the size of the message.
  template <typename T>
  void get(std::vector<T>& items) {
    std::uint32_t count = 0;
    get(count);
    for (std::uint32_t i = 0; i < count && !wrong_; ++i) get(items.emplace_back());
  }
  template <typename T>
  void get(std::optional<T>& item) {
    bool present = false;
    get(present);
    if (present && !wrong_) get(item.emplace());
  }
  template <typename A, typename B>
  void get(std::pair<A, B>& both) {
    (*this)(both.first, both.second);
  }
  template <typename T>
  requires std::is_enum_v<T>
  void get(T& value) {
    std::uint8_t byte = 0;
    get(byte);
    if (byte > static_cast<std::uint8_t>(last_of(T{}))) wrong_ = true;
    if (!wrong_) value = static_cast<T>(byte);
  }
  template <typename T>
  requires std::is_class_v<T>
  void get(T& value) { members(*this, value); }
  void raw(void* to, std::size_t size) {
    if (size > left_.size()) wrong_ = true;
    if (wrong_) return;
    std::memcpy(to, left_.data(), size);
    left_.remove_prefix(size);
  }

  std::string_view left_;
  bool wrong_ = false;
};

template <typename T>
std::string to_wire(const T& value) {
  WireWriter writer;
  writer(value);
  return std::move(writer).take();
}

template <typename T>
Result<T> from_wire(std::string_view bytes) {
  WireReader reader(bytes);
  T value;
  reader(value);
  RETURN_IF_ERROR(reader.end());
  return value;
}

}  // namespace muniment::retrieval
