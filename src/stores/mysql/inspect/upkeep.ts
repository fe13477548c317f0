/** How the table is looked after: what is overdue, and what was left lying. */
import type { Finding } from '../../../store.js'
import { countLimit, judgeLeftLying, judgeOverdue } from '../../findings.js'
import type { Connection } from '../driver.js'
import { errno } from '../errors.js'
import { integerAt } from '../rows.js'

const now = "timestampdiff(microsecond, '1970-01-01', utc_timestamp(6))"
/** An hour, in µs. */
const overdueMicros = 3_600_000_000
/** How long a table without an index for the question may be read. */
const questionLimitSeconds = 5
/** MySQL, MariaDB: the statement took longer than it may. */
const tooLong = new Set([3024, 1969])

export async function inspectUpkeep(
  connection: Connection,
  schema: string,
  mariadb: boolean,
): Promise<readonly Finding[]> {
  const table = `\`${schema}\`.retrysafe_intent`
  return [await sweeper(connection, table), await leftLying(connection, table, mariadb)]
}

/** By the index of the sweeper, from its old end. */
async function sweeper(connection: Connection, table: string): Promise<Finding> {
  const { rows } = await connection.run(`select count(*), coalesce(max(${now} - sweep_at) div 1000, 0) from (
      select sweep_at from ${table} where sweep_at < ${now} - ${overdueMicros} order by sweep_at limit ${countLimit}) as overdue`)
  return judgeOverdue(integerAt(rows[0], 0), integerAt(rows[0], 1))
}

async function leftLying(connection: Connection, table: string, mariadb: boolean): Promise<Finding> {
  const hint = mariadb ? '' : `/*+ max_execution_time(${questionLimitSeconds * 1000}) */`
  const bound = mariadb ? `set statement max_statement_time = ${questionLimitSeconds} for ` : ''
  const question = `select ${hint} count(*) from (select 1 from ${table}
    where (state = 1 or (state = 2 and steps is not null)) and ends_at < ${now} - ${overdueMicros} limit ${countLimit}) as lying`
  try {
    const { rows } = await connection.run(bound + question)
    return judgeLeftLying(integerAt(rows[0], 0), question)
  } catch (error) {
    if (!tooLong.has(errno(error))) throw error
    return judgeLeftLying(undefined, question)
  }
}
