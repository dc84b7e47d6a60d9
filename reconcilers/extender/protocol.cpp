#include "reconcilers/extender/protocol.hpp"

#include <algorithm>

#include "kube/json_object.hpp"
#include "reconcilers/admission/admission_review.hpp"

namespace reconcilers::extender {

struct body_parser::reader {
  /// Throws simdjson::simdjson_error. Copies only where there is no room for simdjson's padding behind the end.
  simdjson::ondemand::document open(const std::string& body) {
    const auto* input = &body;
    if (body.capacity() < body.size() + simdjson::SIMDJSON_PADDING) {
      copy.reserve(body.size() + simdjson::SIMDJSON_PADDING);
      copy = body;
      input = &copy;
    }
    return parser.iterate(simdjson::padded_string_view(input->data(), input->size(), input->capacity()));
  }

  std::string copy;
  simdjson::ondemand::parser parser;
};

namespace {

namespace on_demand = kube::on_demand;
using reviews::append_escaped;

constexpr std::size_t most_pod_bytes = 3u << 20;  // an object of the API is at most 1.5 MiB, and more when escaped

/// metadata of the pod; the rest is read only where it is needed.
void read_pod(on_demand::value pod, kube::object_key& key, kube::uid& uid, std::string_view& text) {
  text = pod.get_object().value().raw_json();
  if (text.size() > most_pod_bytes) throw simdjson::simdjson_error(simdjson::CAPACITY);
  static thread_local on_demand::document second;
  auto root = second.open(text);
  for (auto member : root.get_object()) {
    if (member.unescaped_key().value() != "metadata") continue;
    on_demand::each_member(member.value(), [&](std::string_view name, on_demand::value field) {
      if (name == "name") key.name = on_demand::text_or(field);
      if (name == "namespace") key.ns = on_demand::text_or(field);
      if (name == "uid") uid = kube::uid::parse(on_demand::text_or(field));
    });
    return;
  }
}

std::string_view name_of_node(on_demand::value node) {
  std::string_view out;
  on_demand::each_member(node, [&](std::string_view key, on_demand::value field) {
    if (key != "metadata") return;
    on_demand::each_member(field, [&](std::string_view name, on_demand::value inner) {
      if (name == "name") out = inner.get_string();
    });
  });
  if (out.empty()) throw simdjson::simdjson_error(simdjson::NO_SUCH_FIELD);
  return out;
}

/// A name the API server gives to a pod or a namespace; anything else must not become a part of a path.
bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 253 &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == std::string_view::npos &&
         text.front() != '.' && text.back() != '.';
}
bool is_key(const kube::object_key& key) { return is_name(key.name) && is_name(key.ns); }

template <class Member>
understood<void> read_members(body_parser& parser, const std::string& body, Member member) {
  try {
    auto root = parser.get().open(body);
    for (auto entry : root.get_object()) {
      const std::string_view key = entry.unescaped_key();
      member(key, on_demand::value(entry.value()));
    }
    if (root.current_location().error() != simdjson::OUT_OF_BOUNDS)
      return std::unexpected("there is more after the end of the JSON object");
  } catch (const simdjson::simdjson_error& thrown) {
    return std::unexpected(std::string("not a JSON object of the extender protocol: ") + thrown.what());
  }
  return {};
}

void read_victims(on_demand::value object, std::vector<victims>& out) {
  on_demand::each_member(object, [&](std::string_view node, on_demand::value field) {
    victims victims;
    victims.node = node;
    on_demand::each_member(field, [&](std::string_view key, on_demand::value inner) {
      if (key == "NumPDBViolations") victims.budget_violations = on_demand::number_or(inner, 0);
      if (key != "Pods") return;
      on_demand::each_item(inner, [&](on_demand::value pod) {
        kube::uid uid;
        // MetaPod has UID; a whole pod has metadata.uid.
        on_demand::each_member(pod, [&](std::string_view name, on_demand::value value) {
          if (name == "UID") uid = kube::uid::parse(on_demand::text_or(value));
          if (name == "metadata")
            on_demand::each_member(value, [&](std::string_view field_name, on_demand::value text) {
              if (field_name == "uid") uid = kube::uid::parse(on_demand::text_or(text));
            });
        });
        victims.pods.push_back(uid);
      });
    });
    out.push_back(std::move(victims));
  });
}

void append_text(std::string& output, std::string_view text) {
  output += '"';
  append_escaped(output, text);
  output += '"';
}

void append_failed(std::string& output, std::span<const node_verdict> verdicts, bool unresolvable) {
  output += '{';
  bool first = true;
  for (const auto& verdict : verdicts) {
    if (verdict.reason.empty() || verdict.unresolvable != unresolvable) continue;
    if (!std::exchange(first, false)) output += ',';
    append_text(output, verdict.node);
    output += ":\"";
    output += verdict.reason;
    output += '"';
  }
  output += '}';
}

}  // namespace

body_parser::body_parser() : reader_(std::make_unique<reader>()) {}
body_parser::body_parser(body_parser&& other) noexcept = default;
body_parser& body_parser::operator=(body_parser&& other) noexcept = default;
body_parser::~body_parser() = default;

