// libcurl's failures as ours: which code, and one line a person can act on.

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "kube/curl_transfer.hpp"
#include "kube/server_address.hpp"

namespace kube {

namespace {

std::string_view verb_name(method verb) {
  switch (verb) {
    case method::get:
      return "GET";
    case method::post:
      return "POST";
    case method::put:
      return "PUT";
    case method::patch:
      return "PATCH";
    case method::del:
      return "DELETE";
  }
  return "GET";
}

struct diagnosis {
  errc code;
  std::string text;
};

/// The server has looked at our certificate, or missed one, and said no. In TLS 1.3 this comes after the handshake, in
/// the middle of the first answer.
bool refused_ours(std::string_view detail) {
  return detail.contains("alert") &&
         (detail.contains("certificate") || detail.contains("unknown ca") || detail.contains("handshake failure"));
}

/// The part of the line after the operation, for a TLS failure.
diagnosis tls_diagnosis(const cluster_config& config, std::string_view detail) {
  const auto says = [&](std::string_view part) { return detail.contains(part); };
  const auto ca = config.ca.empty() ? std::string("the system") : config.ca.name();
  if (says("certificate has expired"))
    return {errc::tls, "the server's certificate has expired; renew it, or set this machine's clock"};
  if (says("not yet valid"))
    return {errc::tls, "the server's certificate is not valid yet; is this machine's clock right?"};
  if (says("subject name matches") || says("does not match target host") || says("alternative name"))
    return {errc::tls, "the server's certificate is not for " +
                           (config.tls_server_name.empty() ? config.server : config.tls_server_name) +
                           "; use a name that is in it as server or tls-server-name (" + config.source + ")"};
  if (says("issuer certificate") || says("self-signed") || says("self signed") || says("unable to verify") ||
      says("verify failed"))
    return {errc::tls, "the server's certificate is not signed by the CA in " + ca +
                           "; is this the right cluster, or was its CA changed? (" + config.source + ")"};
  if (refused_ours(detail)) {
    const auto certificate = config.user.certificate.empty() ? std::string("none was given")
                                                             : "client certificate " + config.user.certificate.name();
    return {errc::tls, "the server refused our certificate (" + certificate + "): " + std::string(detail)};
  }
  return {errc::tls, "TLS: " + std::string(detail)};
}

diagnosis connect_diagnosis(const cluster_config& config, long os_errno, std::string_view detail) {
  const auto reason = os_errno == ECONNREFUSED ? std::string("connection refused")
                      : os_errno != 0          ? std::string(std::strerror(static_cast<int>(os_errno)))
                                               : std::string(detail);
  if (!config.proxy_url.empty())
    return {errc::connect,
            "connect to proxy " + config.proxy_url + ": " + reason + "; proxy-url comes from " + config.source};
  const std::string address(address_of(config.server));
  auto text = "connect " + address + ": " + reason;
  if (os_errno == ECONNREFUSED) text += config.takes_http ? ": is it up?" : ": is the API server up?";
  text += "; the address comes from " + config.source;
  // A proxy of the environment shows only in libcurl's own words.
  if (::getenv("HTTPS_PROXY") || ::getenv("https_proxy")) text += " (" + std::string(detail) + ")";
  return {errc::connect, std::move(text)};
}

diagnosis diagnose(const cluster_config& config, CURLcode code, long os_errno, std::string_view detail,
                   std::chrono::milliseconds limit) {
  const std::string address(address_of(config.server));
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
      return {errc::connect, "the host of " + address + " is not known to DNS: check server in " + config.source};
    case CURLE_COULDNT_RESOLVE_PROXY:
      return {errc::connect, "the proxy " + config.proxy_url + " is not known to DNS: check proxy-url in " +
                                 config.source + " or HTTPS_PROXY"};
    case CURLE_COULDNT_CONNECT:
      return connect_diagnosis(config, os_errno, detail);
    case CURLE_OPERATION_TIMEDOUT:
      return {errc::timeout, "connect " + address + ": no answer within " + std::to_string(limit.count()) +
                                 " ms: is the address right and the way open? It comes from " + config.source};
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CIPHER:
      return tls_diagnosis(config, detail);
    case CURLE_SSL_CONNECT_ERROR:
      // A peer that goes away in the middle of the handshake says nothing about certificates.
      if (detail.contains("SYSCALL") || detail.contains("reset by peer") || detail.contains("unexpected eof"))
        return {errc::connect, "connect " + address + ": closed during the TLS handshake: " + std::string(detail)};
      return tls_diagnosis(config, detail);
    case CURLE_SSL_CERTPROBLEM:
      return {errc::config,
              "client certificate " + config.user.certificate.name() + " cannot be used: " + std::string(detail)};
    case CURLE_SSL_CACERT_BADFILE:
      return {errc::config, "the CA in " + (config.ca.empty() ? "the system" : config.ca.name()) +
                                " cannot be used: " + std::string(detail)};
    case CURLE_URL_MALFORMAT:
      return {errc::config,
              "server " + config.server + " in " + config.source + " is not a URL: " + std::string(detail)};
    case CURLE_PROXY:
      return {errc::connect, "proxy " + config.proxy_url + ": " + std::string(detail)};
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      if (refused_ours(detail)) return tls_diagnosis(config, detail);
      return {errc::connect, address + " closed the connection in the middle: " + std::string(detail)};
    default:
      break;
  }
  return {errc::connect, address + ": " + std::string(detail) + " (libcurl error " + std::to_string(code) + ")"};
}

}  // namespace

std::string operation_of(const request& request) {
  return std::string(verb_name(request.verb)) + " " + request.target.substr(0, request.target.find('?'));
}

error transfer_error(const request& request, const cluster_config& config, CURLcode code, long os_errno,
                     std::string_view detail, std::chrono::milliseconds connect_limit) {
  if (detail.empty()) detail = curl_easy_strerror(code);
  auto found = diagnose(config, code, os_errno, detail, connect_limit);
  for (auto& c : found.text)
    if (c == '\n' || c == '\r') c = ' ';
  return {found.code, 0, operation_of(request) + ": " + found.text, {}};
}

}  // namespace kube
