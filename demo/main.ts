/** What `npm start` runs: the demo service on a database of its own, until it is told to stop. */
import { randomUUID } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import { retrysafe } from 'retrysafe'
import { postgres } from 'retrysafe/postgres'
import { callerOf, createApp } from './app.js'
import { openDatabase } from './database.js'
import { exampleCommands } from './orders-page.js'
import { migrate } from './schema.js'

const log = (line: string) => console.log(line)

/** How long requests under way may take once the demo is told to stop, in ms: as long as a second click waits for the first. */
const endWithinMs = 10_000
/** How often connections are looked for that wait for a request which will not be taken any more, in ms. */
const lookEveryMs = 50

function portOf(text: string | undefined): number {
  const port = Number(text || 3000)
  if (Number.isInteger(port) && port >= 0 && port < 65_536) return port
  throw new Error(`PORT is ${JSON.stringify(text)}: set it to a number from 0 to 65535`)
}

async function main(): Promise<void> {
  const wantedPort = portOf(process.env.PORT)
  const database = await openDatabase({ log })
  await migrate(database.pool)
  const store = postgres(database.pool)
  await store.migrate()
  const safe = retrysafe({ store, mode: 'transaction', leaseMs: 5000, scope: callerOf })
  safe.on('storeError', ({ during, error }) => log(`The store failed during ${during}: ${error}`))
  safe.on('failed', ({ code, error }) => log(`A caller was answered with ${code}: ${error.message}`))
  safe.start()

  const server = createServer()
  const port = await listen(server, wantedPort)
  const origin = `http://localhost:${port}`
  server.on('request', createApp({ safe, pool: database.pool, origin }))
  log(`\nReady: ${origin}\n`)
  for (const { says, command } of exampleCommands(origin, randomUUID())) log(`# ${says}\n${command}\n`)

  async function stop(): Promise<void> {
    await endRequests(server)
    await safe.close()
    await database.close()
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void stop())
}

/** Stops listening and lets the requests under way end: they need the store, the pool and the database behind them. */
async function endRequests(server: Server): Promise<void> {
  // A connection that is kept alive takes requests for as long as its client has any: the next reply is its last.
  server.prependListener('request', (_, response) => response.setHeader('connection', 'close'))
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  const idle = setInterval(() => server.closeIdleConnections(), lookEveryMs)
  const late = setTimeout(() => server.closeAllConnections(), endWithinMs)
  await closed
  clearInterval(idle)
  clearTimeout(late)
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const taken = error.code === 'EADDRINUSE'
      reject(taken ? new Error(`Port ${port} is taken: set PORT to another one`) : error)
    })
    // Loopback only: the demo trusts whatever token it is shown.
    server.listen(port, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : port)
    })
  })
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
})