understood<void> read(body_parser& parser, const std::string& body, filter_args& out) {
  bool pod = false, names = false;
  auto read = read_members(parser, body, [&](std::string_view key, on_demand::value field) {
    if (field.is_null()) return;
    if (key == "Pod") {
      read_pod(field, out.pod, out.uid, out.pod_json);
      pod = true;
    } else if (key == "NodeNames") {
      names = true;
      on_demand::each_item(field, [&](on_demand::value value) { out.nodes.push_back(value.get_string()); });
    } else if (key == "Nodes") {
      out.whole_nodes = true;
      on_demand::each_member(field, [&](std::string_view name, on_demand::value list) {
        if (name == "items" || name == "Items")
          on_demand::each_item(list, [&](on_demand::value value) { out.nodes.push_back(name_of_node(value)); });
      });
    }
  });
  if (!read) return read;
  if (!pod) return std::unexpected("there is no Pod");
  if (out.pod.name.empty() || out.pod.ns.empty() || out.uid.empty())
    return std::unexpected("Pod.metadata has no name, namespace or uid");
  if (!is_key(out.pod)) return std::unexpected("Pod.metadata.name or namespace is no name of an object");
  if (names && out.whole_nodes) return std::unexpected("there are NodeNames and Nodes; one of them is allowed");
  return {};
}

understood<bind_args> read_bind(body_parser& parser, const std::string& body) {
  bind_args out;
  auto read = read_members(parser, body, [&](std::string_view key, on_demand::value field) {
    if (key == "PodName") out.pod.name = on_demand::text_or(field);
    if (key == "PodNamespace") out.pod.ns = on_demand::text_or(field);
    if (key == "PodUID") out.uid = kube::uid::parse(on_demand::text_or(field));
    if (key == "Node") out.node = on_demand::text_or(field);
  });
  if (!read) return std::unexpected(std::move(read.error()));
  if (out.pod.name.empty() || out.pod.ns.empty() || out.uid.empty() || out.node.empty())
    return std::unexpected("PodName, PodNamespace, PodUID and Node are needed");
  if (!is_key(out.pod)) return std::unexpected("PodName or PodNamespace is no name of an object");
  return out;
}

understood<void> read(body_parser& parser, const std::string& body, preempt_args& out) {
  bool pod = false;
  auto read = read_members(parser, body, [&](std::string_view key, on_demand::value field) {
    if (field.is_null()) return;
    if (key == "Pod") {
      read_pod(field, out.pod, out.uid, out.pod_json);
      pod = true;
    } else if (key == "NodeNameToVictims" || key == "NodeNameToMetaVictims") {
      read_victims(field, out.nodes);
    }
  });
  if (!read) return read;
  if (!pod || out.pod.name.empty() || out.uid.empty()) return std::unexpected("there is no Pod with a name and a uid");
  return {};
}

void append_filter_result(std::string& output, std::span<const node_verdict> verdicts, bool whole_nodes) {
  output += whole_nodes ? R"({"Nodes":{"metadata":{},"items":[)" : R"({"Nodes":null,"NodeNames":[)";
  bool first = true;
  for (const auto& verdict : verdicts) {
    if (!verdict.reason.empty()) continue;
    if (!std::exchange(first, false)) output += ',';
    if (whole_nodes) output += R"({"metadata":{"name":)";
    append_text(output, verdict.node);
    if (whole_nodes) output += "}}";
  }
  output += whole_nodes ? R"(]},"NodeNames":null,"FailedNodes":)" : R"(],"FailedNodes":)";
  append_failed(output, verdicts, false);
  output += R"(,"FailedAndUnresolvableNodes":)";
  append_failed(output, verdicts, true);
  output += R"(,"Error":""})";
}

void append_priorities(std::string& output, std::span<const std::string_view> nodes,
                       std::span<const std::uint8_t> scores) {
  output += '[';
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    output += i == 0 ? R"({"Host":)" : R"(,{"Host":)";
    append_text(output, nodes[i]);
    output += R"(,"Score":)";
    output += std::to_string(static_cast<int>(scores[i]));
    output += '}';
  }
  output += ']';
}

std::string bind_result(std::string_view error) {
  std::string out = R"({"Error":)";
  append_text(out, error);
  out += '}';
  return out;
}

std::string preempt_result(std::span<const victims> victimses) {
  std::string out = R"({"NodeNameToMetaVictims":{)";
  for (std::size_t i = 0; i < victimses.size(); ++i) {
    if (i > 0) out += ',';
    append_text(out, victimses[i].node);
    out += R"(:{"Pods":[)";
    for (std::size_t j = 0; j < victimses[i].pods.size(); ++j) {
      out += j == 0 ? R"({"UID":")" : R"(,{"UID":")";
      out += victimses[i].pods[j].to_string();
      out += "\"}";
    }
    out += R"(],"NumPDBViolations":)" + std::to_string(victimses[i].budget_violations) + '}';
  }
  return out + "}}";
}

}  // namespace reconcilers::extender
