#include "cli/lint/pod_devices.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "kube/quantity.hpp"
#include "quota/faults.hpp"
#include "quota/selector.hpp"
#include "quota/vocabulary.hpp"
#include "reconcilers/admission/compatibility.hpp"
#include "reconcilers/cuda/requirement.hpp"
#include "reconcilers/dialects/annotations.hpp"
#include "reconcilers/dialects/dialect.hpp"
#include "reconcilers/extender/placement.hpp"
#include "text/nearest.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using text::yaml::node;

constexpr std::string_view own_domain = "quartermaster.io/";

/// The key that a node offers and `key` goes with in one container: "nvidia.com/gpualloc" for "nvidia.com/gpumem".
std::string_view offered_partner(std::string_view key) {
  const auto modes = quota::modes_of(key);
  for (const auto& other : quota::resource_keys)
    if (other.managed && other.offered && quota::modes_of(other.key) == modes) return other.key;
  return {};
}

class device_judge {
 public:
  explicit device_judge(judged_pod& pod) : pod_(pod) {}

  void check() {
    for (const auto& container : pod_.containers) {
      variables(container);
      privileges(container);
    }
    node_name();
    counts();
    modes();
    selecting();
    if (pod_.is_held()) compare_with_drivers(*pod_.form.spec);
  }

 private:
  using container = judged_pod::container;

  /// A part of a card without the key that the kubelet knows: no one asks the plugin for a card.
  void counts() {
    for (const auto& container : pod_.containers) {
      const auto all = asked_in(limits_of(container));
      for (const auto* entry : all) {
        const auto& key = entry->key->text;
        const auto* known = quota::resource_key_of(key);
        if (!known || known->offered || !known->managed) continue;
        const auto is_partner = [&](const node::entry* other) {
          const auto* row = quota::resource_key_of(other->key->text);
          return row && row->offered && (quota::modes_of(row->key) & quota::modes_of(key)) != 0;
        };
        if (std::ranges::any_of(all, is_partner)) continue;
        pod_.say(
            lint_code::count_missing, entry->key->location,
            {.field = field(below(container.path, "resources.limits"), key), .key = key, .hint = offered_partner(key)});
        break;  // one is enough to be told
      }
    }
  }

  /// Keys of modes that no node has at the same time.
  void modes() {
    std::vector<std::vector<quota::amount>> amounts;
    for (const auto& container : pod_.containers) {
      auto& all = amounts.emplace_back();
      for (const auto* entry : asked_in(limits_of(container))) all.push_back({entry->key->text, 1});
    }
    const std::vector<quota::limits> limits(amounts.begin(), amounts.end());
    const auto both = quota::two_modes(limits);
    if (!both) return;
    const auto key = both->no.key;
    const auto& container = pod_.containers[both->no.container];
    const auto* entry = text::yaml::find_entry(limits_of(container), key);
    pod_.say(lint_code::modes_mixed, entry->key->location,
             {.field = field(below(container.path, "resources.limits"), key), .key = key, .other = both->no.other});
  }

  /// Of our own domain each name is known, so any other one is a mistake.
  void own_annotation(const node::entry& entry, const std::string& path) {
    using reconcilers::cuda::names::capability_annotation, reconcilers::cuda::names::cuda_annotation;
    constexpr std::array people{cuda_annotation, capability_annotation};
    constexpr std::array program{reconcilers::extender::placement_annotation,
                                 reconcilers::extender::isolation_annotation};
    const std::string_view name = entry.key->text;
    if (std::ranges::find(people, name) != people.end() || std::ranges::find(program, name) != program.end()) return;
    const std::array ends{cuda_annotation.substr(own_domain.size()), capability_annotation.substr(own_domain.size())};
    const auto near = text::nearest(name.substr(own_domain.size()), ends);
    const auto hint = near.empty() ? std::string(cuda_annotation) + ", " + std::string(capability_annotation)
                                   : std::string(own_domain) + std::string(near);
    pod_.say(lint_code::annotation_unfamiliar, entry.key->location, {.field = path, .hint = hint});
  }

