// Loaded before a server of npm that has no setting for the address of its API: what it sends there goes
// to READBACK_API instead. Nothing else of the server is changed.
const http = require('node:http')
const https = require('node:https')
const { syncBuiltinESMExports } = require('node:module')

const local = new URL(process.env.READBACK_API)
const real = globalThis.fetch

globalThis.fetch = (to, init) => {
  const asked = new URL(to instanceof Request ? to.url : to)
  const url = new URL(asked.pathname + asked.search, local)
  return to instanceof Request ? real(new Request(url, to), init) : real(url, init)
}

https.request = (to, options, done) => {
  if (!(to instanceof URL) && typeof to !== 'string') {
    [to, options, done] = [undefined, to, options]
  }
  const path = to === undefined ? options.path : new URL(to).pathname + new URL(to).search
  const request = http.request({ method: options.method, headers: { ...options.headers, host: local.host }, hostname: local.hostname, port: local.port, path }, done)
  // Who waits for TLS need not.
  return request.once('socket', (socket) => socket.once('connect', () => socket.emit('secureConnect')))
}

syncBuiltinESMExports()
