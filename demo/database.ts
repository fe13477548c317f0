/** The database of the demo: the one that DATABASE_URL names, or a PostgreSQL of its own that outlives its kills. */
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import pg from 'pg'
import { type PostgresServer, startPostgres } from '../servers/postgres.js'

export interface DemoDatabase {
  readonly pool: pg.Pool
  /** For another process of the demo. It may hold a password: do not print it. */
  readonly connectionString: string
  /** Ends the pool and stops the server, if it is our own. */
  close(): Promise<void>
}

export interface DatabaseOptions {
  /** Default: the environment variable DATABASE_URL. */
  readonly databaseUrl?: string | undefined
  /** Where the embedded server keeps its data. Default: see {@link dataFolder}. */
  readonly dataFolder?: string
  readonly log: (line: string) => void
}

/** How often the embedded server is looked after: a killed one is up again before a client has given up retrying. */
const watchEveryMs = 500

/** Where the demo keeps what it must not forget: DATA_DIR, or `.data` in the project folder. */
export function dataFolder(): string {
  const project = dirname(createRequire(import.meta.url).resolve('retrysafe/package.json'))
  return resolve(process.env.DATA_DIR || join(project, '.data'))
}

/** What a connection string may be printed as: no user, no password. */
function withoutSecrets(databaseUrl: string): string {
  if (!URL.canParse(databaseUrl)) return 'as given'
  const { host, pathname } = new URL(databaseUrl)
  return `${host}${pathname}`
}

function openPool(connectionString: string, log: (line: string) => void): pg.Pool {
  const pool = new pg.Pool({ connectionString, max: 20, connectionTimeoutMillis: 5000 })
  // An idle connection that breaks (the server was killed) is replaced by the pool; without a listener it would end the demo.
  pool.on('error', (error) => log(`A database connection was lost: ${error.message}`))
  return pool
}

/** Starts the server again when it was killed under us; returns the way to end that. */
function keepRunning(server: PostgresServer, log: (line: string) => void): () => Promise<void> {
  let starting: Promise<void> | undefined
  async function startAgain(): Promise<void> {
    try {
      await server.start()
      log(`PostgreSQL was gone; it runs again (process ${server.pid})`)
    } catch (error) {
      log(`PostgreSQL is gone and does not start: ${error instanceof Error ? error.message : error}`)
    }
    starting = undefined
  }
  const timer = setInterval(() => {
    if (starting === undefined && server.pid === undefined) starting = startAgain()
  }, watchEveryMs)
  timer.unref()
  return async () => {
    clearInterval(timer)
    await starting
  }
}

/** Opens the database and says in one line which it is. */
export async function openDatabase(options: DatabaseOptions): Promise<DemoDatabase> {
  const { log } = options
  const databaseUrl = options.databaseUrl ?? process.env.DATABASE_URL
  if (databaseUrl) {
    log(`Database: DATABASE_URL (${withoutSecrets(databaseUrl)})`)
    const pool = openPool(databaseUrl, log)
    return { pool, connectionString: databaseUrl, close: () => pool.end() }
  }
  const dataDirectory = join(options.dataFolder ?? dataFolder(), 'postgres')
  const server = await startPostgres({ dataDirectory, log })
  const connectionString = await server.createDatabase('demo')
  log(`Database: embedded PostgreSQL on port ${server.port}, data in ${server.dataDirectory}`)
  const pool = openPool(connectionString, log)
  const letGo = keepRunning(server, log)
  async function close(): Promise<void> {
    await letGo()
    await pool.end()
    await server.stop()
  }
  return { pool, connectionString, close }
}
