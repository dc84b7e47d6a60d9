#include "kube/projections/pod.hpp"

#include <algorithm>

#include "kube/projections/described_pod.hpp"
#include "kube/projections/kept.hpp"
#include "kube/projections/running_pod.hpp"
#include "kube/wire.hpp"

namespace kube {
namespace {

using wire::each_field, wire::field;

constexpr std::string_view label_patterns[] = {
    "quartermaster.io/",        "app.kubernetes.io/",  "name", "k8s-app", "pod-template-generation",
    "controller-revision-hash", "aliyun.com/gpu-count"};

/// Which containers are kept: all where one asks for an extended resource, else none.
enum class kept_containers : std::uint8_t { asking, all, all_with_requests };

container read_container(std::string_view bytes, container::role role, kept_containers kept) {
  container made;
  made.kind = role;
  const auto add_limit = [&](std::string_view entry) { wire::add_extended_resource(made.limits, entry); };
  const auto add_request = [&](std::string_view entry) {
    if (kept == kept_containers::all_with_requests) wire::add_extended_resource(made.requests, entry);
  };
  each_field(bytes, field<1>(made.name), field<8>([&](std::string_view resources) {
               each_field(resources, field<1>(add_limit), field<2>(add_request));
             }),
             field<24>([&](std::string_view policy) {
               if (policy == "Always" && role == container::role::init) made.kind = container::role::sidecar;
             }));
  return made;
}

/// The next part of a path, which is taken off; empty at its end. "//" and "/./" are as "/".
std::string_view next_part(std::string_view& path) {
  for (;;) {
    path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
    const auto part = path.substr(0, path.find('/'));
    path.remove_prefix(part.size());
    if (part != ".") return part;
  }
}

/// The folder in which device plugins put their sockets, a folder above it or something in it. A kubelet with another
/// root folder has it under the same name.
bool leads_to_plugins(std::string_view path) {
  std::string_view folder = "/var/lib/kubelet/device-plugins";
  const auto plugins = folder.substr(folder.rfind('/') + 1);
  bool same = true;
  std::string_view last;
  for (auto part = next_part(path); !part.empty(); part = next_part(path)) {
    const auto expected = next_part(folder);
    same = same && (expected.empty() || part == expected);
    last = part;
  }
  return same || last == plugins;
}

/// Volume: source 2, of which hostPath 1 has path 1.
bool is_plugin_folder(std::string_view volume) {
  bool out = false;
  const auto read_path = [&](std::string_view path) { out = leads_to_plugins(path); };
  const auto read_host_path = [&](std::string_view host_path) { each_field(host_path, field<1>(read_path)); };
  each_field(volume, field<2>([&](std::string_view source) { each_field(source, field<1>(read_host_path)); }));
  return out;
}

void read_spec(std::string_view bytes, pod& pod, kept_containers kept) {
  std::vector<container> main;
  const auto asks = [](const container& container) { return !container.limits.empty(); };
  each_field(
      bytes, field<1>([&](std::string_view volume) { pod.mounts_plugin_folder |= is_plugin_folder(volume); }),
      field<2>([&](std::string_view item) { main.push_back(read_container(item, container::role::main, kept)); }),
      field<20>(
          [&](std::string_view item) { pod.containers.push_back(read_container(item, container::role::init, kept)); }),
      field<10>(pod.node_name), field<11>(pod.host_network), field<19>([&](std::string_view name) {
        if (name != "default-scheduler") pod.scheduler_name = name;
      }),
      field<25>(pod.priority));
  if (kept != kept_containers::asking || std::ranges::any_of(main, asks) || std::ranges::any_of(pod.containers, asks)) {
    std::ranges::move(main, std::back_inserter(pod.containers));
    pod.containers.shrink_to_fit();
  } else {
    pod.containers = {};
  }
}

pod_phase read_phase(std::string_view phase) {
  if (phase == "Running") return pod_phase::running;
  if (phase == "Pending") return pod_phase::pending;
  if (phase == "Succeeded") return pod_phase::succeeded;
  if (phase == "Failed") return pod_phase::failed;
  return pod_phase::unknown;
}

/// ContainerState: waiting 1 (reason 1), running 2, terminated 3 (exitCode 1, finishedAt 6).
struct container_state {
  std::string_view reason;  ///< why it waits
  bool runs = false;
  bool ended = false, failed = false;
  std::int64_t ended_at = 0;  ///< seconds since 1970, 0 where it is not said
};

container_state read_state(std::string_view bytes) {
  container_state made;
  each_field(bytes, field<1>([&](std::string_view waiting) { made.reason = wire::read_entry(waiting).key; }),
             field<2>([&](std::string_view) { made.runs = true; }), field<3>([&](std::string_view terminated) {
               made.ended = true;
               each_field(terminated, field<1>([&](std::int64_t code) { made.failed = code != 0; }),
                          field<6>([&](std::string_view time) { made.ended_at = wire::read_time(time).seconds; }));
             }));
  return made;
}

/// What the statuses of one list of containers say together.
struct containers_state {
  std::string_view waiting;  ///< why the first that is not ready waits
  bool waits = false, failed = false;
  bool open = false;  ///< one runs, or does not say when it ended
  std::int64_t ended_at = 0;

