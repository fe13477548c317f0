/** How the table is looked after: what is overdue, what was left lying, what vacuum has not reached. */
import type { Finding } from '../../../store.js'
import { countLimit, durationText, finding, fine, judgeLeftLying, judgeOverdue } from '../../findings.js'
import { integerAt } from '../rows.js'
import { sqlState } from '../sql-state.js'
import type { Ask } from './ask.js'

const overdueAfter = "interval '1 hour'"
/** Below this the dead rows of any table may be waiting for the next vacuum. */
const leastDead = 10_000
/** Share of dead rows from which a table is bloated; the migration has autovacuum come at a fiftieth. */
const deadShare = 0.2

export async function inspectUpkeep(ask: Ask, schema: string): Promise<readonly Finding[]> {
  const table = `"${schema}".intent`
  return [await sweeper(ask, table), await leftLying(ask, table), await bloat(ask, schema)]
}

/** By the index of ends, from its old end. */
async function sweeper(ask: Ask, table: string): Promise<Finding> {
  const [row] =
    await ask(`select count(*), coalesce((date_part('epoch', now() - min(ends_at)) * 1000)::bigint, 0) as oldest
      from (select ends_at from ${table} where (state = 3 or (state = 2 and steps = ''))
        and ends_at < now() - ${overdueAfter} order by ends_at limit ${countLimit}) as overdue`)
  return judgeOverdue(integerAt(row, 0), integerAt(row, 1))
}

/** No index knows running records (their renewals would have to keep it), so the table is read, for as long as a question may take. */
async function leftLying(ask: Ask, table: string): Promise<Finding> {
  const question = `select count(*) from (select from ${table} where (state = 1 or (state = 2 and steps <> ''))
    and ends_at < now() - ${overdueAfter} limit ${countLimit}) as lying`
  try {
    const [row] = await ask(question)
    return judgeLeftLying(integerAt(row, 0), question)
  } catch (error) {
    if (sqlState(error) !== '57014') throw error
    return judgeLeftLying(undefined, question)
  }
}

async function bloat(ask: Ask, schema: string): Promise<Finding> {
  const id = 'bloat'
  const [row] = await ask(
    `select coalesce(n_live_tup, 0) as live, coalesce(n_dead_tup, 0) as dead,
      coalesce((date_part('epoch', now() - greatest(last_autovacuum, last_vacuum)) * 1000)::bigint, -1) as since,
      (select count(*) from pg_class c where c.oid = s.relid and 'autovacuum_enabled=false' = any(c.reloptions)) as off
      from pg_stat_all_tables s where schemaname = $1 and relname = 'intent'`,
    schema,
  )
  if (row === undefined) return fine(id, 'the server keeps no statistics of the table')
  const [live, dead, since] = [0, 1, 2].map((column) => integerAt(row, column)) as [number, number, number]
  const vacuumed = since < 0 ? 'never vacuumed' : `vacuumed ${durationText(since)} ago`
  const found = `${dead} dead rows to ${live} live ones, ${vacuumed}`
  const means =
    'Claims read past dead rows, and the table takes more room than its records need. Vacuum does not come, or cannot remove what an old transaction may still see.'
  if (integerAt(row, 3) > 0) {
    const advice = `alter table "${schema}".intent set (autovacuum_enabled = true)`
    return finding('warn', id, `autovacuum is switched off for the table: ${found}`, means, advice)
  }
  if (dead < leastDead || dead < live * deadShare) return fine(id, found)
  const advice = `Look for old transactions (pg_stat_activity, xact_start) and for prepared ones (pg_prepared_xacts), then: vacuum "${schema}".intent`
  return finding('warn', id, found, means, advice)
}
