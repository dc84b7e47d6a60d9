#include "cli/cluster/role_hint.hpp"

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

std::string role_hint(const kube::error& refused) {
  const std::string_view operation(refused.message);
  const bool reads = operation.starts_with("list ") || operation.starts_with("get ");
  if (refused.code != kube::errc::forbidden || !reads) return {};
  const auto person = named_in(operation, "User \"");
  const auto ns = operation.starts_with("list configmaps") ? named_in(operation, "in the namespace \"") : std::string();
  constexpr std::string_view role = "quartermaster-user";
  const auto of_declarations = "kubectl create rolebinding " + name_of(role, person) +
                               " --namespace=" + (ns.empty() ? "kube-public" : ns) + " --role=quartermaster-user " +
                               subject_of(person);
  if (operation.starts_with("list configmaps"))
    return "; where declarations are, the chart's Role quartermaster-user allows it; an administrator binds it by: " +
           of_declarations;
  if (operation.starts_with("list acceleratorusages"))
    return "; the chart's ClusterRole quartermaster-chargeback allows it; an administrator binds it by: " +
           cluster_wide("quartermaster-chargeback", person);
  return "; the chart's ClusterRole quartermaster-user allows people to read this; an administrator binds it by: " +
         cluster_wide(role, person) + "; and for declarations: " + of_declarations;
}

}  // namespace cli
