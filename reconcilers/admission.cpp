#include "reconcilers/admission.hpp"

#include <algorithm>
#include <array>
#include <expected>
#include <span>
#include <utility>
#include <vector>

#include "kube/config.hpp"
#include "kube/json_object.hpp"
#include "reconcilers/crl/evaluate.hpp"
#include "reconcilers/crl/pod_spec.hpp"
#include "reconcilers/crl/text.hpp"
#include "reconcilers/crl/verdict.hpp"

namespace reconcilers {
namespace {

namespace json = kube::json;

constexpr std::string_view mirror_annotation = "kubernetes.io/config.mirror";
constexpr std::string_view too_much =
    "the pod has more than 256 containers, or names more than 4096 amounts of extended resources: more than is judged";
constexpr std::size_t max_uid = 256;
constexpr std::size_t max_message = 4000;      // what CEL may say
constexpr std::size_t max_warning = 256;       // the API server cuts there when there are many
constexpr std::size_t max_warnings = 4096;     // bytes of all; beyond that it drops them
constexpr std::size_t kept_parser = 1u << 18;  // a larger review gets a parser of its own, freed with it

// ---- reading: one pass, members in any order

template <class T>
using understood = std::expected<T, std::string>;  // the error is the line that is answered

/// What a review says beside its objects.
struct envelope {
  std::string uid, kind, operation, ns, sub_resource;
};

/// The members of one JSON object that we read: each may be there once, or two readers would see two reviews.
template <std::size_t N>
class members {
 public:
  explicit members(const std::array<std::string_view, N>& names) : names_(names) {}
  /// The number of a member we read; N for any other.
  std::size_t number(std::string_view name) {
    const auto at = static_cast<std::size_t>(std::ranges::find(names_, name) - names_.begin());
    if (at < N && std::exchange(seen_[at], true)) twice_ = names_[at];
    return at;
  }
  std::string_view twice() const { return twice_; }

 private:
  const std::array<std::string_view, N>& names_;
  std::array<bool, N> seen_{};
  std::string_view twice_;
};

struct top {
  enum : std::size_t { api_version, kind, request };
};
constexpr std::array<std::string_view, 3> top_names{"apiVersion", "kind", "request"};
struct asked {
  enum : std::size_t { uid, kind, operation, ns, sub_resource, object, old_object };
};
constexpr std::array<std::string_view, 7> asked_names{"uid",         "kind",   "operation", "namespace",
                                                      "subResource", "object", "oldObject"};

std::string kind_in(json::value of) {
  std::string out;
  json::each_member(of, [&](std::string_view key, json::value field) {
    if (key == "kind") out = json::text_or(field);
  });
  return out;
}

/// Returns what is wrong with it, in one line; empty when nothing is.
template <class Object>
std::string read_request(json::value of, envelope& into, Object take) {
  members known(asked_names);
  for (auto member : of.get_object()) {
    const auto which = known.number(member.unescaped_key());
    json::value field = member.value();
    if (which == asked::uid) into.uid = json::text_or(field);
    if (which == asked::kind) into.kind = kind_in(field);
    if (which == asked::operation) into.operation = json::text_or(field);
    if (which == asked::ns) into.ns = json::text_or(field);
    if (which == asked::sub_resource) into.sub_resource = json::text_or(field);
    if ((which == asked::object || which == asked::old_object) && !field.is_null())
      take(which == asked::old_object, field);
  }
  if (!known.twice().empty()) return "request." + std::string(known.twice()) + " is there twice";
  if (into.uid.empty()) return "request.uid is missing or no text";
  if (into.uid.size() > max_uid) return "request.uid has more than 256 bytes";
  return {};
}

/// `take(is_old, value)` is given the objects that are there; views it keeps live as long as `in`.
template <class Object>
understood<envelope> read(json::document& in, std::string_view review, Object take) {
  const auto not_one = [](std::string why) { return std::unexpected("not an AdmissionReview: " + std::move(why)); };
  envelope out;
  std::string version, kind, problem = "there is no request";
  try {
    auto root = in.open(review);
    members known(top_names);
    for (auto member : root.get_object()) {
      const auto which = known.number(member.unescaped_key());
      if (which == top::api_version) version = json::text_or(member.value());
      if (which == top::kind) kind = json::text_or(member.value());
      if (which == top::request) problem = read_request(member.value(), out, take);
    }
    const bool ended = root.current_location().error() == simdjson::OUT_OF_BOUNDS;
    if (!ended) return not_one("there is more after its end");
    if (!known.twice().empty()) return not_one(std::string(known.twice()) + " is there twice");
  } catch (const simdjson::simdjson_error& thrown) {
    return not_one(thrown.what());
  }
  if (version != "admission.k8s.io/v1" || kind != "AdmissionReview")
    return not_one("apiVersion is \"" + crl::shown(version) + "\" and kind is \"" + crl::shown(kind) +
                   "\"; wanted are admission.k8s.io/v1 and AdmissionReview");
  if (!problem.empty()) return not_one(std::move(problem));
  return out;
}

/// One parser is kept for what is usual; a large review must not leave its memory behind.
json::document& parser_for(std::string_view review, json::document& of_its_own) {
  static thread_local json::document kept;
  return review.size() <= kept_parser ? kept : of_its_own;
}

understood<void> is_about(const envelope& review, std::string_view kind, std::string_view path) {
  if (review.kind == kind) return {};
  return std::unexpected("request.kind is \"" + crl::shown(review.kind) + "\"; " + std::string(path) + " judges " +
                         std::string(kind));
}

// ---- answering

/// As the content of a JSON string. `text` is UTF-8: it came out of JSON or out of `shown`.
void append_escaped(std::string& to, std::string_view text) {
  static constexpr char figures[] = "0123456789abcdef";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      to += '\\';
      to += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      to += "\\u00";
      to += figures[static_cast<unsigned char>(c) >> 4];
      to += figures[c & 15];
    } else {
      to += c;
    }
  }
}

