#pragma once
// The certificate a server shows: out of files, read again when they change, or given by another part of the program. A
// new pair is accepted only when it is good: it parses, the key belongs to it, and it has not expired. Otherwise the
// old one stays in use and the metric says so. Without a good one, at the start too, nothing is shown and the program
// goes on: what renews certificates may be a part of it. New connections get the new one, open ones go on.

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "controller/metrics.hpp"
#include "kube/error.hpp"

namespace controller {

/// PEM; the certificate has the whole chain.
struct pem_pair {
  std::string certificate, key;

  friend bool operator==(const pem_pair&, const pem_pair&) = default;
};

struct certificate_files {
  std::string certificate, key;  ///< PEM; the certificate file has the whole chain. Empty: the pair comes by `take`
  std::string client_ca;         ///< not empty: clients must show a certificate signed by it
};

/// A pair that is given. `client_ca`, where it has a value: clients must show a certificate that one of these signed; a
/// text without any certificate makes the pair unusable.
struct given_certificate {
  pem_pair pair;
  std::optional<std::string> client_ca;

  friend bool operator==(const given_certificate&, const given_certificate&) = default;
};

struct certificate_metrics {
  explicit certificate_metrics(registry& registry);
  family<counter>& reloads;  ///< by server and result: ok, rejected
  family<gauge>& expires;    ///< seconds since 1970
  family<gauge>& rejected;   ///< 1 while what is on disk, or was given, is not what is served
};

class certificate {
 public:
  /// `server` is the metric label.
  certificate(certificate_files files, std::string server, certificate_metrics& metrics);

  /// The first load. Files that cannot be used are a log line and the metric; `refresh` tries again.
  void load();
  /// To be called every few seconds. Looks at size, inode and time of the files; reads only when one changed, and when
  /// the last try failed.
  void refresh();
  /// Shows this pair from now on. A bad one is an error of one line, and what was shown stays.
  kube::result<void> take(const given_certificate& given_certificate);
  /// The pair there is now is not to be shown, for this reason: what was shown stays, and the metric says so.
  void reject(std::string_view reason);
  /// What new connections are to use; null before the first good pair.
  std::shared_ptr<boost::asio::ssl::context> context() const { return context_; }
  /// Of the leaf in use, seconds since 1970.
  std::int64_t expires() const { return expires_; }

 private:
  struct loaded {
    std::shared_ptr<boost::asio::ssl::context> context;
    std::int64_t expires = 0;
  };
  kube::result<loaded> read() const;
  kube::result<void> require_client(boost::asio::ssl::context& context) const;
  kube::result<void> reload();
  std::string fingerprint() const;
  void report(std::string_view message, const std::string& reason);

  certificate_files files_;
  std::string server_;
  std::optional<given_certificate> material_;  ///< used instead of the files
  certificate_metrics& metrics_;
  std::shared_ptr<boost::asio::ssl::context> context_;
  std::int64_t expires_ = 0;
  std::string seen_, reported_;
  bool failing_ = false;
};

}  // namespace controller
