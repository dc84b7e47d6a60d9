#include "kube/event.hpp"

#include <vector>

#include "kube/json_object.hpp"
#include "kube/wire.hpp"

namespace kube {
namespace {

event_type type_of(std::string_view name) {
  if (name == "ADDED") return event_type::added;
  if (name == "MODIFIED") return event_type::modified;
  if (name == "DELETED") return event_type::deleted;
  if (name == "BOOKMARK") return event_type::bookmark;
  if (name == "ERROR") return event_type::error;
  return event_type::unknown;
}

std::unexpected<error> malformed(std::string_view subject, std::string_view reason) {
  return std::unexpected(error{errc::decode, 0, std::string(subject) + ": " + std::string(reason), {}});
}

std::string_view fault_in_words(const simdjson::simdjson_error& problem) {
  return problem.error() == simdjson::INCORRECT_TYPE ? "a field of it is of another type than Kubernetes has there"
                                                     : "it is no whole JSON";
}

result<event> read_protobuf_event(std::string_view frame) {
  const auto raw = wire::read_event(frame);
  if (!raw) return std::unexpected(raw.error());
  event made{type_of(raw->type), raw->kind, raw->object, {}, false};
  if (made.type == event_type::error) return made;
  const auto stamp = wire::read_stamp(raw->object);
  if (!stamp) return std::unexpected(stamp.error());
  made.resource_version = stamp->resource_version;
  made.initial_events_end = stamp->initial_events_end;
  return made;
}

/// Not the parser that projections use: `each` decodes items while these views are alive.
on_demand::document& parser() {
  static thread_local on_demand::document reused;
  return reused;
}

void read_json_stamp(on_demand::value metadata, event& event) {
  on_demand::each_member(metadata, [&](std::string_view key, on_demand::value field) {
    if (key == "resourceVersion") event.resource_version = on_demand::text_or(field);
    if (key == "annotations") {
      on_demand::each_member(field, [&](std::string_view name, on_demand::value text) {
        if (name == "k8s.io/initial-events-end" && on_demand::text_or(text) == "true") event.initial_events_end = true;
      });
    }
  });
}

void read_json_event_object(on_demand::value value, event& event) {
  auto object = value.get_object().value();
  event.object = parser().original(std::string_view(object.raw_json()));
  object.reset().value();
  for (auto member : object) {
    const std::string_view key = member.unescaped_key();
    if (key == "kind") event.kind = on_demand::text_or(member.value());
    if (key == "metadata") read_json_stamp(member.value(), event);
  }
}

result<event> read_json_event(std::string_view frame) try {
  event made;
  bool typed = false;
  auto root = parser().open(frame);
  for (auto member : root.get_object()) {
    const std::string_view key = member.unescaped_key();
    if (key == "type") {
      made.type = type_of(member.value().get_string());
      typed = true;
    } else if (key == "object") {
      read_json_event_object(member.value(), made);
    }
  }
  if (!typed || made.object.empty()) return malformed("watch event", "no type or no object");
  return made;
} catch (const simdjson::simdjson_error& problem) {
  return malformed("watch event", fault_in_words(problem));
}

result<list_page_info> read_json_list(std::string_view body, const std::function<void(std::string_view)>& each) {
  list_page_info made;
  std::vector<std::string_view> items;
  try {
    auto root = parser().open(body);
    for (auto member : root.get_object()) {
      const std::string_view key = member.unescaped_key();
      if (key == "metadata") {
        on_demand::each_member(member.value(), [&](std::string_view name, on_demand::value field) {
          if (name == "resourceVersion") made.resource_version = on_demand::text_or(field);
          if (name == "continue") made.next = on_demand::text_or(field);
        });
      } else if (key == "items") {
        on_demand::each_item(member.value(), [&](on_demand::value item) {
          items.push_back(parser().original(std::string_view(item.get_object().value().raw_json())));
        });
      }
    }
  } catch (const simdjson::simdjson_error& problem) {
    return malformed("list", fault_in_words(problem));
  }
  if (made.resource_version.empty()) return malformed("list", "metadata.resourceVersion is missing");
  for (const auto item : items) each(item);
  return made;
}

}  // namespace

result<event> read_event(std::string_view frame, encoding format) {
  return format == encoding::protobuf ? read_protobuf_event(frame) : read_json_event(frame);
}

result<list_page_info> read_list(std::string_view body, encoding format,
                                 const std::function<void(std::string_view)>& each) {
  if (format == encoding::json) return read_json_list(body, each);
  const auto page = wire::read_list(body, each);
  if (!page) return std::unexpected(page.error());
  return list_page_info{page->resource_version, page->next};
}

}  // namespace kube
