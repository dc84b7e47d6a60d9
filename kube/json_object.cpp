#include "kube/json_object.hpp"

#include <boost/container/small_vector.hpp>
#include <charconv>

#include "kube/rfc3339.hpp"

namespace kube::on_demand {
namespace {

using entries = boost::container::small_vector<packed_map::entry, 32>;

packed_map read_map(value object, const keep& keep) {
  entries held;
  each_member(object, [&](std::string_view key, value text) {
    if (keep.wants(key)) held.emplace_back(key, text_or(text));
  });
  return packed_map::of(std::span(held.data(), held.size()));
}

owner_ref read_owner(value object) {
  owner_ref made;
  each_member(object, [&](std::string_view key, value field) {
    if (key == "kind") made.kind = text_or(field);
    if (key == "name") made.name = text_or(field);
    if (key == "uid") made.id = uid::parse(text_or(field));
    if (key == "controller") made.controller = flag_or(field, false);
  });
  return made;
}

}  // namespace

std::vector<std::string_view>& open_members() {
  thread_local std::vector<std::string_view> out;
  return out;
}

simdjson::ondemand::document document::open(std::string_view bytes) {
  buffer_.reserve(bytes.size() + simdjson::SIMDJSON_PADDING);
  buffer_ = bytes;
  opened_ = bytes;
  buffer_.resize(bytes.size() + simdjson::SIMDJSON_PADDING, ' ');
  return parser_.iterate(simdjson::padded_string_view(buffer_.data(), bytes.size(), buffer_.size()));
}

std::string_view document::original(std::string_view inside) const {
  return opened_.substr(static_cast<std::size_t>(inside.data() - buffer_.data()), inside.size());
}

std::string_view text_or(value value, std::string_view other) {
  std::string_view text;
  return value.get_string().get(text) == simdjson::SUCCESS ? text : other;
}

std::int64_t number_or(value value, std::int64_t other) {
  std::int64_t number = 0;
  return value.get_int64().get(number) == simdjson::SUCCESS ? number : other;
}

bool flag_or(value value, bool other) {
  bool flag = false;
  return value.get_bool().get(flag) == simdjson::SUCCESS ? flag : other;
}

std::int64_t seconds_of(std::string_view time) { return parse_rfc3339(time).value_or(0); }

void read_metadata(value metadata, object& object, const keep& labels, const keep& annotations) {
  each_member(metadata, [&](std::string_view key, value field) {
    if (key == "name") {
      object.key.name = text_or(field);
    } else if (key == "namespace") {
      object.key.ns = text_or(field);
    } else if (key == "uid") {
      object.id = uid::parse(text_or(field));
    } else if (key == "resourceVersion") {
      const std::string_view version = text_or(field);
      std::from_chars(version.data(), version.data() + version.size(), object.resource_version);
    } else if (key == "generation") {
      object.generation = number_or(field, 0);
    } else if (key == "creationTimestamp") {
      object.created = seconds_of(text_or(field));
    } else if (key == "deletionTimestamp") {
      object.deleting = !text_or(field).empty();
    } else if (key == "labels") {
      object.labels = read_map(field, labels);
    } else if (key == "annotations") {
      object.annotations = read_map(field, annotations);
    } else if (key == "ownerReferences") {
      each_item(field, [&](value owner) { object.owners.push_back(read_owner(owner)); });
    }
  });
}

result<void> read_object(std::string_view kind, std::string_view bytes, object& object, const keep& annotations,
                         const field_reader& field) {
  static thread_local document reused;
  const auto failed = [&](const std::string& reason) {
    const auto name = object.key.name.empty() ? std::string() : " " + object.key.to_string();
    return std::unexpected(error{errc::decode, 0, std::string(kind) + name + ": " + reason, {}});
  };
  open_members().clear();
  try {
    auto root = reused.open(bytes);
    for (auto member : root.get_object()) {
      const std::string_view key = member.unescaped_key();
      open_members().push_back(key);
      if (key == "metadata") {
        read_metadata(member.value(), object, keep_all, annotations);
      } else {
        field(key, member.value());
      }
      open_members().pop_back();
    }
  } catch (const simdjson::simdjson_error& problem) {
    std::string path;
    for (const auto key : open_members()) path.append(path.empty() ? "" : ".").append(key);
    if (path.empty()) path = "it";
    return failed(problem.error() == simdjson::INCORRECT_TYPE ? path + " is of another form than the type has"
                                                              : path + " is no JSON: " + problem.what());
  }
  if (object.key.name.empty()) return failed("no name");
  return {};
}

}  // namespace kube::on_demand
