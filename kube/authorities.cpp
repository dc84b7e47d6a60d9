#include "kube/authorities.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace kube {

namespace {

constexpr std::array<std::string_view, 6> known_files{
    "/etc/ssl/certs/ca-certificates.crt",                 // Debian, Ubuntu, Arch, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",                   // Fedora, RHEL 6
    "/etc/ssl/ca-bundle.pem",                             // openSUSE
    "/etc/pki/tls/cacert.pem",                            // OpenELEC
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // CentOS, RHEL 7
    "/etc/ssl/cert.pem",                                  // Alpine
};

}  // namespace

std::span<const std::string_view> known_authority_files() { return known_files; }

std::string authority_file() {
  const char* const named = std::getenv("SSL_CERT_FILE");
  if (named && *named) return named;
  const auto found = std::ranges::find_if(known_files, [](auto file) { return ::access(file.data(), R_OK) == 0; });
  return found == known_files.end() ? std::string() : std::string(*found);
}

}  // namespace kube
