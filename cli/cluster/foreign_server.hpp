#pragma once
// A server that is no API server: a login page, a proxy, a program that happens to listen there. It may answer anything
// with status 200, and readers of lists would then say of a field that it is missing.

#include <optional>
#include <string>

#include "kube/config.hpp"
#include "kube/transport.hpp"
#include "text/phrase.hpp"

namespace cli {

/// Passes requests on, and refuses answers that no API server gives. Each verb asks through one of these.
class answer_check final : public kube::transport {
 public:
  /// Both must outlive it.
  answer_check(kube::transport& inner, const kube::cluster_config& cluster) : inner_(inner), cluster_(cluster) {}

  /// errc::decode: `fault` says it in words.
  kube::task<kube::response> send(kube::request request) override;
  kube::task<kube::response> stream(kube::request request, kube::chunk_sink sink) override;

  /// Why the last answer is none of Kubernetes. Where it looked like one and its reader failed: `problem` is what the
  /// reader says, of the last answer. Nothing: there was no answer, or the error is not about one.
  std::optional<text::phrase> fault(const text::phrase& problem) const;

 private:
  text::phrase words(const std::string& key, std::vector<text::phrase_argument> more) const;

  kube::transport& inner_;
  const kube::cluster_config& cluster_;
  text::phrase foreign_;
  std::string path_;
  int status_ = 0;  ///< of the last answer; 0: there was none
};

}  // namespace cli
