import './use.mjs';
import './speed_test.mjs';
