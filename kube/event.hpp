#pragma once
// One frame of a watch and one page of a list, in either encoding, cut into what a store needs. Views point into the
// bytes handed in, or live until the next call.

#include <functional>
#include <string_view>

#include "kube/error.hpp"
#include "kube/request.hpp"

namespace kube {

enum class event_type { added, modified, deleted, bookmark, error, unknown };

struct event {
  event_type type = event_type::unknown;
  std::string_view kind;              ///< of the object; empty when the bytes do not say
  std::string_view object;            ///< into the frame; for protobuf the message without its envelope
  std::string_view resource_version;  ///< of the object; empty for an error
  bool initial_events_end = false;    ///< the bookmark that ends a WatchList's synthetic events
};

/// errc::decode: not a watch event, or its object's metadata cannot be read.
result<event> read_event(std::string_view frame, encoding format);

struct list_page_info {
  std::string_view resource_version;
  std::string_view next;  ///< continue token, empty on the last page
};

/// Calls `each` with the bytes of every item once the whole page was found readable; on errc::decode it was never
/// called.
result<list_page_info> read_list(std::string_view body, encoding format,
                                 const std::function<void(std::string_view item)>& each);

}  // namespace kube