  /// Annotations by which a pod chooses its cards.
  void selecting() {
    const auto* about = text::yaml::find(text::yaml::find(pod_.form.holder, "metadata"), "annotations");
    if (!about || !about->mapping()) return;
    const auto known = quota::selecting_annotations();
    for (const auto& entry : about->entries) {
      const auto& name = entry.key->text;
      const auto path = field(pod_.form.holder_path + "metadata.annotations", name);
      quota::selector read;
      read.read(name, entry.value->scalar() ? entry.value->text : std::string());
      if (!read.problem().empty())
        pod_.say(lint_code::annotation_value, entry.key->location, {.field = path, .other = read.problem()});
      if (quota::selector::known(name) || quota::is_pod_amount(name, false)) continue;
      const auto domain = name.substr(0, name.find('/') + 1);
      if (domain == own_domain) {
        own_annotation(entry, path);
        continue;
      }
      const auto reader = reconcilers::dialects::reader_of(name);
      const auto hint = is_of_product(name) ? std::string() : annotation_meant(name, domain, known);
      if (!hint.empty()) {
        const auto meant = domain + hint;
        pod_.say(lint_code::annotation_unfamiliar, entry.key->location, {.field = path, .hint = meant});
      } else if (!reader.empty()) {
        pod_.say(lint_code::annotation_not_read, entry.key->location, {.field = path, .other = reader});
      }
    }
  }

  /// As a product has it, not misspelt: its people or its own programs write it.
  static bool is_of_product(std::string_view annotation) {
    const auto unread = reconcilers::dialects::unread_annotations();
    return std::ranges::find(unread, annotation) != unread.end() ||
           std::ranges::any_of(reconcilers::dialects::all(),
                               [&](const auto* product) { return product->writes(annotation); });
  }

  /// What was most likely meant, without its domain; may be empty.
  static std::string annotation_meant(std::string_view name, std::string_view domain,
                                      std::span<const std::string_view> known) {
    if (domain.empty()) return {};
    std::vector<std::string_view> ends;
    const auto add = [&](std::string_view candidate) {
      if (candidate.starts_with(domain)) ends.push_back(candidate.substr(domain.size()));
    };
    std::ranges::for_each(known, add);
    for (const auto& row : quota::resource_keys)
      if (!row.on_pod.label) add(row.on_pod.name);
    std::ranges::for_each(reconcilers::dialects::unread_annotations(), add);
    return std::string(text::nearest(name.substr(domain.size()), ends));
  }

  /// Variables that give a container other cards than it asks for, or none.
  void variables(const container& container) {
    const auto* list = text::yaml::find(container.item, "env");
    if (!list || !list->sequence()) return;
    std::size_t index = 0;
    for (const auto* item : list->items) {
      const auto path = container.path + ".env[" + std::to_string(index++) + "].value";
      const auto name = text::yaml::text_at(item, "name");
      const auto value = std::string(text::yaml::text_at(item, "value"));
      if (value.empty()) continue;
      disabled_limits(container, *item, path);
      if (name == "NVIDIA_VISIBLE_DEVICES" && value != "void" && value != "none")
        pod_.say(lint_code::visible_devices, item->location,
                 {.field = path + " of NVIDIA_VISIBLE_DEVICES", .value = value});
      const auto cards = cards_of(container);
      if (name == "CUDA_VISIBLE_DEVICES" && cards > 0 && highest_number_in(value) >= cards) {
        const auto count = text::counted(cards, "count.card", pod_.locale);
        pod_.say(lint_code::cuda_devices, item->location,
                 {.field = path + " of CUDA_VISIBLE_DEVICES", .value = value, .other = count});
      }
    }
  }