  /// Counts restarts too.
  void add(std::string_view bytes, pod& pod) {
    container_state state;
    bool ready = false;
    each_field(bytes, field<2>([&](std::string_view message) { state = read_state(message); }), field<4>(ready),
               field<5>([&](std::int32_t count) {
                 if (__builtin_add_overflow(pod.restarts, count, &pod.restarts)) pod.restarts = 0;
               }));
    if (!ready && waiting.empty()) waiting = state.reason;
    waits |= !state.ended && !state.runs;
    failed |= state.failed;
    open |= state.runs || (state.ended && state.ended_at == 0);
    ended_at = std::max(ended_at, state.ended_at);
  }
};

/// A container that waits in a finished pod has never run where an init container before it failed. Elsewhere someone
/// else than the kubelet has ended the pod, and no one knows how long it ran.
std::int64_t last_end(const containers_state& init, const containers_state& main) {
  if (init.open || main.open || ((init.waits || main.waits) && !init.failed)) return 0;
  return std::max(init.ended_at, main.ended_at);
}

/// A scheduler whose Binding went unanswered takes its condition back, though the pod is bound: that happened before,
/// and before the kubelet took the pod in. The spec has been read.
std::int64_t bound_at(const pod& pod, const wire::condition& scheduled, std::int64_t started) {
  if (scheduled.status == "True") return scheduled.since;
  if (pod.node_name.empty() || scheduled.since == 0) return 0;
  return started > 0 ? std::min(started, scheduled.since) : scheduled.since;
}

void read_status(std::string_view bytes, pod& pod) {
  std::string_view reason;
  wire::condition scheduled;
  std::int64_t started = 0;
  containers_state init, main;
  each_field(bytes, field<1>([&](std::string_view phase) { pod.phase = read_phase(phase); }),
             field<2>([&](std::string_view condition) {
               const auto found = wire::read_condition(condition);
               if (found.type == "Ready") pod.ready = found.status == "True";
               if (found.type == "PodScheduled") scheduled = found;
             }),
             field<4>(reason), field<6>(pod.ip),
             field<7>([&](std::string_view time) { started = wire::read_time(time).seconds; }),
             field<8>([&](std::string_view item) { main.add(item, pod); }),
             field<10>([&](std::string_view item) { init.add(item, pod); }), field<11>([&](std::string_view name) {
               if (!name.empty()) pod.nominated_node.assign(1, std::string(name));
             }));
  pod.scheduled_at = bound_at(pod, scheduled, started);
  pod.reason = !reason.empty() ? reason : !init.waiting.empty() ? init.waiting : main.waiting;
  if (pod.finished()) pod.finished_at = last_end(init, main);
}

void read_pod_parts(std::string_view bytes, pod& pod, kept_containers kept) {
  each_field(bytes, field<1>([&](std::string_view meta) {
               wire::read_metadata(meta, pod, {label_patterns}, {kept_pod_annotations});
             }),
             field<2>([&](std::string_view spec) { read_spec(spec, pod, kept); }),
             field<3>([&](std::string_view status) { read_status(status, pod); }));
  pod.mirror = pod.annotations.contains(mirror_annotation);
}
void read_pod(std::string_view bytes, pod& pod) { read_pod_parts(bytes, pod, kept_containers::asking); }

void read_running_pod(std::string_view bytes, running_pod& pod) {
  read_pod_parts(bytes, pod, kept_containers::all);
  const auto read_id = [&pod](std::string_view status) {
    container_id out;
    each_field(status, field<1>(out.name), field<8>([&](std::string_view text) {
                 const auto scheme = text.find("://");
                 out.id = scheme == text.npos ? text : text.substr(scheme + 3);
               }));
    if (!out.name.empty()) pod.ids.push_back(std::move(out));
  };
  each_field(bytes, field<1>([&](std::string_view metadata) { each_field(metadata, field<10>(pod.grace_s)); }),
             field<3>([&](std::string_view status) {
               each_field(status, field<8>(read_id), field<10>(read_id), field<13>(read_id));
             }));
}

auto appended_to(std::vector<std::string>& list) {
  return [&list](std::string_view text) { list.emplace_back(text); };
}
/// PodSchedulingGate: name 1.
auto name_appended_to(std::vector<std::string>& list) {
  return [&list](std::string_view message) { each_field(message, field<1>(appended_to(list))); };
}

/// NodeSelectorTerm: matchExpressions 1, matchFields 2.
std::vector<node_rules::requirement> read_term(std::string_view bytes) {
  std::vector<node_rules::requirement> out;
  const auto add = [&](std::string_view message, bool is_field) {
    auto& made = out.emplace_back();
    made.is_field = is_field;
    each_field(message, field<1>(made.key), field<2>(made.op), field<3>(appended_to(made.values)));
  };
  each_field(bytes, field<1>([&](std::string_view message) { add(message, false); }),
             field<2>([&](std::string_view message) { add(message, true); }));
  return out;
}

/// PodSpec: nodeSelector 7, affinity 18 (nodeAffinity 1, of which 1 is required), tolerations 22.
void read_rules(std::string_view spec, node_rules& rules) {
  const auto read_required = [&](std::string_view required) {
    auto& terms = rules.terms.emplace();
    each_field(required, field<1>([&](std::string_view term) { terms.push_back(read_term(term)); }));
  };
  const auto read_node_affinity = [&](std::string_view affinity) { each_field(affinity, field<1>(read_required)); };
  each_field(spec, field<7>([&](std::string_view entry) {
               const auto [key, value] = wire::read_entry(entry);
               rules.selector.insert_or_assign(std::string(key), value);
             }),
             field<18>([&](std::string_view affinity) { each_field(affinity, field<1>(read_node_affinity)); }),
             field<22>([&](std::string_view message) {
               auto& made = rules.tolerations.emplace_back();
               each_field(message, field<1>(made.key), field<2>(made.op), field<3>(made.value), field<4>(made.effect));
             }));
}

/// PodResourceClaim: name 1, resourceClaimName 3, resourceClaimTemplateName 4.
auto read_into(std::vector<pod_claim>& claims) {
  return [&claims](std::string_view message) {
    auto& made = claims.emplace_back();
    each_field(message, field<1>(made.name), field<3>(made.object), field<4>(made.made_of));
  };
}

/// PodResourceClaimStatus: name 1, resourceClaimName 2: the claim that was made of a template.
auto read_made_claim(std::vector<pod_claim>& claims) {
  return [&claims](std::string_view message) {
    std::string_view name, object;
    each_field(message, field<1>(name), field<2>(object));
    for (auto& claim : claims)
      if (claim.name == name && claim.object.empty()) claim.object = object;
  };
}

void read_native_limits(std::string_view container, described_pod& pod) {
  const auto add = [&](std::string_view entry) {
    if (const auto key = wire::read_entry(entry).key; !is_extended_resource(key)) pod.native_limits.emplace(key);
  };
  each_field(container, field<8>([&](std::string_view resources) { each_field(resources, field<1>(add)); }));
}

/// ContainerState: terminated 3 (exitCode 1, reason 3, finishedAt 6).
bool read_end(std::string_view state, container_end& end) {
  bool has_ended = false;
  each_field(state, field<3>([&](std::string_view terminated) {
               has_ended = true;
               each_field(terminated, field<1>(end.exit_code), field<3>(end.reason),
                          field<6>([&](std::string_view time) { end.ended_at = wire::read_time(time).seconds; }));
             }));
  return has_ended;
}

/// Of a list of ContainerStatus: name 1, state 2 (waiting 1), lastState 3, restartCount 5.
struct container_statuses {
  std::vector<statement> waiting;
  std::vector<container_end> ends;

