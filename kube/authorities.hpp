#pragma once
// The CAs that are believed where a kubeconfig names none: those of the machine. Distributions keep them in different
// places, and one executable has to run on all of them.

#include <span>
#include <string>
#include <string_view>

namespace kube {

/// The files in which distributions keep the CAs of a machine, the most usual first. Source: Go's crypto/x509,
/// root_linux.go.
std::span<const std::string_view> known_authority_files();

/// $SSL_CERT_FILE; without it the first of the known files that can be read. Empty where there is none.
std::string authority_file();

}  // namespace kube
