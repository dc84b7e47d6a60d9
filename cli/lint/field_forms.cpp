#include "cli/lint/field_forms.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <span>

namespace cli::field_forms {
namespace {

using text::yaml::node;

/// How a field is checked.
enum class form_check : std::uint8_t {
  text,
  number,
  count,
  long_number,
  flag,
  mapping,  ///< with fields of its own where there are some
  inner,    ///< its fields alone: its own form is judged elsewhere
  texts,    ///< a list of texts
  objects,  ///< a list of mappings
};

struct field_form {
  std::string_view name;
  form_check is = form_check::text;
  std::span<const field_form> fields = {};
};
using field_table = std::span<const field_form>;

using enum form_check;
constexpr field_form named_forms[] = {{"name"}};
constexpr field_form metadata_forms[] = {
    {"name"},
    {"generateName"},
    {"namespace"},
    {"labels", mapping},
    {"annotations", mapping},
    {"finalizers", texts},
    {"ownerReferences", objects},
};
constexpr field_form requirement_forms[] = {{"key"}, {"operator"}, {"values", texts}};
constexpr field_form term_forms[] = {{"matchExpressions", objects, requirement_forms},
                                     {"matchFields", objects, requirement_forms}};
constexpr field_form required_forms[] = {{"nodeSelectorTerms", objects, term_forms}};
constexpr field_form preferred_forms[] = {{"weight", number}, {"preference", mapping, term_forms}};
constexpr field_form node_affinity_forms[] = {
    {"requiredDuringSchedulingIgnoredDuringExecution", mapping, required_forms},
    {"preferredDuringSchedulingIgnoredDuringExecution", objects, preferred_forms}};
constexpr field_form affinity_forms[] = {
    {"nodeAffinity", mapping, node_affinity_forms}, {"podAffinity", mapping}, {"podAntiAffinity", mapping}};
constexpr field_form toleration_forms[] = {
    {"key"}, {"operator"}, {"value"}, {"effect"}, {"tolerationSeconds", long_number}};
constexpr field_form claim_forms[] = {{"name"}, {"resourceClaimName"}, {"resourceClaimTemplateName"}};
constexpr field_form host_path_forms[] = {{"path"}, {"type"}};
constexpr field_form volume_forms[] = {{"name"}, {"hostPath", mapping, host_path_forms}};
constexpr field_form container_claim_forms[] = {{"name"}, {"request"}};
constexpr field_form resources_forms[] = {{"claims", objects, container_claim_forms}};
constexpr field_form variable_forms[] = {{"name"}, {"value"}, {"valueFrom", mapping}};
constexpr field_form container_forms[] = {
    {"name"},
    {"image"},
    {"imagePullPolicy"},
    {"restartPolicy"},
    {"command", texts},
    {"args", texts},
    {"env", objects, variable_forms},
    {"envFrom", objects},
    {"ports", objects},
    {"volumeMounts", objects},
    {"resources", inner, resources_forms},
};
constexpr field_form pod_spec_forms[] = {
    {"nodeName"},
    {"nodeSelector", mapping},
    {"affinity", mapping, affinity_forms},
    {"tolerations", objects, toleration_forms},
    {"schedulerName"},
    {"schedulingGates", objects, named_forms},
    {"priority", number},
    {"priorityClassName"},
    {"preemptionPolicy"},
    {"runtimeClassName"},
    {"restartPolicy"},
    {"serviceAccountName"},
    {"hostNetwork", flag},
    {"hostIPC", flag},
    {"hostPID", flag},
    {"overhead", mapping},
    {"resources", mapping},
    {"resourceClaims", objects, claim_forms},
    {"topologySpreadConstraints", objects},
    {"imagePullSecrets", objects, named_forms},
    {"volumes", objects, volume_forms},
    {"ephemeralContainers", objects},
};

constexpr field_form replicas_forms[] = {{"replicas", count}};
constexpr field_form template_forms[] = {{"metadata", mapping}};
// Which of the names a kind has is judged elsewhere.
constexpr field_form job_forms[] = {
    {"parallelism", count},
    {"completions", count},
    {"completionMode"},
    {"backoffLimit", count},
    {"suspend", flag},
    {"manualSelector", flag},
    {"activeDeadlineSeconds", long_number},
    {"ttlSecondsAfterFinished", count},
    {"template", mapping, template_forms},
};
constexpr field_form job_template_forms[] = {{"metadata", mapping, metadata_forms}, {"spec", mapping, job_forms}};
constexpr field_form workload_spec_forms[] = {
    {"replicas", count},
    {"parallelism", count},
    {"completions", count},
    {"completionMode"},
    {"backoffLimit", count},
    {"suspend", flag},
    {"paused", flag},
    {"manualSelector", flag},
    {"minReadySeconds", count},
    {"revisionHistoryLimit", count},
    {"progressDeadlineSeconds", count},
    {"activeDeadlineSeconds", long_number},
    {"startingDeadlineSeconds", long_number},
    {"ttlSecondsAfterFinished", count},
    {"successfulJobsHistoryLimit", count},
    {"failedJobsHistoryLimit", count},
    {"schedule"},
    {"timeZone"},
    {"concurrencyPolicy"},
    {"podManagementPolicy"},
    {"serviceName"},
    {"selector", mapping},
    {"strategy", mapping},
    {"updateStrategy", mapping},
    {"volumeClaimTemplates", objects},
    {"template", mapping, template_forms},
    {"jobTemplate", mapping, job_template_forms},
};
constexpr field_form object_forms[] = {{"metadata", mapping}, {"spec", inner, workload_spec_forms}};

class search {
 public:
  std::vector<form_fault> found;

