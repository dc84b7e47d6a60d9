// The page: signs in, shows one view at a time, and keeps it up to date.
import { render } from 'preact';
import 'uplot/dist/uPlot.min.css';

import './style.css';
import { App } from './app.jsx';
import { take_token_from_link } from './session.js';
import { apply_theme } from './theme.js';

take_token_from_link();
apply_theme();
render(<App />, document.body);
