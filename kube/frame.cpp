#include "kube/frame.hpp"

#include <algorithm>
#include <cstdint>

namespace kube {
namespace {

constexpr std::size_t prefix_size = 4;
constexpr std::size_t kept_capacity = 1u << 20;  // a rare 6 MB line must not hold its memory for ever

std::size_t length_of(std::string_view bytes) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < prefix_size; ++i) length = (length << 8) | static_cast<unsigned char>(bytes[i]);
  return length;
}

}  // namespace

void framer::reset() {
  buffer_.clear();
  if (buffer_.capacity() > kept_capacity) buffer_.shrink_to_fit();
}

result<std::size_t> framer::frame_size(std::string_view bytes, std::size_t scan_from) const {
  const auto too_large = [this] {
    return std::unexpected(error{errc::decode, 0, "watch frame larger than " + std::to_string(limit_) + " bytes", {}});
  };
  if (format_ == encoding::json) {
    const std::size_t line_end = bytes.find('\n', scan_from);
    if ((line_end == bytes.npos ? bytes.size() : line_end) > limit_) return too_large();
    return line_end == bytes.npos ? bytes.npos : line_end + 1;
  }
  if (bytes.size() < prefix_size) return bytes.npos;
  const std::size_t length = length_of(bytes);
  if (length > limit_) return too_large();
  return bytes.size() - prefix_size < length ? bytes.npos : prefix_size + length;
}

bool framer::hand_on(std::string_view whole, const std::function<bool(std::string_view)>& each) const {
  if (format_ == encoding::protobuf) return each(whole.substr(prefix_size));
  const std::size_t last = whole.find_last_not_of(" \t\r\n");
  return last == whole.npos || each(whole.substr(0, last + 1));  // blank lines are keep-alive, not frames
}

result<std::string_view> framer::complete(std::string_view& chunk) {
  const std::size_t before = buffer_.size();
  // A prefix first: only then is it known how much of the chunk belongs to this frame.
  if (format_ == encoding::protobuf && before < prefix_size) {
    const std::size_t missing = std::min(prefix_size - before, chunk.size());
    buffer_.append(chunk.substr(0, missing));
    chunk.remove_prefix(missing);
    if (buffer_.size() < prefix_size) return std::string_view();
  }
  std::size_t wanted = chunk.size();
  if (format_ == encoding::protobuf) {
    const auto size = frame_size(buffer_, 0);  // npos but for an empty frame; refuses a length over the limit
    if (!size) return std::unexpected(size.error());
    wanted = std::min(wanted, prefix_size + length_of(buffer_) - buffer_.size());
  } else if (const std::size_t line_end = chunk.find('\n'); line_end != chunk.npos) {
    wanted = line_end + 1;
  }
  buffer_.append(chunk.substr(0, wanted));
  chunk.remove_prefix(wanted);
  const auto size = frame_size(buffer_, before);
  if (!size) return std::unexpected(size.error());
  return *size == std::string_view::npos ? std::string_view() : std::string_view(buffer_);
}

result<void> framer::feed(std::string_view chunk, const std::function<bool(std::string_view)>& each) {
  while (!chunk.empty()) {
    std::string_view whole;
    if (buffer_.empty()) {
      const auto size = frame_size(chunk, 0);
      if (!size) return std::unexpected(size.error());
      if (*size == chunk.npos) {
        buffer_ = chunk;
        return {};
      }
      whole = chunk.substr(0, *size);
      chunk.remove_prefix(*size);
      if (!hand_on(whole, each)) return {};
      continue;
    }
    const auto completed = complete(chunk);
    if (!completed) {
      reset();
      return std::unexpected(completed.error());
    }
    if (completed->empty()) return {};
    const bool go_on = hand_on(*completed, each);
    reset();
    if (!go_on) return {};
  }
  return {};
}

}  // namespace kube
