#include "cli/cluster/refusal.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <vector>

#include "cli/cluster/part_refused.hpp"
#include "text/text.hpp"

namespace cli {

namespace {

/// What the API server names: `User "alice" cannot list ... in the namespace "kube-public"`.
std::string named_in(std::string_view message, std::string_view before) {
  const auto begin = message.find(before);
  if (begin == message.npos) return {};
  message.remove_prefix(begin + before.size());
  return std::string(message.substr(0, message.find('"')));
}

/// A word that a shell takes as it is.
std::string quoted(const std::string& word) {
  const auto is_plain = [](unsigned char c) { return std::isalnum(c) || std::string_view("-_.:@/").contains(c); };
  if (std::ranges::all_of(word, is_plain)) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string name_of(std::string_view role, const std::string& person) {
  std::string out(role);
  out += '-';
  for (const unsigned char c : person) out += std::isalnum(c) ? static_cast<char>(std::tolower(c)) : '-';
  return out;
}

std::string subject_of(const std::string& person) {
  constexpr std::string_view account = "system:serviceaccount:";
  if (person.starts_with(account)) return "--serviceaccount=" + quoted(person.substr(account.size()));
  return "--user=" + quoted(person.empty() ? "NAME" : person);
}

/// One after the other: what is missing, on what, and what the server adds of its own.
struct refused_request {
  std::string person, verb, resource, ns, reason;
};

/// Of the words of RBAC: `User "alice" cannot list resource "pods" in API group "" in the namespace "lab"`.
std::optional<refused_request> refused_request_in(std::string_view message) {
  const auto begin = message.find("User \"");
  if (begin == message.npos) return std::nullopt;
  const auto words = message.substr(begin);
  refused_request out{named_in(words, "User \""), {}, named_in(words, "resource \""), {}, {}};
  constexpr std::string_view refusing = "\" cannot ", whole = "at the cluster scope", place = "in the namespace \"";
  const auto verb = words.find(refusing);
  if (verb == words.npos || out.person.empty() || out.resource.empty()) return std::nullopt;
  out.verb = words.substr(verb + refusing.size());
  out.verb.resize(std::min(out.verb.find(' '), out.verb.size()));
  out.ns = named_in(words, place);
  const auto scope = out.ns.empty() ? words.find(whole) : words.find(place);
  if (scope == words.npos) return std::nullopt;
  const auto end = out.ns.empty() ? scope + whole.size() : scope + place.size() + out.ns.size() + 1;
  if (const auto rest = words.substr(end); rest.starts_with(": ")) out.reason = rest.substr(2);
  const auto group = named_in(words, "API group \"");
  if (!group.empty()) out.resource += "." + group;
  return out;
}

std::string bound_in_cluster(std::string_view role, const std::string& person) {
  return "kubectl create clusterrolebinding " + name_of(role, person) + " --clusterrole=" + std::string(role) + " " +
         subject_of(person);
}
std::string bound_in_namespace(std::string_view role, std::string_view type, const std::string& ns,
                               const std::string& person) {
  return "kubectl create rolebinding " + name_of(role, person) + " --namespace=" + quoted(ns) + " --" +
         std::string(type) + "=" + std::string(role) + " " + subject_of(person);
}

text::phrase_argument view_grant(const std::string& ns, const std::string& person) {
  return {"grant",
          text::phrase{"transport.grant.view",
                       {{"namespace", ns}, {"command", bound_in_namespace("view", "clusterrole", ns, person)}}}};
}

/// For a person who may not read: the roles that let people read it, the smallest first.
std::vector<text::phrase_argument> grants_of(const kube::error& refused, const std::string& person,
                                             const std::string& ns) {
  const std::string_view operation(refused.message);
  if (!operation.starts_with("list ") && !operation.starts_with("get ")) return {};
  const bool is_of_declarations = operation.starts_with("list configmaps");
  const auto declarations = is_of_declarations && !ns.empty() ? ns : std::string("kube-public");
  const auto declared = bound_in_namespace("quartermaster-user", "role", declarations, person);
  if (is_of_declarations)
    return {
        {"grant", text::phrase{"transport.grant.declarations", {{"namespace", declarations}, {"command", declared}}}}};
  if (operation.starts_with("list acceleratorusages"))
    return {{"grant", text::phrase{"transport.grant.usage",
                                   {{"command", bound_in_cluster("quartermaster-chargeback", person)}}}}};
  std::vector<text::phrase_argument> out;
  if (!ns.empty()) out.push_back(view_grant(ns, person));
  out.emplace_back("grant",
                   text::phrase{"transport.grant.user",
                                {{"command", bound_in_cluster("quartermaster-user", person)}, {"command", declared}}});
  return out;
}

/// Who was refused, of the arguments of phrase_of.
std::string person_in(const text::phrase& refused) {
  const auto match = std::ranges::find(refused.arguments, "person", &text::phrase_argument::name);
  return match == refused.arguments.end() ? std::string() : match->values.front();
}

text::phrase with_grant(text::phrase refused, text::phrase_argument grant) {
  const auto first = std::ranges::find(refused.arguments, "grant", &text::phrase_argument::name);
  const bool is_there = first != refused.arguments.end() && first->inner.key == grant.inner.key;
  if (!is_there) refused.arguments.insert(first, std::move(grant));
  return refused;
}

}  // namespace

text::phrase phrase_without_grants(const kube::error& error) {
  if (error.code != kube::errc::forbidden)
    return {"transport." + std::string(to_string(error.code)), {{"detail", error.message}}};
  const auto request = refused_request_in(error.message);
  if (!request) return {"transport.forbidden", {{"detail", error.message}}};
  const text::phrase_argument person{"person", text::shown(request->person, 200)};
  std::vector<text::phrase_argument> words{person, {"verb", request->verb}, {"resource", request->resource}};
  if (!request->ns.empty()) words.emplace_back("namespace", request->ns);
  words.emplace_back("reason", request->reason.empty() ? "" : " (" + text::shown(request->reason, 200) + ")");
  const auto* key = request->ns.empty() ? "transport.refused.cluster" : "transport.refused.namespace";
  return {"transport.forbidden", {{"detail", text::phrase{key, std::move(words)}}, person}};
}

text::phrase phrase_of(const kube::error& error) {
  auto out = phrase_without_grants(error);
  if (error.code != kube::errc::forbidden) return out;
  const auto request = refused_request_in(error.message);
  for (auto& grant : grants_of(error, request ? request->person : "", request ? request->ns : ""))
    out.arguments.push_back(std::move(grant));
  return out;
}

text::phrase part_refused(std::string key, text::phrase refused) {
  std::vector<text::phrase_argument> arguments;
  for (const auto& argument : refused.arguments)
    if (argument.name == "grant") arguments.push_back(argument);
  arguments.insert(arguments.begin(), text::phrase_argument{"problem", std::move(refused)});
  return {std::move(key), std::move(arguments)};
}

text::phrase phrase_without_grants(const cluster_error& error) {
  return error.words.empty() ? phrase_without_grants(static_cast<const kube::error&>(error)) : error.words;
}

text::phrase phrase_of(const cluster_error& error) {
  return error.words.empty() ? phrase_of(static_cast<const kube::error&>(error)) : error.words;
}

text::phrase where_view_suffices(text::phrase refused, const std::string& ns) {
  auto grant = view_grant(ns, person_in(refused));
  return with_grant(std::move(refused), std::move(grant));
}

text::phrase where_everyone_suffices(text::phrase refused) {
  auto command = bound_in_cluster("quartermaster-everyone", person_in(refused));
  return with_grant(std::move(refused),
                    {"grant", text::phrase{"transport.grant.everyone", {{"command", std::move(command)}}}});
}

std::expected<void, text::phrase> in_words(const cluster_answer& result) {
  if (result) return {};
  return std::unexpected(phrase_of(result.error()));
}

}  // namespace cli
