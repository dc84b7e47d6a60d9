#pragma once
// Memory of an agent at rest. Half of what is resident after the start is code that only the start needed.

namespace agent::cards {

/// Lets go of the pages of program and libraries that no one has changed. Those that are used come back from the page
/// cache, 64 KiB at a time. Pages that the loader has changed stay.
void release_unchanged_pages();

}  // namespace agent::cards
