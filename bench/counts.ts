/**
 * What one operation costs that no neighbour on the machine can change: round trips, commits, row versions, bytes of write-ahead log.
 *
 * Each scenario runs twice, alone and over a proxy, the second time with more operations; the difference is theirs alone, without
 * connecting, preparing and the look at the statistics.
 */
import { type BenchDatabase, openSetting } from './database.js'
import { openProxy } from './proxy.js'
import { contenderOf, type Scenario } from './scenario.js'

export interface Counts {
  readonly roundTrips: number
  readonly syncs: number
  readonly commits: number
  readonly rowsInserted: number
  readonly rowsUpdated: number
  readonly rowsDeleted: number
  readonly rowsDead: number
  readonly walBytes: number
}

const names = [
  'roundTrips',
  'syncs',
  'commits',
  'rowsInserted',
  'rowsUpdated',
  'rowsDeleted',
  'rowsDead',
  'walBytes',
] as const satisfies (keyof Counts)[]

export async function count(
  database: BenchDatabase,
  scenario: Scenario,
  finished: readonly string[],
  operations: number,
): Promise<Counts> {
  const few = Math.ceil(operations / 10)
  // The first writes after a checkpoint log whole pages; they belong to the checkpoint.
  await total(database, scenario, finished, few)
  const less = await total(database, scenario, finished, few)
  const more = await total(database, scenario, finished, few + operations)
  const each = names.map((name) => [name, (more[name] - less[name]) / operations] as const)
  return Object.fromEntries(each) as unknown as Counts
}

/** Everything counted from before the first connection until the last has gone. */
async function total(
  database: BenchDatabase,
  scenario: Scenario,
  finished: readonly string[],
  operations: number,
): Promise<Counts> {
  const proxy = await openProxy(database.server.port)
  try {
    const url = new URL(database.connectionString)
    url.port = String(proxy.port)
    const before = await statistics(database)
    const setting = await openSetting(url.href, 1, finished)
    await contenderOf(scenario, setting, 1).run(operations)
    await setting.close()
    const after = await statistics(database)
    const spent = names.map((name) => [name, after[name] - before[name]] as const)
    return { ...(Object.fromEntries(spent) as unknown as Counts), ...proxy.traffic() }
  } finally {
    await proxy.close()
  }
}

const statisticsText = `select
  (select xact_commit from pg_stat_database where datname = 'bench')::float8 as commits,
  pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as "walBytes"`
const rowsText = `select sum(n_tup_ins)::float8 as "rowsInserted", sum(n_tup_upd)::float8 as "rowsUpdated",
  sum(n_tup_del)::float8 as "rowsDeleted", sum(n_dead_tup)::float8 as "rowsDead" from pg_stat_user_tables`

/** A backend hands its numbers in at the latest when it ends, so there must be none left. */
async function statistics(database: BenchDatabase): Promise<Counts> {
  const others = `select count(*)::int as n from pg_stat_activity where datname = 'bench'`
  while ((await database.askOutside(others))[0]?.n !== 0);
  const [whole] = await database.askOutside(statisticsText)
  const [rows] = await database.ask(rowsText)
  return { roundTrips: 0, syncs: 0, ...whole, ...rows } as unknown as Counts
}
