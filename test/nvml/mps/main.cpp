// A stand-in for nvidia-cuda-mps-control: it answers as a real one did (recorded.txt), oddities included, and has no
// card. A server is a child process that sleeps. What it does otherwise than told stands in the file `faults` next to
// its folder of pipes, a word a line, read at each command:
//   ignores_memory, ignores_cores  takes no such limit     forgets  has no limit of memory
//   hangs      never answers                               dies     ends at the next command
//   nonsense   answers what is no answer                   no_server  starts none
//   faulty     its server is in state FAULT                slow     answers after 300 ms
//   wedged     never comes back from the end of a client, and is ACTIVE
// Its clients are the processes in the file `clients` there, one a line; one that is terminated leaves it.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

using words = std::vector<std::string>;

std::string folder() {
  const char* set = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  return set ? set : "/tmp/nvidia-mps";
}

std::set<std::string> faults() {
  std::ifstream file(folder() + "/../faults");
  return {std::istream_iterator<std::string>(file), {}};
}

std::vector<unsigned> clients() {
  std::ifstream file(folder() + "/../clients");
  return {std::istream_iterator<unsigned>(file), {}};
}

/// 0 as the real one answers. What that says of a process that is no client was not recorded.
std::string terminate(const std::string& number) {
  auto left = clients();
  if (std::erase_if(left, [&](unsigned client) { return std::to_string(client) == number; }) == 0) return "1\n";
  std::ofstream file(folder() + "/../clients", std::ios::trunc);
  for (const auto client : left) file << client << "\n";
  return "0\n";
}

struct limits {
  double cores = 100;
  std::string memory;

  std::string cores_text() const {
    char out[32];
    std::snprintf(out, sizeof out, "%.1f\n", cores);
    return out;
  }
  void set_cores(const std::string& value) {
    char* end = nullptr;
    const double is = std::strtod(value.c_str(), &end);
    if (end != value.c_str() && *end == '\0' && is > 0 && is <= 100 && !faults().contains("ignores_cores")) cores = is;
  }
  /// A number that is invalid takes the limit away, and so it was with the real one.
  void set_memory(const std::string& device, const std::string& value) {
    if (device != "0" || faults().contains("ignores_memory")) return;
    char* end = nullptr;
    (void)std::strtod(value.c_str(), &end);
    const std::string unit = end;
    memory = end != value.c_str() && (unit == "G" || unit == "M" || unit == "K" || unit.empty()) ? value : "";
  }
};

class daemon_state {
 public:
  std::string answer(const words& command) {
    reap();
    if (command.empty()) return {};
    const auto argument = [&](std::size_t i) { return i < command.size() ? command[i] : std::string(); };
    const auto& verb = command[0];
    if (verb == "get_server_list") return server_ ? std::to_string(server_) + "\n" : "";
    if (verb == "start_server") return start(), "";
    if (verb == "get_default_active_thread_percentage") return defaults_.cores_text();
    if (verb == "set_default_active_thread_percentage") return defaults_.set_cores(argument(1)), defaults_.cores_text();
    if (verb == "get_default_device_pinned_mem_limit") return memory_of(defaults_, argument(1));
    if (verb == "set_default_device_pinned_mem_limit") return defaults_.set_memory(argument(1), argument(2)), "";
    if (verb == "ps") return server_ ? std::string() : "Server not found\n";
    if (verb == "quit") return quits_ = true, "";
    return of_server(verb, command, argument(1));
  }
  bool quits() const { return quits_; }
  void end() {
    if (server_) ::kill(server_, SIGKILL), ::waitpid(server_, nullptr, 0);
  }

