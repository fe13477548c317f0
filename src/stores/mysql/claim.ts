/** Taking a record: an insert that nothing makes wait, or a takeover of exactly what was seen. Shared by both modes. */
import type { SeenRecord } from '../../store.js'
import { type Answer, type Connection, inOneGo } from './driver.js'
import { isDuplicate, isLocked } from './errors.js'
import type { Ours } from './once.js'
import { integerAt, seenRecord } from './rows.js'
import { type NewClaim, type Seen, type Statements, waitAsBefore, waitLittle } from './statements.js'

/** What everything of the store stands on. */
export interface Ground extends Ours {
  readonly statements: Statements
}

/** `rival`: a committed record is there. `locked`: somebody's row is there that is not committed. */
export type Inserted = { readonly generation: number } | 'rival' | 'locked'

/**
 * Inserts the row of a claim without waiting for a rival's (rule 6). MariaDB waits 0 s for this one statement. MySQL cannot: there a probe that does not wait goes
 * in front, and between the two a rival may still slip in, for whom 1 s is waited at most. In a transaction of the caller's, whose level is not known, there is no probe: it could
 * lock a gap. `savepoint` is sent behind the insert; behind one that failed it is rolled back with everything else.
 */
export async function insertClaim(
  ground: Ground,
  connection: Connection,
  claim: NewClaim,
  { probed, savepoint }: { readonly probed: boolean; readonly savepoint?: string },
): Promise<Inserted> {
  const { statements } = ground
  const insert = statements.insert(claim)
  const behind = savepoint === undefined ? [] : [savepoint]
  try {
    const { mariadb, atOnce } = await ground.server(connection)
    if (mariadb) {
      const text = `${atOnce}${insert} returning generation`
      const [inserted] = await inOneGo(connection, [text, ...behind])
      return { generation: integerAt(inserted?.rows[0], 0) }
    }
    if (probed) await connection.run(statements.probe(claim.identity))
    await connection.run(waitLittle)
    try {
      await connection.run(insert)
    } finally {
      await connection.run(waitAsBefore)
    }
    const [inserted] = await inOneGo(connection, [statements.generation(claim.identity), ...behind])
    return { generation: integerAt(inserted?.rows[0], 0) }
  } catch (error) {
    if (isDuplicate(error)) return 'rival'
    if (isLocked(error)) return 'locked'
    throw error
  }
}

/** Takes over exactly what was seen; a locked row is a held row. To be called inside a transaction. */
export async function seize(
  { statements, server }: Ground,
  connection: Connection,
  claim: NewClaim,
  seen: Seen,
  callerNowMs: number,
  savepoint?: string,
): Promise<{ generation: number; attempts: number } | undefined> {
  const { anySnapshot } = await server(connection)
  const [row] = (await connection.run(`${anySnapshot}${statements.seize(claim.identity, seen, callerNowMs)}`))
    .rows
  if (row === undefined) return undefined
  const granted = { generation: integerAt(row, 0), attempts: integerAt(row, 1) }
  await inOneGo(connection, [
    `${anySnapshot}${statements.takeOver(claim, granted)}`,
    ...(savepoint === undefined ? [] : [savepoint]),
  ])
  return granted
}

/** Whether a claim may replace what was seen; the statement that does so judges again. */
export function mayReplace(seen: SeenRecord): boolean {
  return seen.state === 'released' || (!seen.live && (seen.state === 'running' || seen.state === 'done'))
}

/** What a look-up has found. */
export function seenIn({ rows }: Answer): SeenRecord | undefined {
  return rows[0] && seenRecord(rows[0])
}
