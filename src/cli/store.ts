/** Opens the store that the user names: by the URL of its server, or by a module of the user's that makes it. */
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Retrysafe, retrysafe, type Store } from '../index.js'
import { type Given, type OptionTypes, textGiven } from './command.js'
import { CliError } from './errors.js'
import { openPostgres } from './stores/postgres.js'

export interface OpenedStore {
  readonly store: Store<object>
  close(): Promise<void>
}

/** What a URL names: the rest of it is for the driver. */
export interface Target {
  readonly url: string
  readonly schema: string | undefined
  readonly cwd: string
}

export const storeOptions: OptionTypes = {
  url: { type: 'string' },
  store: { type: 'string' },
  schema: { type: 'string' },
}

export const storeUsage = `  --url URL          the server: postgres://…; default: the environment's DATABASE_URL
  --store FILE       instead of --url: a module whose default export is the store, or a function that gives it
  --schema NAME      schema of the tables (PostgreSQL); default: retrysafe`

const kinds: Readonly<Record<string, (target: Target) => Promise<OpenedStore>>> = {
  'postgres:': openPostgres,
  'postgresql:': openPostgres,
}

/** The scheme of a URL; the URL itself, which may hold a password, is never repeated. */
export function schemeOf(url: string): string {
  const [scheme] = /^[a-z][a-z0-9+.-]*:/i.exec(url) ?? []
  return scheme?.toLowerCase() ?? ''
}

export function urlGiven(given: Given): string | undefined {
  const url = textGiven(given, 'url')
  if (url !== undefined && textGiven(given, 'store') !== undefined)
    throw new CliError('USAGE', '--url and --store name two stores: pass one of them')
  return url ?? given.world.env.DATABASE_URL
}

export async function openStore(given: Given): Promise<OpenedStore> {
  const { cwd } = given.world
  const url = urlGiven(given)
  const file = textGiven(given, 'store')
  if (file !== undefined) return fromModule(resolve(cwd, file))
  if (url === undefined || url === '') throw new CliError('STORE_NOT_NAMED', 'no store is named')
  const open = kinds[schemeOf(url)]
  if (open === undefined) throw new CliError('SCHEME_UNKNOWN', 'the URL is of no kind that is known here')
  return open({ url, schema: textGiven(given, 'schema'), cwd })
}

/** Opens the store, gives it to the work as an instance, and closes it. */
export async function withSafe<Value>(
  given: Given,
  work: (safe: Retrysafe<object>, store: Store<object>) => Promise<Value>,
): Promise<Value> {
  const { store, close } = await openStore(given)
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
