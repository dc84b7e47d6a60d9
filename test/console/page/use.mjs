// All tests but those of sizes and times. One process, one after the other: they share Chromium.
import './messages_test.mjs';
import './parts_test.mjs';
import './views_test.mjs';
import './overview_test.mjs';
import './keyboard_test.mjs';
import './session_test.mjs';
import './pictures_test.mjs';