  void add(std::string_view bytes) {
    statement made;
    container_end end;
    std::string_view now, before;
    each_field(bytes, field<1>(made.name), field<2>(now), field<3>(before), field<5>(end.restarts));
    bool waits = false;
    each_field(now, field<1>([&](std::string_view message) {
                 waits = true;
                 each_field(message, field<1>(made.reason), field<2>(made.message));
               }));
    end.name = made.name;
    if (read_end(now, end) || (end.is_last = read_end(before, end))) ends.push_back(std::move(end));
    if (waits) waiting.push_back(std::move(made));
  }
};

void read_statements(std::string_view status, described_pod& pod) {
  container_statuses init, main;
  each_field(status, field<2>([&](std::string_view condition) {
               statement made;
               std::string_view type;
               each_field(condition, field<1>(type), field<2>(made.name), field<5>(made.reason),
                          field<6>(made.message));
               if (type == "PodScheduled") pod.scheduled = std::move(made);
             }),
             field<3>(pod.status.message), field<4>(pod.status.reason),
             field<8>([&](std::string_view bytes) { main.add(bytes); }),
             field<10>([&](std::string_view bytes) { init.add(bytes); }));
  pod.waiting = std::move(init.waiting);
  pod.ends = std::move(init.ends);
  std::ranges::move(main.waiting, std::back_inserter(pod.waiting));
  std::ranges::move(main.ends, std::back_inserter(pod.ends));
}

void read_described_pod(std::string_view bytes, described_pod& pod) {
  read_pod_parts(bytes, pod, kept_containers::all_with_requests);
  const auto read_container_limits = [&](std::string_view container) { read_native_limits(container, pod); };
  each_field(bytes, field<1>([&](std::string_view meta) {
               const auto read_end = [&](std::string_view time) { pod.deleted_at = wire::read_time(time).seconds; };
               each_field(meta, field<9>(read_end), field<10>(pod.grace_s), field<14>(appended_to(pod.finalizers)));
             }),
             field<2>([&](std::string_view spec) {
               read_rules(spec, pod.rules);
               each_field(spec, field<2>(read_container_limits), field<20>(read_container_limits),
                          field<38>(name_appended_to(pod.gates)), field<39>(read_into(pod.claims)));
             }),
             field<3>([&](std::string_view status) {
               read_statements(status, pod);
               each_field(status, field<15>(read_made_claim(pod.claims)));
             }));
}

}  // namespace

std::string_view to_string(pod_phase phase) {
  switch (phase) {
    case pod_phase::unknown:
      return "Unknown";
    case pod_phase::pending:
      return "Pending";
    case pod_phase::running:
      return "Running";
    case pod_phase::succeeded:
      return "Succeeded";
    case pod_phase::failed:
      return "Failed";
  }
  return "Unknown";
}

const resource& pod::of() { return resources::pods; }

result<pod> pod::decode(std::string_view bytes) { return wire::decode<pod>(bytes, read_pod); }

result<running_pod> running_pod::decode(std::string_view bytes) {
  return wire::decode<running_pod>(bytes, read_running_pod);
}

result<described_pod> described_pod::decode(std::string_view bytes) {
  return wire::decode<described_pod>(bytes, read_described_pod);
}

}  // namespace kube
