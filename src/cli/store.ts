/** Opens the store that the user names: by the URL of its server, or by a module of the user's that makes it. */
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Retrysafe, retrysafe, type Store } from '../index.js'
import { type Given, type OptionTypes, textGiven } from './command.js'
import { CliError, unavailable } from './errors.js'
import { openMysql } from './stores/mysql.js'
import { openPostgres } from './stores/postgres.js'
import { openRedis } from './stores/redis.js'
import { isSqlitePath, openSqlite } from './stores/sqlite.js'
import { type OpenedStore, schemeOf, type Target } from './stores/target.js'

export const storeOptions: OptionTypes = {
  url: { type: 'string' },
  store: { type: 'string' },
  schema: { type: 'string' },
  prefix: { type: 'string' },
}

export const storeUsage = `  --url URL          postgres://…, mysql://…, mariadb://…, redis://…, sqlite:FILE; default: the environment's DATABASE_URL
  --store FILE       instead of --url: a module whose default export is the store, or a function that gives it
  --schema NAME      schema of the tables (PostgreSQL), database of them (MySQL); default: retrysafe
  --prefix TEXT      what the names of the records begin with (Redis); default: retrysafe:`

interface Kind {
  readonly store: string
  readonly open: (target: Target) => Promise<OpenedStore>
}

const kinds: Readonly<Record<string, Kind>> = {
  'postgres:': { store: 'postgres', open: openPostgres },
  'postgresql:': { store: 'postgres', open: openPostgres },
  'mysql:': { store: 'mysql', open: openMysql },
  'mariadb:': { store: 'mysql', open: openMysql },
  'sqlite:': { store: 'sqlite', open: openSqlite },
  'file:': { store: 'sqlite', open: openSqlite },
  'redis:': { store: 'redis', open: openRedis },
  'rediss:': { store: 'redis', open: openRedis },
}

/** The kind of store that a URL names; the URL itself, which may hold a password, is never repeated. */
export function kindOf(url: string): Kind | undefined {
  return kinds[isSqlitePath(url) ? 'sqlite:' : schemeOf(url)]
}

export function urlGiven(given: Given): string | undefined {
  const url = textGiven(given, 'url')
  if (url !== undefined && textGiven(given, 'store') !== undefined)
    throw new CliError('USAGE', '--url and --store name two stores: pass one of them')
  return url ?? given.world.env.DATABASE_URL
}

async function openStore(given: Given, mayCreate: boolean): Promise<OpenedStore> {
  const { cwd } = given.world
  const url = urlGiven(given)
  const file = textGiven(given, 'store')
  if (file !== undefined) return fromModule(resolve(cwd, file))
  if (url === undefined || url === '') throw new CliError('STORE_NOT_NAMED', 'no store is named')
  const kind = kindOf(url)
  if (kind === undefined) throw new CliError('SCHEME_UNKNOWN', 'the URL is of no kind that is known here')
  const [schema, prefix] = [textGiven(given, 'schema'), textGiven(given, 'prefix')]
  return kind.open({ url, schema, prefix, cwd, mayCreate }).catch((error: unknown) => {
    throw unavailable(error)
  })
}

/** Opens the store, gives it to the work as an instance, and closes it. */
export async function withSafe<Value>(
  given: Given,
  work: (safe: Retrysafe<object>, store: Store<object>) => Promise<Value>,
  mayCreate = false,
): Promise<Value> {
  const { store, close } = await openStore(given, mayCreate)
  const safe = retrysafe({ store })
  try {
    return await work(safe, store)
  } finally {
    // The answer is there; a connection that does not close well changes nothing about it.
    await safe.close().catch(() => undefined)
    await close().catch(() => undefined)
  }
}

async function fromModule(file: string): Promise<OpenedStore> {
  const module = await imported(file)
  const made: unknown = typeof module.default === 'function' ? await module.default() : module.default
  if (!isStore(made)) throw new CliError('STORE_MODULE_INVALID', `the default export of ${file} is no store`)
  const { close } = module
  return { store: made, close: async () => (typeof close === 'function' ? close() : undefined) }
}

async function imported(file: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    return await import(pathToFileURL(file).href)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new CliError('STORE_MODULE_INVALID', `${file} could not be loaded: ${why}`)
  }
}

function isStore(made: unknown): made is Store<object> {
  if (typeof made !== 'object' || made === null) return false
  const { claim, find } = made as Partial<Store>
  return typeof claim === 'function' && typeof find === 'function'
}