/// What is answered to a review that was understood.
struct decision {
  std::string refusal;  ///< empty: allowed
  std::vector<std::string> warnings;
  std::string patch;  ///< JSON patch; empty: none
};

review_answer answer(std::string_view uid, const decision& what) {
  std::string out = R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":")";
  append_escaped(out, uid);
  out += what.refusal.empty() ? R"(","allowed":true)" : R"(","allowed":false)";
  if (!what.refusal.empty()) {
    out += R"(,"status":{"status":"Failure","code":403,"reason":"Forbidden","message":")";
    append_escaped(out, what.refusal);
    out += "\"}";
  }
  for (std::size_t i = 0; i < what.warnings.size(); ++i) {
    out += i == 0 ? R"(,"warnings":[")" : R"(",")";
    append_escaped(out, what.warnings[i]);
  }
  if (!what.warnings.empty()) out += "\"]";
  if (!what.patch.empty()) {
    out += R"(,"patchType":"JSONPatch","patch":")";
    out += kube::base64_encode(what.patch);
    out += '"';
  }
  out += "}}";
  return {200, std::move(out)};
}

review_answer malformed(std::string why) { return {400, std::move(why) + "\n"}; }

/// Texts that people wrote parts of, joined, as long as they find room.
std::string joined(std::span<const std::string> texts) {
  std::string out;
  for (const auto& one : texts) {
    if (out.size() > max_message) break;
    if (!out.empty()) out += "; ";
    out += one;
  }
  return crl::shown(out, max_message);
}

