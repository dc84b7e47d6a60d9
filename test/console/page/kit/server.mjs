// A console for the tests: the files of console/page/dist and answers of the test, with the headers of the real one.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { gzipSync } from 'node:zlib';

export const token = 'good-token.for-the.tests';

export const cookie = 'quartermaster-console=sealed';

const dist = new URL('../../../../console/page/dist/', import.meta.url);
const types = {
  json: 'application/json',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  txt: 'text/plain; charset=utf-8',
};
const headers = {
  'Content-Security-Policy': "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
};

/// {url, token, answer, failure, requests, change(views), say(event, data), end_streams(), stop()}. `answer(path, query)` is what the API says and may be replaced at
/// any time; `failure(path)` returns null or [status, code, message, retry_s]. `longest_body`: after so many bytes of an answer the connection is
/// closed, as the console does with an answer that is not taken. `keeps_cookies`: false as in a browser that sends none. `by`: token, link, or proxy,
/// which signs everyone in.
export async function start_console(answer) {
  const streams = new Set();
  const kept = new Map(); // body -> what is sent of it
  const console_ = { token, answer, failure: () => null, requests: [], longest_body: Infinity, keeps_cookies: true, by: 'token' };

  function send(response, status, body, type, more = {}) {
    response.writeHead(status, { ...headers, 'Content-Type': type, 'Content-Length': body.length, ...more });
    if (type === types.json && body.length > console_.longest_body) response.write(body.subarray(0, console_.longest_body), () => response.destroy());
    else response.end(body);
  }
  function send_json(request, response, body) {
    if (!kept.has(body)) {
      const bytes = gzipSync(JSON.stringify(body));
      kept.set(body, { bytes, etag: `"${createHash('sha256').update(bytes).digest('hex').slice(0, 16)}"` });
    }
    const { bytes, etag } = kept.get(body);
    if (request.headers['if-none-match'] === etag) send(response, 304, Buffer.alloc(0), types.json, { ETag: etag });
    else send(response, 200, bytes, types.json, { ETag: etag, 'Cache-Control': 'no-store', 'Content-Encoding': 'gzip' });
  }
  function fail(response, [status, code, message, retry_s]) {
    send(response, status, Buffer.from(JSON.stringify({ error: { code, message } })), types.json, retry_s ? { 'Retry-After': String(retry_s) } : {});
  }
  function send_file(response, path) {
    const name = path || 'index.html';
    try {
      const bytes = gzipSync(readFileSync(new URL(name, dist)), { level: 9 });
      console_.asset_bytes = { ...console_.asset_bytes, [name]: bytes.length };
      send(response, 200, bytes, types[name.split('.').pop()], { 'Content-Encoding': 'gzip' });
    } catch {
      fail(response, [404, 'not_found', 'no such file']);
    }
  }

  // The cookie of the console is sealed; this one only has to be one.
  const has_cookie = (request) => console_.keeps_cookies && (request.headers.cookie ?? '').split('; ').includes(cookie);
  const is_known = (request) => console_.by === 'proxy' || request.headers.authorization === `Bearer ${token}` || (!request.headers.authorization && has_cookie(request));
  function answer_session(request, response) {
    const say = (body, more) => send(response, 200, Buffer.from(JSON.stringify(body)), types.json, more);
    const attributes = 'Path=/console/; HttpOnly; SameSite=Strict';
    if (request.method === 'GET') return say({ signedIn: console_.by === 'proxy' || has_cookie(request), by: console_.by });
    if (request.method === 'DELETE') return say({}, { 'Set-Cookie': `${cookie.split('=')[0]}=; ${attributes}; Max-Age=0` });
    if (!is_known(request)) return fail(response, [401, 'unauthenticated', 'the API server does not take the token']);
    return say({}, { 'Set-Cookie': `${cookie}; ${attributes}` });
  }

  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url, 'http://console');
    const path = pathname.replace(/^\/console\//, '');
    console_.requests.push({ path, method: request.method, query: searchParams, headers: request.headers });
    if (path.startsWith('/')) return fail(response, [404, 'not_found', 'no such path']);
    if (!path.startsWith('api/v1/')) return send_file(response, path);
    const name = path.slice('api/v1/'.length);
    const failure = console_.failure(name);
    if (failure) return fail(response, failure);
    if (name === 'session') return answer_session(request, response);
    if (!is_known(request)) return fail(response, [401, 'unauthenticated', 'the API server does not take the token']);
    if (name === 'stream') {
      response.writeHead(200, { ...headers, 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
      response.write(': still here\n\n');
      streams.add(response);
      return response.on('close', () => streams.delete(response));
    }
    const body = console_.answer(decodeURIComponent(name), searchParams);
    return body ? send_json(request, response, body) : fail(response, [404, 'not_found', 'no such path']);
  });
  await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
  console_.url = `http://127.0.0.1:${server.address().port}/console/`;
  console_.streams = streams;
  console_.change = (views) => { for (const stream of streams) stream.write(`event: changed\ndata: ${JSON.stringify({ views })}\n\n`); };
  console_.say = (name, data) => { for (const stream of streams) stream.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`); };
  console_.end_streams = () => { for (const stream of streams) stream.end(); };
  console_.stop = () => new Promise((done) => { server.closeAllConnections(); server.close(done); });
  return console_;
}
