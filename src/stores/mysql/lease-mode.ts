/** The functions of lease mode: each write is ONE statement, conditional on the owner token (rule 3). */
import type { ClaimAnswer, ClaimRequest, Store } from '../../store.js'
import { type Ground, insertClaim, seize } from './claim.js'
import { onConnection, once, together } from './once.js'
import { seenRecord } from './rows.js'
import { fitting } from './server.js'

/** A claim comes back with nothing when the rival it met was gone at the look; three, because what is held then stays held however often it is asked. */
const claimRounds = 3

type LeaseMode = Pick<Store, 'claim' | 'takeOver' | 'abandon' | 'complete' | 'release' | 'find'>

export function leaseMode(ground: Ground): LeaseMode {
  const { statements } = ground
  return {
    claim,
    takeOver: ({ identity, owner, fingerprint, leaseMs, callerNowMs, seen }) =>
      onConnection(ground, (connection) =>
        together(connection, () =>
          seize(ground, connection, { identity, owner, fingerprint, leaseMs }, seen, callerNowMs),
        ),
      ),
    abandon: ({ identity, owner, generation, retainMs }) =>
      wrote(statements.abandon(identity, { owner, generation }, retainMs)),
    complete: ({ identity, owner, outcome, retainMs }) =>
      wrote(statements.complete(identity, owner, outcome, retainMs)),
    release: ({ identity, owner, retainMs }) => wrote(statements.release(identity, owner, retainMs)),
    find: async (identity, callerNowMs) => {
      const { rows } = await once(ground, statements.lookUp(identity, callerNowMs), 'harmless')
      return rows[0] && seenRecord(rows[0])
    },
  }

  /** Insert first: the primary key decides (rule 1). The look comes after it, so that it cannot be older than the refusal. */
  function claim({ leaseMs, callerNowMs, ...request }: ClaimRequest): Promise<ClaimAnswer> {
    return onConnection(ground, async (connection) => {
      for (let round = 0; round < claimRounds; round += 1) {
        const inserted = await insertClaim(ground, connection, { ...request, leaseMs })
        if (typeof inserted === 'object') return { claimed: true, ...inserted, attempts: 1 }
        const { rows } = await connection.run(statements.lookUp(request.identity, callerNowMs))
        if (rows[0] !== undefined) return { claimed: false, seen: seenRecord(rows[0]) }
        // Held by a transaction, whose record nobody can see yet.
        if (inserted === 'locked') break
      }
      return { claimed: false, seen: undefined }
    })
  }

  async function wrote(text: string): Promise<boolean> {
    const { affected } = await onConnection(ground, async (connection) =>
      connection.run(fitting(text, await ground.server(connection))),
    )
    return affected > 0
  }
}
