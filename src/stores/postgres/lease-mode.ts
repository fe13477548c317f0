/** The functions of lease mode: each ONE statement through the pool, conditional on the owner token (rule 3). */
import type { ClaimAnswer, ClaimRequest, Store } from '../../store.js'
import { type Connections, call, wire } from './driver.js'
import { latestMs, lockNumber, wholeMs } from './identity.js'
import { once } from './once.js'
import { flagAt, integerAt, seenRecord } from './rows.js'
import type { Statements } from './statements.js'

/**
 * A claim comes back empty when a rival commits between its snapshot and its insert; the next one sees it. Three, because
 * what is still empty then is held by a transaction, which no asking shortens.
 */
const claimRounds = 3

type LeaseMode = Pick<Store, 'claim' | 'takeOver' | 'abandon' | 'complete' | 'release' | 'find'>

export function leaseMode(connections: Connections, statements: Statements, schema: string): LeaseMode {
  return {
    claim,
    takeOver: async ({ identity, owner, fingerprint, leaseMs, callerNowMs, seen }) => {
      const lock = lockNumber(schema, identity)
      const { key, scope } = identity
      const values = [
        key,
        scope,
        seen.owner,
        String(seen.generation),
        owner,
        wire(fingerprint),
        wholeMs(leaseMs),
      ]
      const { rows } = await send(call(statements.takeOver, ...values, latestMs(callerNowMs), lock))
      const row = rows[0]
      return row === undefined ? undefined : { generation: integerAt(row, 0), attempts: integerAt(row, 1) }
    },
    abandon: ({ identity: { key, scope }, owner, generation, retainMs }) =>
      wrote(call(statements.abandon, key, scope, owner, String(generation), wholeMs(retainMs))),
    complete: ({ identity: { key, scope }, owner, outcome, retainMs }) =>
      wrote(call(statements.complete, key, scope, owner, wire(outcome), wholeMs(retainMs))),
    release: ({ identity: { key, scope }, owner, retainMs }) =>
      wrote(call(statements.release, key, scope, owner, wholeMs(retainMs))),
    find: async ({ key, scope }, callerNowMs) => {
      const look = call(statements.lookUp, key, scope, latestMs(callerNowMs))
      const { rows } = await once(connections, look, schema, 'harmless')
      return rows[0] === undefined ? undefined : seenRecord(rows[0])
    },
  }

  async function claim(request: ClaimRequest): Promise<ClaimAnswer> {
    const { identity, owner, fingerprint, leaseMs, callerNowMs } = request
    const values = [
      identity.key,
      identity.scope,
      owner,
      wire(fingerprint),
      wholeMs(leaseMs),
      latestMs(callerNowMs),
    ]
    const asked = call(statements.claim, ...values, lockNumber(schema, identity))
    for (let round = 0; round < claimRounds; round += 1) {
      const { rows } = await send(asked)
      const row = rows[0]
      if (row === undefined) continue
      const seen = seenRecord(row, 1)
      if (!flagAt(row, 0)) return { claimed: false, seen }
      return { claimed: true, generation: seen.generation, attempts: seen.attempts }
    }
    // A transaction-mode attempt holds the lock and has no record yet that anybody could see.
    return { claimed: false, seen: undefined }
  }

  function send(asked: ReturnType<typeof call>) {
    return once(connections, asked, schema)
  }

  async function wrote(asked: ReturnType<typeof call>): Promise<boolean> {
    const { rows } = await send(asked)
    return rows.length > 0
  }
}
