/** The store suite's harness for Drizzle over better-sqlite3: loaded by the test itself and by the processes that it starts. */
import type BetterSqlite3 from 'better-sqlite3'
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3'
import {
  type Effect,
  type EffectLedger,
  type OpenedStore,
  type OwnTransaction,
  type StoreHarness,
  sqlite,
} from '../../processes/own-sqlite.js'
import { peer } from './peer.js'
import * as plain from './sqlite-store.js'

export interface DrizzleOpening {
  readonly file: string
  /** One connection for everything, as a program that passes in its own. */
  readonly shared?: boolean
}

const { default: Database } = await peer<{ default: typeof BetterSqlite3 }>('better-sqlite3')
const { integer, sqliteTable, text } =
  await peer<typeof import('drizzle-orm/sqlite-core')>('drizzle-orm/sqlite-core')
const { drizzle } = await peer<typeof import('drizzle-orm/better-sqlite3')>('drizzle-orm/better-sqlite3')

export const effects = sqliteTable('effect', { key: text(), payload: text(), generation: integer() })
export const uniques = sqliteTable('unique_effect', { key: text().unique() })

export type Db = BetterSQLite3Database & { readonly $client: BetterSqlite3.Database }

export function connect(file: string): Db {
  return drizzle(new Database(file))
}

export function storeOver({ file, shared }: DrizzleOpening) {
  if (shared !== true) {
    const store = sqlite({ open: () => connect(file) })
    return { store, db: undefined, close: store.close }
  }
  const db = connect(file)
  return { store: sqlite(db), db, close: async () => void db.$client.close() }
}

/** Processes are sent a {@link DrizzleOpening} as data of no type. */
export async function open(data: unknown): Promise<OpenedStore<object>> {
  const opening = data as DrizzleOpening
  judged ??= await plain.open({ ...opening, driver: 'better-sqlite3' })
  file = opening.file
  const { store, close } = storeOver(opening)
  return { store, close }
}

/** Opens what reads the ledger and moves the clock, over no tool. */
let judged: OpenedStore<object> | undefined
let file = ''

export async function closeOutside(): Promise<void> {
  await judged?.close()
  judged = undefined
  plain.closeOutside()
}

export const ledger: EffectLedger<object> = {
  read: plain.ledger.read,
  write: (tx, effect: Effect) => {
    if (tx === undefined) return plain.ledger.write(undefined, effect)
    ;(tx as Db).insert(effects).values(effect).run()
  },
}

/** Begun by hand: a transaction of Drizzle's own cannot be waited in. */
function own(): OwnTransaction<object> {
  const tx = connect(file)
  tx.$client.exec('begin')
  const end = (how: string) => {
    tx.$client.exec(how)
    tx.$client.close()
  }
  return { tx, commit: () => end('commit'), rollback: () => end('rollback') }
}

function harnessFor(opening: DrizzleOpening): StoreHarness<object> {
  return {
    ...plain.harnessFor({ ...opening, driver: 'better-sqlite3' }),
    open: () => open(opening),
    ledger,
    own,
    processes: {
      module: new URL(
        '../../../build/test/peers/processes/sqlite-drizzle-store.js',
        import.meta.url.replace('/build/test/peers/', '/test/peers/'),
      ),
      data: opening,
    },
  }
}

export function casesFor(opening: DrizzleOpening): ReturnType<typeof plain.casesFor> {
  return plain.casesOf(harnessFor(opening), opening)
}