 private:
  static std::string memory_of(const limits& is, const std::string& device) {
    return device != "0" || is.memory.empty() || faults().contains("forgets") ? "" : is.memory + "\n";
  }
  std::string of_server(const std::string& verb, const words& command, const std::string& number) {
    static const std::set<std::string> known{"get_server_status",
                                             "get_client_list",
                                             "terminate_client",
                                             "get_active_thread_percentage",
                                             "set_active_thread_percentage",
                                             "get_device_pinned_mem_limit",
                                             "set_device_pinned_mem_limit"};
    if (!known.contains(verb)) return "Unknown command \"" + verb + "\"\n";
    if (!server_ || number != std::to_string(server_)) {
      const auto text = "Server " + number + " not found";
      return verb == "terminate_client" ? text + "\n" + text + "!\n1\n" : text + "\n";
    }
    const auto argument = [&](std::size_t i) { return i < command.size() ? command[i] : std::string(); };
    if (verb == "get_server_status") return faults().contains("faulty") ? "FAULT\n" : "ACTIVE\n";
    if (verb == "get_active_thread_percentage") return own_.cores_text();
    if (verb == "set_active_thread_percentage") return own_.set_cores(argument(2)), own_.cores_text();
    if (verb == "get_device_pinned_mem_limit") return memory_of(own_, argument(2));
    if (verb == "set_device_pinned_mem_limit") return own_.set_memory(argument(2), argument(3)), "";
    if (verb == "terminate_client") return terminate(argument(2));
    std::string out;
    for (const auto client : clients()) out += std::to_string(client) + "\n";
    return out;
  }
  void reap() {
    if (server_ && ::waitpid(server_, nullptr, WNOHANG) == server_) server_ = 0;
  }
  void start() {
    if (server_ || faults().contains("no_server")) return;
    server_ = ::fork();
    if (server_ == 0) {
      ::prctl(PR_SET_NAME, "nvidia-cuda-mps");
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (int fd = 3; fd < 64; ++fd) ::close(fd);
      for (;;) ::pause();
    }
    own_ = defaults_;
  }

  limits defaults_, own_;
  pid_t server_ = 0;
  bool quits_ = false;
};

sockaddr_un address() {
  sockaddr_un out{};
  out.sun_family = AF_UNIX;
  std::snprintf(out.sun_path, sizeof out.sun_path, "%s/control", folder().c_str());
  return out;
}

int connected() {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto place = address();
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0) return fd;
  ::close(fd);
  return -1;
}

std::string line_of(int fd) {
  std::string out;
  for (char c = 0; ::read(fd, &c, 1) == 1 && c != '\n';) out.push_back(c);
  return out;
}

int serve() {
  if (connected() >= 0) return std::puts("An instance of this daemon is already running"), 1;
  ::unlink((folder() + "/control").c_str());
  const int listening = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto place = address();
  if (::bind(listening, reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0 || ::listen(listening, 16) != 0)
    return std::perror("bind"), 1;
  ::chmod(place.sun_path, 0666);
  std::ofstream(folder() + "/nvidia-cuda-mps-control.pid") << ::getpid();
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);
  daemon_state state;
  while (!state.quits()) {
    const int fd = ::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    const auto wrong = faults();
    if (wrong.contains("dies")) return state.end(), 1;
    while (wrong.contains("hangs") && faults().contains("hangs")) ::usleep(50'000);
    if (wrong.contains("slow")) ::usleep(300'000);
    const auto question = line_of(fd);
    if (wrong.contains("wedged") && question.starts_with("terminate_client")) {
      if (::fork() == 0)
        for (;;) ::pause();  // who asks goes on waiting, and others are answered
      ::close(fd);
      continue;
    }
    std::istringstream line(question);
    auto text = state.answer({std::istream_iterator<std::string>(line), {}});
    if (wrong.contains("nonsense")) text = "?\n";
    (void)!::write(fd, text.data(), text.size());
    ::close(fd);
  }
  state.end();
  ::unlink((folder() + "/nvidia-cuda-mps-control.pid").c_str());
  ::unlink((folder() + "/control").c_str());
  return 0;
}

int ask() {
  for (std::string line; std::getline(std::cin, line);) {
    const int fd = connected();
    if (fd < 0) return std::puts("Cannot find MPS control daemon process"), 1;
    line.push_back('\n');
    (void)!::write(fd, line.data(), line.size());
    for (char c = 0; ::read(fd, &c, 1) == 1;) std::putchar(c);
    ::close(fd);
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const words flags(arguments + 1, arguments + count);
  if (flags.empty()) return ask();
  if (flags[0] == "-f") return serve();
  std::printf("Unrecognized option %s\n", flags[0].c_str());
  return 1;
}
