#pragma once
// What the API server refuses of labels: keys and values that are none, and a selector that does not choose the pods of
// its own template (k8s.io/kubernetes pkg/apis/apps and batch, validation.go).

#include "cli/lint/judged_pod.hpp"

namespace cli {

/// Keys of labels and annotations, and values of labels. What is no text there is reported elsewhere.
/// @param path of the metadata
void judge_labels(judged_pod& pod, const text::yaml::node* metadata, const std::string& path);
/// nodeSelector, and the selector of a kind that counts its pods by one.
void judge_selectors(judged_pod& pod);

}  // namespace cli