  /// The first key by which the container asks for cards; empty: it asks for none.
  static std::string_view card_key_of(const container& container) {
    const auto all = asked_in(limits_of(container));
    return all.empty() ? std::string_view() : std::string_view(all.front()->key->text);
  }

  void privileges(const container& container) {
    const auto* context = text::yaml::find(container.item, "securityContext");
    const auto* entry = text::yaml::find_entry(context, "privileged");
    const auto key = card_key_of(container);
    if (!key.empty() && entry && entry->value->scalar() && text::yaml::canonical(*entry->value) == "true")
      pod_.say(lint_code::privileged_container, entry->key->location,
               {.field = below(container.path, "securityContext.privileged"), .key = key});
  }

  /// HAMi's plugin and Volcano's leave their library out (server.go, Allocate; strconv.ParseBool reads the value).
  void disabled_limits(const container& container, const node& item, const std::string& path) {
    constexpr std::array<std::string_view, 6> yes{"1", "t", "T", "true", "TRUE", "True"};
    const auto value = text::yaml::text_at(&item, "value");
    if (text::yaml::text_at(&item, "name") != "CUDA_DISABLE_CONTROL" || std::ranges::find(yes, value) == yes.end())
      return;
    for (const auto* entry : asked_in(limits_of(container))) {
      const std::string_view key = entry->key->text;
      if (!key.starts_with("nvidia.com/gpumem") && key != "nvidia.com/gpucores" && !key.starts_with("volcano.sh/vgpu-"))
        continue;
      return pod_.say(lint_code::limits_disabled, item.location,
                      {.field = path + " of CUDA_DISABLE_CONTROL", .value = value, .key = key});
    }
  }

  /// A pod that its kubelet has seen, as kubectl prints it, got its node from a scheduler.
  void node_name() {
    const auto* entry = text::yaml::find_entry(pod_.form.spec, "nodeName");
    const bool is_of_cluster = text::yaml::find(text::yaml::find(pod_.manifest.root, "metadata"), "uid") != nullptr;
    if (!entry || !entry->value->scalar() || entry->value->text.empty() || is_of_cluster) return;
    for (const auto& container : pod_.containers) {
      const auto key = card_key_of(container);
      if (key.empty()) continue;
      return pod_.say(lint_code::node_named, entry->key->location,
                      {.field = below(pod_.path, "nodeName"), .value = entry->value->text, .key = key});
    }
  }

  /// Of a list of numbers "0,2"; 0 for any other text.
  static std::size_t highest_number_in(std::string_view text) {
    std::size_t out = 0;
    while (!text.empty()) {
      const auto comma = std::min(text.find(','), text.size());
      std::size_t number = 0;
      const auto [end, failed] = std::from_chars(text.data(), text.data() + comma, number);
      if (failed != std::errc() || end != text.data() + comma) return 0;
      out = std::max(out, number);
      text.remove_prefix(std::min(text.size(), comma + 1));
    }
    return out;
  }

  /// What the webhook for compatibility says, where nothing is refused.
  void compare_with_drivers(const node& spec) {
    auto json = text::yaml::to_json(spec);
    if (!json) return;
    nlohmann::json made = {{"spec", std::move(*json)}};
    if (const auto* about = text::yaml::find(pod_.form.holder, "metadata")) {
      if (auto metadata = text::yaml::to_json(*about)) made["metadata"] = std::move(*metadata);
    }
    const auto nodes = pod_.known ? std::span(pod_.known->nodes) : std::span<const kube::node* const>();
    const auto found =
        reconcilers::cuda::admit(made, nodes, {.mode = reconcilers::enforcement::warn, .language = pod_.locale});
    for (const auto& text : found.warnings)
      pod_.findings.push_back(finding_of_compatibility(text, pod_.manifest, spec.location, pod_.path));
  }

  judged_pod& pod_;
};

}  // namespace

void judge_devices(judged_pod& pod) { device_judge(pod).check(); }

}  // namespace cli
