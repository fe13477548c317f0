/** What has to be known of the server, asked once: MariaDB can bound the wait of one statement, MySQL cannot. */
import { fail } from '../../errors.js'
import type { Connection } from './driver.js'
import { integerAt } from './rows.js'
import { server as ask } from './statements.js'

export interface Server {
  readonly mariadb: boolean
  /** Bytes of the largest statement that it takes. */
  readonly maxPacket: number
  /** Whether a statement outside a transaction commits by itself, as sessions do unless somebody has switched it off. */
  readonly autocommit: boolean
}

/** Asks at the first use, on a connection that is at hand. An answer that fails is not kept. */
export function serverOf(): (connection: Connection) => Promise<Server> {
  let known: Server | undefined
  return async (connection) => {
    if (known !== undefined) return known
    const [row] = (await connection.run(ask)).rows
    known = {
      mariadb: integerAt(row, 0) === 1,
      maxPacket: integerAt(row, 1),
      autocommit: integerAt(row, 2) === 1,
    }
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