  void fields(const node* parent, const std::string& path, field_table table) {
    if (!parent || !parent->mapping()) return;
    for (const auto& entry : parent->entries) {
      const std::string_view name = entry.key->text;
      const auto row = std::ranges::find(table, name, &field_form::name);
      if (row == table.end() || text::yaml::find_entry(parent, name) != &entry) continue;
      value({entry.key, entry.value, (path.empty() ? "" : path + ".") + std::string(name), form::text}, *row);
    }
  }

 private:
  static bool is_text(const node& value) { return value.scalar() && type_of(value) == text::yaml::type::text; }
  static bool is_flag(const node& value) { return value.scalar() && type_of(value) == text::yaml::type::boolean; }
  static bool is_number(const node& value, std::int64_t least, std::int64_t most) {
    const auto number = whole_number(value);
    return number && *number >= least && *number <= most;
  }

  void unless(bool legal, form_fault spot, form expected) {
    spot.expected = expected;
    if (!legal) found.push_back(std::move(spot));
  }

  /// Null is what an empty field is: the API server takes its default.
  void value(const form_fault& spot, const field_form& row) {
    const auto& is = *spot.value;
    if (is.is == node::shape::null || (is.scalar() && type_of(is) == text::yaml::type::null)) return;
    constexpr auto most = std::numeric_limits<std::int32_t>::max();
    switch (row.is) {
      case text:
        return unless(is_text(is), spot, form::text);
      case number:
        return unless(is_number(is, std::numeric_limits<std::int32_t>::min(), most), spot, form::number);
      case count:
        return unless(is_number(is, 0, most), spot, form::count);
      case long_number:
        return unless(is_number(is, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()),
                      spot, form::long_number);
      case flag:
        return unless(is_flag(is), spot, form::flag);
      case mapping:
        unless(is.mapping(), spot, form::mapping);
        return fields(&is, spot.field, row.fields);
      case inner:
        return fields(&is, spot.field, row.fields);
      case texts:
      case objects:
        unless(is.sequence(), spot, form::list);
        return items(is, spot.field, row);
    }
  }

  void items(const node& list, const std::string& path, const field_form& row) {
    if (!list.sequence()) return;
    const field_form each{{}, row.is == texts ? text : mapping, row.fields};
    std::size_t index = 0;
    for (const auto* item : list.items) {
      value({item, item, path + "[" + std::to_string(index++) + "]", form::text}, each);
    }
  }
};

std::vector<form_fault> faults_in(const node* parent, const std::string& path, field_table table) {
  search search;
  search.fields(parent, path, table);
  return std::move(search.found);
}

}  // namespace

std::optional<std::int64_t> whole_number(const node& value) {
  if (!value.scalar()) return std::nullopt;
  const auto type = type_of(value);
  if (type != text::yaml::type::integer && type != text::yaml::type::real) return std::nullopt;
  const auto digits = canonical(value);
  std::int64_t out = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  if (failed == std::errc() && end == digits.data() + digits.size()) return out;
  if (type == text::yaml::type::integer) return std::nullopt;
  // kubectl writes a fraction as JSON does: 3.0 is 3, and so is 0.3e1.
  const double number = std::strtod(digits.c_str(), nullptr);
  constexpr double exact = 9.0e15;
  if (!(std::abs(number) < exact) || std::trunc(number) != number) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

std::vector<form_fault> of_metadata(const node* metadata, const std::string& path) {
  return faults_in(metadata, path, metadata_forms);
}
std::vector<form_fault> of_workload(const node* object) { return faults_in(object, "", object_forms); }
std::vector<form_fault> of_pod_spec(const node* spec, const std::string& path) {
  return faults_in(spec, path, pod_spec_forms);
}
std::vector<form_fault> of_container(const node* container, const std::string& path) {
  return faults_in(container, path, container_forms);
}
std::vector<form_fault> of_replicas(const node* parent, const std::string& path) {
  return faults_in(parent, path, replicas_forms);
}

}  // namespace cli::field_forms
