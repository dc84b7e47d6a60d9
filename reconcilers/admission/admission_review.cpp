#include "reconcilers/admission/admission_review.hpp"

#include <algorithm>
#include <array>

#include "kube/config.hpp"
#include "text/text.hpp"

namespace reconcilers::reviews {
namespace {

namespace on_demand = kube::on_demand;

constexpr std::size_t max_uid = 256;
constexpr std::size_t max_message = 4000;      // what CEL may say
constexpr std::size_t max_warning = 256;       // the API server cuts there when there are many
constexpr std::size_t max_warnings = 4096;     // bytes of all; beyond that it drops them
constexpr std::size_t kept_parser = 1u << 18;  // a larger review gets a parser of its own, freed with it

/// The members of one JSON object that we read: each may be there once, or two readers would see two reviews.
template <std::size_t N>
class members {
 public:
  explicit members(const std::array<std::string_view, N>& names) : names_(names) {}
  /// The number of a member we read; N for any other.
  std::size_t number(std::string_view name) {
    const auto match = static_cast<std::size_t>(std::ranges::find(names_, name) - names_.begin());
    if (match < N && std::exchange(seen_[match], true)) twice_ = names_[match];
    return match;
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

std::string kind_in(on_demand::value object) {
  std::string out;
  on_demand::each_member(object, [&](std::string_view key, on_demand::value field) {
    if (key == "kind") out = on_demand::text_or(field);
  });
  return out;
}

/// Returns what is wrong with it, in one line; empty when nothing is.
std::string read_request(on_demand::value request, envelope& envelope, const object_reader& take) {
  members known(asked_names);
  for (auto member : request.get_object()) {
    const auto index = known.number(member.unescaped_key());
    on_demand::value field = member.value();
    if (index == asked::uid) envelope.uid = on_demand::text_or(field);
    if (index == asked::kind) envelope.kind = kind_in(field);
    if (index == asked::operation) envelope.operation = on_demand::text_or(field);
    if (index == asked::ns) envelope.ns = on_demand::text_or(field);
    if (index == asked::sub_resource) envelope.sub_resource = on_demand::text_or(field);
    if ((index == asked::object || index == asked::old_object) && !field.is_null())
      take(index == asked::old_object, field);
  }
  if (!known.twice().empty()) return "request." + std::string(known.twice()) + " is there twice";
  if (envelope.uid.empty()) return "request.uid is missing or no text";
  if (envelope.uid.size() > max_uid) return "request.uid has more than 256 bytes";
  return {};
}

/// Adds `text` in pieces of at most 256 bytes, cut at a blank where there is one, else at the edge of a character.
void split(std::string_view text, std::vector<std::string>& output) {
  while (text.size() > max_warning) {
    auto end = text.rfind(' ', max_warning);
    if (end == std::string_view::npos || end == 0) {
      end = max_warning;
      while ((static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    }
    output.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
    if (text.starts_with(' ')) text.remove_prefix(1);
  }
  if (!text.empty()) output.emplace_back(text);
}

std::string_view outcome_of(const decision& decision) {
  if (!decision.refusal.empty()) return "refused";
  if (!decision.patch.empty()) return "filled";
  return decision.warnings.empty() ? "allowed" : "warned";
}

}  // namespace

understood<envelope> read(on_demand::document& document, std::string_view review, const object_reader& take) {
  const auto not_one = [](std::string reason) {
    return std::unexpected("not an AdmissionReview: " + std::move(reason));
  };
  envelope out;
  std::string version, kind, problem = "there is no request";
  try {
    auto root = document.open(review);
    members known(top_names);
    for (auto member : root.get_object()) {
      const auto index = known.number(member.unescaped_key());
      if (index == top::api_version) version = on_demand::text_or(member.value());
      if (index == top::kind) kind = on_demand::text_or(member.value());
      if (index == top::request) problem = read_request(member.value(), out, take);
    }
    const bool ended = root.current_location().error() == simdjson::OUT_OF_BOUNDS;
    if (!ended) return not_one("there is more after its end");
    if (!known.twice().empty()) return not_one(std::string(known.twice()) + " is there twice");
  } catch (const simdjson::simdjson_error& thrown) {
    return not_one(thrown.what());
  }
  if (version != "admission.k8s.io/v1" || kind != "AdmissionReview")
    return not_one("apiVersion is \"" + text::shown(version) + "\" and kind is \"" + text::shown(kind) +
                   "\"; wanted are admission.k8s.io/v1 and AdmissionReview");
  if (!problem.empty()) return not_one(std::move(problem));
  return out;
}

on_demand::document& parser_for(std::string_view review, on_demand::document& of_its_own) {
  static thread_local on_demand::document kept;
  return review.size() <= kept_parser ? kept : of_its_own;
}

understood<void> is_about(const envelope& review, std::string_view kind, std::string_view path) {
  if (review.kind == kind) return {};
  return std::unexpected("request.kind is \"" + text::shown(review.kind) + "\"; " + std::string(path) + " judges " +
                         std::string(kind));
}

void append_escaped(std::string& output, std::string_view text) {
  static constexpr char figures[] = "0123456789abcdef";
  const auto plain = [](char c) { return c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 0x20; };
  while (!text.empty()) {
    const auto end = static_cast<std::size_t>(std::ranges::find_if_not(text, plain) - text.begin());
    output.append(text.substr(0, end));
    if (end == text.size()) return;
    const char c = text[end];
    if (c == '"' || c == '\\') {
      output += '\\';
      output += c;
    } else {
      output += "\\u00";
      output += figures[static_cast<unsigned char>(c) >> 4];
      output += figures[c & 15];
    }
    text.remove_prefix(end + 1);
  }
}

review_answer answer(std::string_view uid, const decision& decision) {
  std::string out = R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":")";
  append_escaped(out, uid);
  out += decision.refusal.empty() ? R"(","allowed":true)" : R"(","allowed":false)";
  if (!decision.refusal.empty()) {
    out += R"(,"status":{"status":"Failure","code":403,"reason":"Forbidden","message":")";
    append_escaped(out, decision.refusal);
    out += "\"}";
  }
  for (std::size_t i = 0; i < decision.warnings.size(); ++i) {
    out += i == 0 ? R"(,"warnings":[")" : R"(",")";
    append_escaped(out, decision.warnings[i]);
  }
  if (!decision.warnings.empty()) out += "\"]";
  if (!decision.patch.empty()) {
    out += R"(,"patchType":"JSONPatch","patch":")";
    out += kube::base64_encode(decision.patch);
    out += '"';
  }
  out += "}}";
  return {200, std::move(out), outcome_of(decision)};
}

review_answer malformed(std::string reason) { return {400, std::move(reason) + "\n", "malformed"}; }

std::string joined(std::span<const std::string> texts) {
  std::string out;
  for (const auto& text : texts) {
    if (out.size() > max_message) break;
    if (!out.empty()) out += "; ";
    out += text;
  }
  return text::shown(out, max_message);
}

std::vector<std::string> warnings_of(std::span<const std::string> texts) {
  std::vector<std::string> out;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto text = text::shown(texts[i], 1024);
    bytes += text.size();
    if (bytes > max_warnings - 64) {
      out.push_back("and " + std::to_string(texts.size() - i) + " more");
      break;
    }
    split(text, out);
  }
  return out;
}

}  // namespace reconcilers::reviews
