/** The store suite's harness for the tools on MySQL: loaded by the test itself and by the processes that it starts. */
import type { EffectLedger, OpenedStore, OwnTransaction } from '../../processes/own-mysql.js'
import {
  closeOutside as closeJudge,
  ledger as judged,
  open as openJudge,
  prepare as prepareTables,
  promisePool,
} from './mysql-store.js'
import { type MysqlToolClient, ownOf } from './mysql-tools/client.js'
import { type MysqlToolName, mysqlTools } from './mysql-tools/tools.js'

export { advance, plant } from './mysql-store.js'

/** How a client is opened; a process is sent the same. */
export interface ToolOpening {
  readonly url: string
  readonly tool: MysqlToolName
}

/** For transactions of the user's own, and to write through any. */
let users: MysqlToolClient | undefined
/** Reads the ledger and moves the clock, over no tool. */
let judge: OpenedStore<object> | undefined

function user(): MysqlToolClient {
  if (users === undefined) throw new Error('open a store first')
  return users
}

/** Processes are sent a {@link ToolOpening} as data of no type. */
export async function open(opening: unknown): Promise<OpenedStore<object>> {
  const { url, tool } = opening as ToolOpening
  // A process of the suite ends when nothing of it is open any more.
  if (users === undefined) process.once('disconnect', closeOutside)
  users ??= await mysqlTools[tool](url)
  judge ??= await openJudge(judging(url))
  const client = await mysqlTools[tool](url)
  const store = client.store()
  return {
    store,
    close: async () => {
      await store.close()
      await client.end()
    },
  }
}

function judging(url: string) {
  return { url, client: 'mysql2/promise' } as const
}

export async function closeOutside(): Promise<void> {
  const ending = [judge?.close(), users?.end()]
  judge = undefined
  users = undefined
  await Promise.all(ending)
  await closeJudge()
}

/** With the numbers that TypeORM wants, and a key that there is to be violated. */
export async function prepare(opening: ToolOpening): Promise<void> {
  await prepareTables(judging(opening.url))
  const pool = promisePool(opening.url)
  await pool.query('alter table effect add id int not null auto_increment primary key')
  await pool.query(
    'create table unique_effect (id int not null auto_increment primary key, `key` varchar(200) not null unique)',
  )
  await pool.end()
  const { close } = await open(opening)
  await close()
}

export const ledger: EffectLedger<object> = {
  ...judged,
  write: async (tx, effect) => {
    await user().insert(tx, effect)
  },
}

export function own(): Promise<OwnTransaction<object>> {
  return ownOf(user())
}
