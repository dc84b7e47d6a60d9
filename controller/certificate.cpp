#include "controller/certificate.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <ctime>
#include <utility>

#include "controller/log.hpp"
#include "controller/x509.hpp"

namespace controller {

namespace ssl = boost::asio::ssl;

namespace {

std::unexpected<kube::error> bad(std::string_view item, const std::string& source, std::string_view reason) {
  ERR_clear_error();
  return std::unexpected(kube::error{kube::errc::config, 0, fmt::format("{} {}: {}", item, source, reason), {}});
}

}  // namespace

certificate_metrics::certificate_metrics(registry& registry)
    : reloads(registry.counters("quartermaster_certificate_reloads_total", "Serving certificates read, by result.",
                                {"server", "result"})),
      expires(registry.gauges("quartermaster_certificate_expiry_seconds",
                              "End of the serving certificate, seconds since 1970.", {"server"})),
      rejected(registry.gauges("quartermaster_certificate_rejected",
                               "1 while a newer pair is unusable and an older one, or none, is served.", {"server"})) {}

certificate::certificate(certificate_files files, std::string server, certificate_metrics& metrics)
    : files_(std::move(files)), server_(std::move(server)), metrics_(metrics) {}

std::string certificate::fingerprint() const {
  std::string out;
  for (const auto* path : {&files_.certificate, &files_.key, &files_.client_ca}) {
    struct stat status{};
    if (path->empty() || stat(path->c_str(), &status) != 0) continue;
    out += fmt::format("{} {} {}.{};", status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
  }
  return out;
}

kube::result<certificate::loaded> certificate::read() const {
  loaded out;
  out.context = std::make_shared<ssl::context>(ssl::context::tls_server);
  boost::system::error_code failed;
  out.context->set_options(ssl::context::default_workarounds | ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1 |
                               ssl::context::no_compression,
                           failed);
  const std::string source = material_ ? "of server " + server_ : files_.certificate;
  const std::string key_from = material_ ? source : files_.key;
  if (material_) {
    out.context->use_certificate_chain(boost::asio::buffer(material_->pair.certificate), failed);
  } else {
    out.context->use_certificate_chain_file(files_.certificate, failed);
  }
  if (failed) return bad("certificate", source, failed.message());
  if (material_) {
    out.context->use_private_key(boost::asio::buffer(material_->pair.key), ssl::context::pem, failed);
  } else {
    out.context->use_private_key_file(files_.key, ssl::context::pem, failed);
  }
  if (failed) return bad("key", key_from, failed.message());
  SSL_CTX* const native = out.context->native_handle();
  if (SSL_CTX_check_private_key(native) != 1) return bad("key", key_from, "does not belong to the certificate");
  const X509* const leaf = SSL_CTX_get0_certificate(native);
  std::tm end{};
  if (leaf == nullptr || ASN1_TIME_to_tm(X509_get0_notAfter(leaf), &end) != 1)
    return bad("certificate", source, "no end date");
  out.expires = timegm(&end);
  if (X509_cmp_current_time(X509_get0_notAfter(leaf)) < 0) return bad("certificate", source, "has expired");
  if (const auto required = require_client(*out.context); !required) return std::unexpected(required.error());
  // Callers keep their connections for hours; tickets would only cost memory and a key to rotate.
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(native, 0);
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);
  return out;
}

kube::result<void> certificate::require_client(ssl::context& context) const {
  const bool has_client_ca = material_ && material_->client_ca;
  if (!has_client_ca && files_.client_ca.empty()) return {};
  boost::system::error_code failed;
  if (has_client_ca) {
    const auto authorities = x509::read(*material_->client_ca);
    if (authorities.empty()) return bad("client CA", "of server " + server_, "no certificate in it");
    for (const auto& authority : authorities) {
      context.add_certificate_authority(boost::asio::buffer(authority.pem), failed);
      if (failed) return bad("client CA", "of server " + server_, failed.message());
    }
  } else {
    context.load_verify_file(files_.client_ca, failed);
    if (failed) return bad("client CA", files_.client_ca, failed.message());
  }
  context.set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert, failed);
  if (failed) return bad("client CA", "of server " + server_, failed.message());
  return {};
}

void certificate::load() {
  if (files_.certificate.empty() && !material_) return;
  const auto done = reload();
  failing_ = !done;
  if (!done) report("no usable certificate, nothing is shown until there is one", done.error().message);
}

/// Once per reason: the files are tried every few seconds.
void certificate::report(std::string_view message, const std::string& reason) {
  metrics_.rejected.with({server_}).set(1);
  if (reason == reported_) return;
  reported_ = reason;
  log::warn(message, {{"server", server_}, {"error", reason}});
}

kube::result<void> certificate::reload() {
  seen_ = fingerprint();
  auto got = read();
  metrics_.reloads.with({server_, got ? "ok" : "rejected"}).add();
  if (!got) return std::unexpected(std::move(got.error()));
  context_ = std::move(got->context);
  expires_ = got->expires;
  reported_.clear();
  metrics_.expires.with({server_}).set(static_cast<double>(expires_));
  metrics_.rejected.with({server_}).set(0);
  return {};
}

kube::result<void> certificate::take(const given_certificate& given_certificate) {
  auto before = std::exchange(material_, given_certificate);
  auto done = reload();
  if (done) {
    failing_ = false;
    log::info("certificate taken", {{"server", server_}, {"expires", expires_}});
    return done;
  }
  metrics_.rejected.with({server_}).set(1);
  if (context_)
    material_ = std::move(before);
  else
    failing_ = true;  // tried again: what was wrong may be the file of the client CA
  return done;
}

void certificate::reject(std::string_view reason) {
  metrics_.reloads.with({server_, "rejected"}).add();
  metrics_.rejected.with({server_}).set(1);
  log::warn("new certificate rejected, the old one stays", {{"server", server_}, {"error", reason}});
}

void certificate::refresh() {
  if (files_.certificate.empty() && !material_) return;
  const bool changed = fingerprint() != seen_;
  if (!changed && !failing_) return;
  const bool was_failing = failing_;
  const auto done = reload();
  failing_ = !done;
  if (done) {
    log::info("certificate reloaded", {{"server", server_}, {"expires", expires_}});
    return;
  }
  metrics_.rejected.with({server_}).set(1);
  // Two files are never replaced in one instant; the first line comes only when a second look finds them no better.
  if (was_failing && changed) return;
  report(context_ ? "new certificate rejected, the old one stays"
                  : "no usable certificate, nothing is shown until there is one",
         done.error().message);
}

}  // namespace controller
