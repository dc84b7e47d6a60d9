#pragma once
// Files that a person or a kubeconfig names, before they are opened: a pipe in which no one writes would be waited for
// without end, and a device has no content.

#include <string>
#include <string_view>

namespace text {

/// Why this is no file with a content: a key of the catalogue ("file.pipe"). Empty: it is one, is a folder, or is not
/// there, which the reader says. What a shell or the caller has opened for the program (/dev/fd/3, /dev/stdin) may be a
/// pipe; /dev/null is an empty file.
std::string fault_of_input(const std::string& path);

/// It begins with the byte order mark of UTF-16, as files of PowerShell do, or with Latin letters of it.
bool is_utf16(std::string_view bytes);

}  // namespace text