/// Adds `text` in pieces of at most 256 bytes, cut at a blank where there is one, else at the edge of a character.
void split(std::string_view text, std::vector<std::string>& into) {
  while (text.size() > max_warning) {
    auto end = text.rfind(' ', max_warning);
    if (end == std::string_view::npos || end == 0) {
      end = max_warning;
      while ((static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    }
    into.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
    if (text.starts_with(' ')) text.remove_prefix(1);
  }
  if (!text.empty()) into.emplace_back(text);
}

std::vector<std::string> warnings_of(std::span<const std::string> texts) {
  std::vector<std::string> out;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto text = crl::shown(texts[i], 1024);
    bytes += text.size();
    if (bytes > max_warnings - 64) {
      out.push_back("and " + std::to_string(texts.size() - i) + " more");
      break;
    }
    split(text, out);
  }
  return out;
}

/// The words of as many objections as an answer can hold; of the others only that they are there.
std::vector<std::string> words_of(std::span<const crl::objection> all) {
  constexpr std::size_t shown_at_most = 128;
  std::vector<std::string> out;
  for (const auto& one : all.first(std::min(all.size(), shown_at_most))) out.push_back(crl::text_of(one));
  if (all.size() > shown_at_most) out.push_back("and " + std::to_string(all.size() - shown_at_most) + " more");
  return out;
}

// ---- pods

struct pod_review {
  envelope about;
  bool there = false, mirror = false;
  crl::pod_spec spec;
};

void read_pod(json::value of, pod_review& into) {
  json::each_member(of, [&](std::string_view key, json::value field) {
    if (key == "spec") {
      into.spec = crl::read_pod_spec(field);
    } else if (key == "metadata") {
      json::each_member(field, [&](std::string_view name, json::value part) {
        if (name != "annotations") return;
        json::each_member(part, [&](std::string_view annotation, json::value) {
          into.mirror = into.mirror || annotation == mirror_annotation;
        });
      });
    }
  });
}

understood<pod_review> read_pod_review(std::string_view review, std::string_view path) {
  json::document of_its_own;
  pod_review out;
  auto about = read(parser_for(review, of_its_own), review, [&](bool old, json::value value) {
    if (old) return;
    out.there = true;
    read_pod(value, out);
  });
  if (!about) return std::unexpected(std::move(about.error()));
  if (auto fits = is_about(*about, "Pod", path); !fits) return std::unexpected(std::move(fits.error()));
  if (about->operation == "CREATE" && about->sub_resource.empty() && !out.there)
    return std::unexpected("not an AdmissionReview: request.object is missing");
  out.about = std::move(*about);
  return out;
}

/// Whether rules apply to it at all. The configuration leaves the others out already; this is for one that does not.
bool concerned(const pod_review& review, const pod_admission& by) {
  static constexpr std::array<std::string_view, 3> system{"kube-system", "kube-public", "kube-node-lease"};
  const auto& about = review.about;
  return by.mode != enforcement::off && about.operation == "CREATE" && about.sub_resource.empty() && !review.mirror &&
         about.ns != by.own_namespace && std::ranges::find(system, about.ns) == system.end();
}

void append_add(std::string& to, std::string_view path, std::string_view value) {
  to += to.empty() ? '[' : ',';
  to += R"({"op":"add","path":")";
  append_escaped(to, path);
  to += R"(","value":")";
  append_escaped(to, value);
  to += "\"}";
}

/// `key` as one part of a JSON pointer.
std::string pointer_part(std::string_view key) {
  std::string out;
  for (const char c : key) out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return out;
}

std::string patch_of(const crl::ruling& ruling, const crl::pod_spec& spec) {
  std::string out;
  for (const auto* where : {"/resources/limits/", "/resources/requests/"}) {
    for (const auto& one : ruling.fills)
      append_add(out, spec.path(one.container) + where + pointer_part(one.key), std::to_string(one.amount));
  }
  if (!ruling.runtime_class.empty()) append_add(out, "/spec/runtimeClassName", ruling.runtime_class);
  if (!out.empty()) out += ']';
  return out;
}

// ---- ConfigMaps

void read_entries(json::value of, crl::config_map_view::entries& into) {
  json::each_member(of, [&](std::string_view key, json::value text) { into.emplace_back(key, json::text_or(text)); });
}

void read_config_map(json::value of, crl::config_map_view& into) {
  json::each_member(of, [&](std::string_view key, json::value field) {
    if (key == "metadata") {
      json::each_member(field, [&](std::string_view name, json::value part) {
        if (name == "name") into.key.name = json::text_or(part);
        if (name == "labels") read_entries(part, into.labels);
      });
    } else if (key == "data") {
      read_entries(field, into.data);
    } else if (key == "binaryData") {
      json::each_member(field, [&](std::string_view, json::value) { ++into.binary; });
    }
  });
}

std::vector<crl::finding> findings_of(const crl::config_map_view& of, crl::kind as, const crl::parse_settings& by) {
  auto out = as == crl::kind::declaration ? crl::parse(of, by).findings : crl::parse_device(of, by).findings;
  crl::sort(out);
  return out;
}

