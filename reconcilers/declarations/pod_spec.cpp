#include "reconcilers/declarations/pod_spec.hpp"

#include <algorithm>

#include "kube/quantity_text.hpp"

namespace reconcilers::declarations {
namespace {

namespace on_demand = kube::on_demand;

/// What may still be taken in.
struct room {
  std::size_t containers = read_containers, limits = read_limits, requests = read_limits;
  bool exceeded = false;

  bool take(std::size_t& index) {
    if (index == 0) exceeded = true;
    return index != 0 && index-- != 0;
  }
};

/// Limits count whatever they are of, as the bounds of what is judged do; requests where they are kept.
kube::quantities read_amounts(on_demand::value amounts, room& left, bool limits) {
  kube::quantities out;
  on_demand::each_member(amounts, [&](std::string_view key, on_demand::value field) {
    if (limits && !left.take(left.limits)) return;
    if (!kube::is_extended_resource(key) || (!limits && !left.take(left.requests))) return;
    const bool is_number = field.type() == simdjson::ondemand::json_type::number;
    const std::string_view text = is_number ? field.raw_json_token() : on_demand::text_or(field);
    const auto length = text.find_last_not_of(" \t\r\n") + 1;  // the token of a number has the blanks behind it
    if (const auto amount = kube::parse_quantity(is_number ? text.substr(0, length) : kube::unpadded_quantity(text)))
      out.emplace_back(key, *amount);
  });
  std::ranges::sort(out);
  const auto same_name = [](const auto& a, const auto& b) { return a.first == b.first; };
  out.erase(std::ranges::unique(out, same_name).begin(), out.end());
  return out;
}

void read_variables(on_demand::value list, program& program) {
  if (list.type() != simdjson::ondemand::json_type::array) return;
  program.has_env = true;
  on_demand::each_item(list, [&](on_demand::value variable) {
    std::string name, value;
    bool is_known = true;
    on_demand::each_member(variable, [&](std::string_view key, on_demand::value field) {
      if (key == "name") name = on_demand::text_or(field);
      if (key == "value") value = on_demand::text_or(field);
      if (key == "valueFrom") is_known = false;
    });
    program.env.emplace_back(std::move(name), is_known ? std::optional(std::move(value)) : std::nullopt);
  });
}

/// @param program null: skipped
kube::container read_container(on_demand::value container, kube::container::role role, room& left, program* program) {
  kube::container out;
  out.kind = role;
  on_demand::each_member(container, [&](std::string_view key, on_demand::value field) {
    if (program && key == "image") program->image = on_demand::text_or(field);
    if (program && key == "env") read_variables(field, *program);
    if (program && key == "envFrom") program->has_more_env = true;
    if (key == "name") {
      out.name = on_demand::text_or(field);
    } else if (key == "restartPolicy" && role == kube::container::role::init) {
      if (on_demand::text_or(field) == "Always") out.kind = kube::container::role::sidecar;
    } else if (key == "resources") {
      on_demand::each_member(field, [&](std::string_view kind, on_demand::value amounts) {
        if (kind == "limits") out.limits = read_amounts(amounts, left, true);
        if (kind == "requests") out.requests = read_amounts(amounts, left, false);
      });
    }
  });
  return out;
}

toleration read_toleration(on_demand::value object) {
  toleration out;
  on_demand::each_member(object, [&](std::string_view key, on_demand::value field) {
    if (key == "key") out.key = on_demand::text_or(field);
    if (key == "operator") out.op = on_demand::text_or(field);
    if (key == "effect") out.effect = on_demand::text_or(field);
  });
  return out;
}

}  // namespace

pod_spec read_pod_spec(on_demand::value spec, program_wish wish) {
  pod_spec out;
  room left;
  std::vector<kube::container> main;
  std::vector<program> of_main;
  const auto take = [&](std::vector<kube::container>& containers, std::vector<program>& all,
                        kube::container::role role) {
    return [&, role, with_program = wish == program_wish::read](on_demand::value value) {
      if (!left.take(left.containers)) return;
      if (with_program) all.emplace_back();
      containers.push_back(read_container(value, role, left, with_program ? &all.back() : nullptr));
    };
  };
  on_demand::each_member(spec, [&](std::string_view key, on_demand::value field) {
    if (key == "containers") {
      on_demand::each_item(field, take(main, of_main, kube::container::role::main));
    } else if (key == "initContainers") {
      on_demand::each_item(field, take(out.containers, out.programs, kube::container::role::init));
    } else if (key == "runtimeClassName") {
      out.runtime_class = on_demand::text_or(field);
    } else if (key == "schedulerName") {
      out.scheduler_name = on_demand::text_or(field);
    } else if (key == "nodeName") {
      out.node_name = on_demand::text_or(field);
    } else if (key == "tolerations" && !field.is_null()) {
      out.has_tolerations = true;
      on_demand::each_item(field, [&](on_demand::value value) {
        if (out.tolerations.size() < read_tolerations) out.tolerations.push_back(read_toleration(value));
      });
    }
  });
  out.complete = !left.exceeded;
  out.limits = read_limits - left.limits;
  out.init = out.containers.size();
  std::ranges::move(main, std::back_inserter(out.containers));
  std::ranges::move(of_main, std::back_inserter(out.programs));
  return out;
}

kube::result<pod_spec> parse_pod_spec(std::string_view text, program_wish wish) {
  static thread_local on_demand::document reused;
  try {
    // A value must not be the whole document: simdjson cannot ask such a one whether it is null.
    auto root = reused.open("[" + std::string(text) + "]");
    return read_pod_spec(root.at(0).value(), wish);
  } catch (const simdjson::simdjson_error& problem) {
    return std::unexpected(kube::error{kube::errc::decode, 0, std::string("pod spec: ") + problem.what(), {}});
  }
}

}  // namespace reconcilers::declarations
