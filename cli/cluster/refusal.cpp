#include "cli/cluster/refusal.hpp"

#include <algorithm>
#include <cctype>

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

std::string cluster_wide(std::string_view role, const std::string& person) {
  return "kubectl create clusterrolebinding " + name_of(role, person) + " --clusterrole=" + std::string(role) + " " +
         subject_of(person);
}

}  // namespace

text::phrase role_hint(const kube::error& refused) {
  const std::string_view operation(refused.message);
  const bool reads = operation.starts_with("list ") || operation.starts_with("get ");
  if (refused.code != kube::errc::forbidden || !reads) return {};
  const bool is_of_declarations = operation.starts_with("list configmaps");
  const auto person = named_in(operation, "User \"");
  const auto ns = is_of_declarations ? named_in(operation, "in the namespace \"") : std::string();
  const text::phrase_argument declarations{
      "declarations", "kubectl create rolebinding " + name_of("quartermaster-user", person) + " --namespace=" +
                          (ns.empty() ? "kube-public" : ns) + " --role=quartermaster-user " + subject_of(person)};
  if (is_of_declarations) return {"transport.hint.declarations", {declarations}};
  if (operation.starts_with("list acceleratorusages"))
    return {"transport.hint.usage", {{"usage", cluster_wide("quartermaster-chargeback", person)}}};
  return {"transport.hint.user", {{"user", cluster_wide("quartermaster-user", person)}, declarations}};
}

text::phrase phrase_without_hint(const kube::error& error) {
  text::phrase out{"transport." + std::string(to_string(error.code)), {{"detail", error.message}}};
  if (error.code == kube::errc::forbidden) out.arguments.push_back({"hint", ""});
  return out;
}

text::phrase phrase_of(const kube::error& error) {
  auto out = phrase_without_hint(error);
  if (error.code == kube::errc::forbidden) out.arguments.back() = {"hint", role_hint(error)};
  return out;
}

std::expected<void, text::phrase> in_words(const kube::result<void>& result) {
  if (result) return {};
  return std::unexpected(phrase_of(result.error()));
}

}  // namespace cli
