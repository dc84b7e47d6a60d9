#pragma once
// A folder of one test, removed with it.

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace kube_test {

class scratch_folder {
 public:
  scratch_folder() {
    auto pattern = (std::filesystem::temp_directory_path() / "kube-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  ~scratch_folder() { std::filesystem::remove_all(path_); }
  std::string path(const std::string& name) const { return name.empty() ? path_ : path_ + "/" + name; }
  /// As the kubelet does: the new file takes the old one's name at once.
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name + ".new")) << text;
    std::filesystem::rename(path(name + ".new"), path(name));
    return path(name);
  }
  std::string program(const std::string& name, const std::string& text) const {
    const auto made = write(name, text);
    std::filesystem::permissions(made, std::filesystem::perms::owner_all);
    return made;
  }

 private:
  std::string path_;
};

}  // namespace kube_test
