#pragma once
// The same as kube/config.hpp with what is wrong as a phrase, for programs that speak more than English: a fault of a
// kubeconfig, or of the files that it names. The texts of the system and of libraries are quotations in it.

#include <expected>

#include "kube/config.hpp"
#include "text/phrase.hpp"

namespace kube {

/// load_config.
std::expected<cluster_config, text::phrase> config_in_words(const config_options& options,
                                                            const environment& env = environment::of_process());

/// Why no connection can be made with it: its CA, its client certificate, its token. Empty: all are well. What a
/// credential plugin gives is not looked at.
text::phrase fault_of_credentials(const cluster_config& config);

// What the readers of files share.

std::expected<std::string, text::phrase> bytes_of_file(const std::string& path);
std::expected<cluster_config, text::phrase> kubeconfig_in_words(std::span<const std::string> files,
                                                                const config_options& choose);
/// Empty: it is one.
text::phrase fault_of_ca(const std::string& pem, const std::string& name);
text::phrase fault_of_pair(const std::string& certificate, const std::string& key, const std::string& name);

}  // namespace kube
