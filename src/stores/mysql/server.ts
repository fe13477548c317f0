/** What has to be known of the server, asked once: MariaDB can bound the wait of one statement, MySQL cannot. */
import { fail } from '../../errors.js'
import type { Connection } from './driver.js'
import { integerAt, textAt } from './rows.js'
import { server as ask, isolationOf, setFor, strictSnapshots } from './statements.js'

export interface Server {
  readonly mariadb: boolean
  /**
   * In front of a statement that meets what is newer than the snapshot: some versions of MariaDB can refuse that (from 11.6 on by default), and the refusal rolls the whole
   * transaction back. Nothing on others, and on MySQL.
   */
  readonly anySnapshot: string
  /** The same, and MariaDB waits for no lock. Not in front of SKIP LOCKED, which then fails with a wrong error (1180). */
  readonly atOnce: string
  /** Bytes of the largest statement that it takes. */
  readonly maxPacket: number
  /** Whether a default of READ UNCOMMITTED shows to a plain read what may yet be rolled back. */
  readonly dirty: boolean
  /** Whether one statement by itself does what is expected of it: it commits, and sees nothing that is not committed. */
  readonly plain: boolean
}

/**
 * Asks at the first use, on a connection that is at hand; the settings of a pool's sessions are the same for all. An answer that fails is not kept. Over a tool nothing is
 * plain: what belongs together gets a transaction, because else nobody knows whose connection it is on.
 */
export function serverOf(begins?: 'itself'): (connection: Connection) => Promise<Server> {
  let known: Server | undefined
  return async (connection) => {
    if (known !== undefined) return known
    const [row] = (await connection.run(ask)).rows
    const mariadb = integerAt(row, 0) === 1
    const [level] = (await connection.run(isolationOf(mariadb))).rows
    const dirty = textAt(level, 0) === 'READ-UNCOMMITTED'
    const autocommit = integerAt(row, 2) === 1
    if (begins !== undefined && !autocommit) {
      throw fail('OPTION_INVALID', {
        detail:
          'over a tool the sessions of its pool must have autocommit on: a read would leave a transaction open, before which no level can be set',
      })
    }
    const plain = autocommit && !dirty && begins === undefined
    const strict = mariadb && (await connection.run(strictSnapshots)).rows.length > 0
    const anySnapshot = strict ? setFor(['innodb_snapshot_isolation']) : ''
    const atOnce = mariadb
      ? setFor(['innodb_lock_wait_timeout', ...(strict ? ['innodb_snapshot_isolation'] : [])])
      : ''
    known = { mariadb, anySnapshot, atOnce, maxPacket: integerAt(row, 1), dirty, plain }
    return known
  }
}

/**
 * A statement too large for the server costs the connection, and some clients only see that: it is refused before it is sent.
 *
 * @throws `STORE_UNAVAILABLE`
 */
export function fitting(text: string, { maxPacket }: Server): string {
  // One byte for the command in front.
  if (text.length + 1 <= maxPacket) return text
  throw fail('STORE_UNAVAILABLE', {
    detail: `the outcome takes ${text.length} bytes on the wire, and the server's max_allowed_packet is ${maxPacket}: raise it, or lower maxReplyBytes to a little under half of it`,
  })
}