decision judge(const crl::config_map_view& of, const crl::parse_settings& by) {
  decision out;
  const auto as = crl::kind_of(of);
  if (as == crl::kind::none) {
    const std::string text = "ConfigMap " + of.key.to_string() +
                             " declares nothing: its name begins with cf-crl-, but it has neither the label "
                             "features.cpaas.io/type=CustomResourceLimitation nor device-plugin.cpaas.io/config=true";
    if (of.key.name.starts_with("cf-crl-")) out.warnings = warnings_of({&text, 1});
    return out;
  }
  std::vector<std::string> wrong, doubtful;
  // Nobody reads declarations elsewhere, so nothing is refused there.
  const bool read_here = of.key.ns == by.ns;
  for (const auto& one : findings_of(of, as, by)) {
    const bool refuses = read_here && crl::severity_of(one) == crl::severity::error;
    (refuses ? wrong : doubtful).push_back(crl::message_of(one, crl::language::en));
  }
  out.refusal = joined(wrong);
  out.warnings = warnings_of(doubtful);
  return out;
}

}  // namespace

enforcement enforcement_of(std::string_view text) noexcept {
  return text == "Deny" ? enforcement::deny : text == "Warn" ? enforcement::warn : enforcement::off;
}

std::string_view to_string(admission_form of) noexcept {
  switch (of) {
    case admission_form::policies:
      return "policies";
    case admission_form::webhook_fills:
      return "webhook_fills";
    case admission_form::webhook:
      break;
  }
  return "webhook";
}

admission_offers offers_of(std::string_view api_resource_list) {
  json::document in;
  admission_offers out;
  try {
    auto root = in.open(api_resource_list);
    for (auto member : root.get_object()) {
      const std::string_view key = member.unescaped_key();
      json::value field = member.value();
      if (key != "resources") continue;
      json::each_item(field, [&](json::value one) {
        json::each_member(one, [&](std::string_view name, json::value part) {
          if (name != "name") return;
          const auto text = json::text_or(part);
          if (text == "validatingadmissionpolicies") out.validating_policies = true;
          if (text == "mutatingadmissionpolicies") out.mutating_policies = true;
        });
      });
    }
  } catch (const simdjson::simdjson_error&) {
    return {};
  }
  return out;
}

admission_form form_of(bool forced, const admission_offers& offers) noexcept {
  if (forced || !offers.validating_policies) return admission_form::webhook;
  return offers.mutating_policies ? admission_form::policies : admission_form::webhook_fills;
}

review_answer mutate_pod(std::string_view review, const pod_admission& by) {
  const auto pod = read_pod_review(review, mutate_pods_route.path);
  if (!pod) return malformed(pod.error());
  decision out;
  if (by.mode == enforcement::deny && concerned(*pod, by) && pod->spec.complete)
    out.patch =
        patch_of(crl::evaluate(by.rules, pod->spec.containers, pod->spec.runtime_class, {.judge = false}), pod->spec);
  return answer(pod->about.uid, out);
}

review_answer validate_pod(std::string_view review, const pod_admission& by) {
  const auto pod = read_pod_review(review, validate_pods_route.path);
  if (!pod) return malformed(pod.error());
  decision out;
  if (!concerned(*pod, by)) return answer(pod->about.uid, out);
  std::vector<std::string> refused, said;
  if (pod->spec.complete) {
    const auto ruling = crl::evaluate(by.rules, pod->spec.containers, pod->spec.runtime_class, {.fill = false});
    refused = words_of(ruling.refused);
    said = words_of(ruling.said);
  } else {
    refused.emplace_back(too_much);
  }
  if (by.mode == enforcement::deny) {
    out.refusal = joined(refused);
  } else {
    std::ranges::move(refused, std::inserter(said, said.begin()));
  }
  out.warnings = warnings_of(said);
  return answer(pod->about.uid, out);
}

review_answer validate_config_map(std::string_view review, const crl::parse_settings& settings) {
  json::document of_its_own;
  crl::config_map_view now, before;
  bool there = false, old_there = false;
  const auto about = read(parser_for(review, of_its_own), review, [&](bool old, json::value value) {
    (old ? old_there : there) = true;
    read_config_map(value, old ? before : now);
  });
  if (!about) return malformed(about.error());
  if (auto fits = is_about(*about, "ConfigMap", validate_config_maps_route.path); !fits) return malformed(fits.error());
  const bool judged = (about->operation == "CREATE" || about->operation == "UPDATE") && about->sub_resource.empty();
  if (!judged) return answer(about->uid, {});
  if (!there) return malformed("not an AdmissionReview: request.object is missing");
  now.key.ns = about->ns;
  const bool same = about->operation == "UPDATE" && old_there && crl::content_hash(now) == crl::content_hash(before);
  return answer(about->uid, same ? decision() : judge(now, settings));
}

}  // namespace reconcilers
