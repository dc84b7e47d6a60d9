#pragma once
// The system calls by which the file layer changes something, counted, and one of them made to fail or to be the last
// of the process. The linker puts these between (--wrap, test/CMakeLists.txt): the product knows nothing of it.

namespace system_calls {

/// From now on the `nth` call (from 1) fails with this error number; 0: the process is gone, as by SIGKILL, before it.
void fail(int nth, int number);
void kill_at(int nth);
/// No call fails any more. Returns how many there were.
int stop();

}  // namespace system_calls
