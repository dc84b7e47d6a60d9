#pragma once
// Cuts a watch stream into frames: a JSON document a line, or a protobuf message behind its length (4 bytes,
// big-endian). Bytes come in chunks of any size; a frame that lies in one chunk is handed on without a copy, another is
// put together in one reused buffer. What is left when the stream ends was never whole and is forgotten.

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "kube/error.hpp"
#include "kube/request.hpp"

namespace kube {

class framer {
 public:
  /// A 1 MiB ConfigMap is up to 6.3 MB of JSON; anything beyond `limit` bytes is not a Kubernetes object.
  static constexpr std::size_t default_limit = 32u << 20;

  explicit framer(encoding format, std::size_t limit = default_limit) : format_(format), limit_(limit) {}

  /// Calls `each` for every frame completed by `chunk`; the view is valid during the call. `each` returns false to
  /// stop: the rest of the chunk is dropped and the framer is empty again. errc::decode: a frame is larger than the
  /// limit; the stream is useless then.
  result<void> feed(std::string_view chunk, const std::function<bool(std::string_view)>& each);

  /// A new stream begins.
  void reset();
  /// Bytes of the frame that is not whole yet, its length prefix included.
  std::size_t pending() const { return buffer_.size(); }

 private:
  /// Moves bytes from `chunk` to the buffer until the first frame is whole. Empty: it is not, and the chunk is used up.
  result<std::string_view> complete(std::string_view& chunk);
  /// Size of the frame at the start of `bytes` with its prefix or line end; npos while it is not whole.
  result<std::size_t> frame_size(std::string_view bytes, std::size_t scan_from) const;
  bool hand_on(std::string_view whole, const std::function<bool(std::string_view)>& each) const;

  encoding format_;
  std::size_t limit_;
  std::string buffer_;
};

}  // namespace kube
