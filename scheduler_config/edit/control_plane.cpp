#include "scheduler_config/edit/control_plane.hpp"

#include <charconv>

#include "api/names.hpp"
#include "scheduler_config/edit/static_pod.hpp"
#include "scheduler_config/edit/static_pod_edit.hpp"
#include "scheduler_config/judge/schema.hpp"
#include "text/yaml/writer.hpp"

namespace scheduler_config {
namespace {

using nlohmann::ordered_json;
using edited_text = std::expected<std::string, text::phrase>;

constexpr auto config_name = "scheduler-config.yaml", manifest_name = "kube-scheduler.yaml";

std::unexpected<text::phrase> refused(std::string_view key, std::vector<text::phrase_argument> arguments) {
  return std::unexpected(text::phrase("scheduler_file." + std::string(key), std::move(arguments)));
}
std::unexpected<text::phrase> refused(const char* file, const finding& finding) {
  using enum text::language;
  return refused("finding", {{"file", std::string(file)},
                             {"line", std::to_string(finding.location.line)},
                             {"column", std::to_string(finding.location.column)},
                             {"message", message_of(finding, en), message_of(finding, zh)},
                             {"code", std::string(to_string(finding.issue))}});
}

/// Without ours; a file without our entry as it is.
edited_text bare(const char* file, const std::string& now, std::expected<std::string, finding> stripped) {
  if (stripped) return std::move(*stripped);
  if (stripped.error().issue == code::nothing_of_ours) return now;
  return refused(file, stripped.error());
}

std::optional<double> number_of(const std::string& value) {
  double out = 0;
  const auto [end, wrong] = std::from_chars(value.data(), value.data() + value.size(), out);
  return wrong == std::errc{} && end == value.data() + value.size() ? std::optional(out) : std::nullopt;
}

/// Flags that kube-scheduler skips once there is --config (cmd/kube-scheduler/app/options/deprecated.go).
std::string config_of_flags(const static_pod& pod) {
  const auto value = [&pod](const char* name) {
    const auto* flag = pod.find(name);
    return flag ? flag->value : std::string();
  };
  ordered_json out = {{"apiVersion", api_version}, {"kind", "KubeSchedulerConfiguration"}};
  auto connection = ordered_json::object();
  if (const auto file = value("kubeconfig"); !file.empty()) connection["kubeconfig"] = file;
  if (const auto type = value("kube-api-content-type"); !type.empty()) connection["contentType"] = type;
  if (const auto qps = number_of(value("kube-api-qps"))) connection["qps"] = *qps;
  if (const auto burst = number_of(value("kube-api-burst"))) connection["burst"] = static_cast<std::int64_t>(*burst);
  if (!connection.empty()) out["clientConnection"] = std::move(connection);
  const auto boolean = [&](const char* flag, const char* field) {
    if (const auto* there = pod.find(flag)) out[field] = there->value.empty() || there->value == "true";
  };
  boolean("profiling", "enableProfiling");
  boolean("contention-profiling", "enableContentionProfiling");
  return text::yaml::write(out);
}

/// Flags win over the file. We do not know whose another lease is.
bool elects(const static_pod& pod, const std::optional<std::string>& config) {
  std::string elect = "true", name = "kube-scheduler", ns = "kube-system";
  const auto read = config && pod.find("config") ? parse_document(*config) : parse_document("{}");
  const auto* election = read ? text::yaml::find(read->root, "leaderElection") : nullptr;
  const auto take = [&](const char* field, const char* flag, std::string& value) {
    if (const auto text = text::yaml::text_at(election, field); !text.empty()) value = text;
    if (const auto* match = pod.find(flag)) value = match->value;
  };
  take("leaderElect", "leader-elect", elect);
  take("resourceName", "leader-elect-resource-name", name);
  take("resourceNamespace", "leader-elect-resource-namespace", ns);
  return (elect.empty() || elect == "true") && name == "kube-scheduler" && ns == "kube-system";
}

/// The file that ours is merged into.
edited_text base_of(const control_plane_files& now, const static_pod& pod, std::string_view url) {
  const auto* flag = pod.find("config");
  const std::string path = config_file().path;
  if (!now.config) {
    if (flag && flag->value == path)
      return refused(
          "not_there",
          {{"manifest", std::string(manifest_name)}, {"line", std::to_string(flag->location.line)}, {"path", path}});
    return config_of_flags(pod);
  }
  if (!flag && !unmerge(*now.config, url))
    return refused("not_read", {{"manifest", std::string(manifest_name)}, {"path", path}});
  return *now.config;
}

}  // namespace

std::expected<control_plane_files, text::phrase> with_extender(const control_plane_files& now,
                                                               const extender_settings& settings,
                                                               std::int64_t generation, int otherwise) {
  auto manifest = bare(manifest_name, now.manifest, remove_config_file(now.manifest));
  if (!manifest) return std::unexpected(std::move(manifest.error()));
  const auto read = parse_document(*manifest);
  if (!read) return refused(manifest_name, read.error());
  const auto pod = read_static_pod(*read);
  if (!is_pod(*read) || !pod.container) return refused("no_pod", {{"manifest", std::string(manifest_name)}});
  const auto minor = minor_of_image(pod.image);
  server server;
  server.minor = minor > 0 ? minor : otherwise;
  if (server.minor < oldest_minor)
    return refused("too_old", {{"manifest", std::string(manifest_name)},
                               {"line", std::to_string(pod.image_at.line)},
                               {"version", "1." + std::to_string(server.minor)},
                               {"oldest", "1." + std::to_string(oldest_minor)}});
  const bool runs = now.config.has_value();
  const auto base = base_of(now, pod, settings.url);
  if (!base) return std::unexpected(base.error());
  auto config = merge(*base, {extender_entry(settings), ""}, server, runs);
  if (!config) return refused(config_name, config.error());
  auto edited = add_config_file(*manifest, {.checksum = checksum_of(*config), .generation = generation});
  if (!edited) return refused(manifest_name, edited.error());
  const auto edited_read = parse_document(*edited), config_read = parse_document(*config);
  const auto base_read = parse_document(*base);
  const auto before = runs ? judge_static_pod(*read, base_read ? &*base_read : nullptr, server) : findings();
  const auto after = judge_static_pod(*edited_read, &*config_read, server);
  if (const auto* added = added_end(before, after)) return refused(manifest_name, *added);
  return control_plane_files{std::move(*config), std::move(*edited)};
}

std::expected<control_plane_files, text::phrase> without_extender(const control_plane_files& now, bool alone,
                                                                  std::string_view url) {
  auto manifest = bare(manifest_name, now.manifest, remove_config_file(now.manifest));
  if (!manifest) return std::unexpected(std::move(manifest.error()));
  if (!now.config || alone) return control_plane_files{std::nullopt, std::move(*manifest)};
  auto config = bare(config_name, *now.config, unmerge(*now.config, url));
  if (!config) return std::unexpected(std::move(config.error()));
  return control_plane_files{std::move(*config), std::move(*manifest)};
}

scheduler_pod_facts facts_of(std::string_view manifest, const std::optional<std::string>& config) {
  scheduler_pod_facts out;
  std::string host = "127.0.0.1", port = "10259";
  if (const auto read = parse_document(manifest); read && is_pod(*read)) {
    const auto pod = read_static_pod(*read);
    const auto* metadata = text::yaml::find(read->root, "metadata");
    if (const auto name = text::yaml::text_at(metadata, "name"); !name.empty()) out.name = name;
    const auto* annotations = text::yaml::find(metadata, "annotations");
    out.checksum = text::yaml::text_at(annotations, api::names::scheduler_config_annotation);
    const auto generation = text::yaml::text_at(annotations, api::names::scheduler_generation_annotation);
    std::from_chars(generation.data(), generation.data() + generation.size(), out.generation);
    const std::string_view image = pod.image;
    if (minor_of_image(image) > 0)
      out.version = image.substr(0, image.find('@')).substr(image.rfind(':', image.find('@')) + 1);
    if (const auto* flag = pod.find("secure-port"); flag && !flag->value.empty()) port = flag->value;
    if (const auto* flag = pod.find("bind-address");
        flag && !flag->value.empty() && flag->value != "0.0.0.0" && flag->value != "::")
      host = flag->value.contains(':') ? "[" + flag->value + "]" : flag->value;
    out.elects = elects(pod, config);
  }
  out.healthz = "https://" + host + ":" + port;
  return out;
}

}  // namespace scheduler_config
