/** The functions of lease mode: each write is ONE statement, conditional on the owner token (rule 3). */
import { setTimeout } from 'node:timers/promises'
import type { ClaimAnswer, ClaimRequest, Store } from '../../store.js'
import { type Ground, insertClaim, seenIn, seize } from './claim.js'
import type { Connection } from './driver.js'
import { byItself, onConnection, once, together } from './once.js'
import { fitting } from './server.js'

/**
 * A claim comes back with nothing while a rival's row is not committed: for a moment that is a rival of this mode, whose record will be there at the next look. Five,
 * because what is locked for longer is held by a transaction, which no asking shortens.
 */
const claimRounds = 5
/** Longest pause before the next round, in ms; doubled each time, with full jitter. */
const claimPauseMs = 2

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
    find: async (identity, callerNowMs) =>
      seenIn(await once(ground, statements.lookUp(identity, callerNowMs), 'harmless')),
  }

  async function claim(request: ClaimRequest): Promise<ClaimAnswer> {
    for (let round = 1; ; round += 1) {
      const answer = await onConnection(ground, (connection) =>
        byItself(ground, connection, () => tryOnce(connection, request)),
      )
      if (answer.claimed || answer.seen !== undefined || round === claimRounds) return answer
      await setTimeout(Math.random() * claimPauseMs * 2 ** round)
    }
  }

  /** Insert first: the primary key decides (rule 1). The look comes after it, so that it cannot be older than the refusal. */
  async function tryOnce(
    connection: Connection,
    { identity, owner, fingerprint, leaseMs, callerNowMs }: ClaimRequest,
  ): Promise<ClaimAnswer> {
    const inserted = await insertClaim(
      ground,
      connection,
      { identity, owner, fingerprint, leaseMs },
      { probed: true },
    )
    if (typeof inserted === 'object') return { claimed: true, ...inserted, attempts: 1 }
    return { claimed: false, seen: seenIn(await connection.run(statements.lookUp(identity, callerNowMs))) }
  }

  async function wrote(text: string): Promise<boolean> {
    const { affected } = await onConnection(ground, async (connection) => {
      const fit = fitting(text, await ground.server(connection))
      return byItself(ground, connection, () => connection.run(fit))
    })
    return affected > 0
  }
}
