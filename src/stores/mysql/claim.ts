/** Taking a record: an insert that nothing makes wait, or a takeover of exactly what was seen. Shared by both modes. */
import type { Identity, SeenRecord } from '../../store.js'
import type { Connection } from './driver.js'
import { isDuplicate, isLocked } from './errors.js'
import type { Ours } from './once.js'
import { integerAt, seenRecord } from './rows.js'
import {
  type NewClaim,
  type Seen,
  type Statements,
  waitAsBefore,
  waitLittle,
  withoutWaiting,
} from './statements.js'

/** What everything of the store stands on. */
export interface Ground extends Ours {
  readonly statements: Statements
}

/** `rival`: a committed record is there. `locked`: somebody's row is there that is not committed. */
export type Inserted = { readonly generation: number } | 'rival' | 'locked'

/**
 * Inserts the row of a claim without waiting for a rival's (rule 6). MariaDB waits 0 s for this one statement. MySQL cannot: there a probe that does not wait goes
 * in front, and between the two a rival may still slip in, for whom 1 s is waited at most. In a transaction of the caller's, whose level is not known, there is no probe: it could
 * lock a gap.
 */
export async function insertClaim(
  ground: Ground,
  connection: Connection,
  claim: NewClaim,
  how: 'probed' | 'alone',
): Promise<Inserted> {
  const { statements } = ground
  const insert = statements.insert(claim)
  try {
    if ((await ground.server(connection)).mariadb) {
      const text = `${withoutWaiting}${insert} returning generation`
      return { generation: integerAt((await connection.run(text)).rows[0], 0) }
    }
    if (how === 'probed') await connection.run(statements.probe(claim.identity))
    await connection.run(waitLittle)
    try {
      await connection.run(insert)
    } finally {
      await connection.run(waitAsBefore)
    }
    const { rows } = await connection.run(statements.generation(claim.identity))
    return { generation: integerAt(rows[0], 0) }
  } catch (error) {
    if (isDuplicate(error)) return 'rival'
    if (isLocked(error)) return 'locked'
    throw error
  }
}

/** Takes over exactly what was seen; a locked row is a held row. To be called inside a transaction. */
export async function seize(
  { statements }: Ground,
  connection: Connection,
  claim: NewClaim,
  seen: Seen,
  callerNowMs: number,
): Promise<{ generation: number; attempts: number } | undefined> {
  const [row] = (await connection.run(statements.seize(claim.identity, seen, callerNowMs))).rows
  if (row === undefined) return undefined
  const granted = { generation: integerAt(row, 0), attempts: integerAt(row, 1) }
  await connection.run(statements.takeOver(claim, granted))
  return granted
}

/** Whether a claim may replace what was seen; the statement that does so judges again. */
export function mayReplace(seen: SeenRecord): boolean {
  return seen.state === 'released' || (!seen.live && (seen.state === 'running' || seen.state === 'done'))
}

export async function look(
  { statements }: Ground,
  connection: Connection,
  identity: Identity,
  callerNowMs: number,
): Promise<SeenRecord | undefined> {
  const { rows } = await connection.run(statements.lookUp(identity, callerNowMs))
  return rows[0] && seenRecord(rows[0])
}
