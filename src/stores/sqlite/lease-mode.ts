/** The functions of lease mode: each one statement, conditional on the owner token (rule 3), in a transaction of its own. */
import type { ClaimAnswer, ClaimRequest, Store } from '../../store.js'
import type { Connection, Values } from './connection.js'
import { isHeld } from './gate.js'
import { integerIn, latestMs, lookUp, nameOf, wholeMs } from './rows.js'
import { statements } from './statements.js'
import { type Context, gateName, read, write } from './turns.js'

type LeaseMode = Pick<Store, 'claim' | 'takeOver' | 'abandon' | 'renew' | 'complete' | 'release' | 'find'>

export function leaseMode(context: Context): LeaseMode {
  return {
    claim: (request) => claim(context, request),
    takeOver: async (request) => {
      const { identity, owner, fingerprint, seen } = request
      // A transaction of this process has it: held, and not waited for (rule 6).
      if (isHeld(await gateName(context), identity)) return undefined
      const [row] = await write(context, ({ rows }) =>
        rows(statements.takeOver, {
          ...nameOf(identity),
          owner,
          fingerprint,
          lease_ms: wholeMs(request.leaseMs),
          latest: latestMs(request.callerNowMs),
          seen_owner: seen.owner,
          seen_generation: seen.generation,
        }),
      )
      if (row === undefined) return undefined
      return { generation: integerIn(row, 'generation'), attempts: integerIn(row, 'attempts') }
    },
    abandon: async ({ identity, owner, generation, retainMs }) => {
      if (isHeld(await gateName(context), identity)) return false
      return wrote(context, statements.abandon, {
        ...nameOf(identity),
        owner,
        generation,
        retain_ms: wholeMs(retainMs),
      })
    },
    renew: async (renewals) => {
      if (renewals.length === 0) return []
      return write(context, ({ rows }) =>
        renewals.map(({ identity, owner, leaseMs }) => {
          const values = { ...nameOf(identity), owner, lease_ms: wholeMs(leaseMs) }
          return rows(statements.renew, values).length > 0
        }),
      )
    },
    complete: ({ identity, owner, outcome, retainMs }) =>
      wrote(context, statements.complete, {
        ...nameOf(identity),
        owner,
        outcome,
        retain_ms: wholeMs(retainMs),
      }),
    release: ({ identity, owner, retainMs }) =>
      wrote(context, statements.release, { ...nameOf(identity), owner, retain_ms: wholeMs(retainMs) }),
    find: (identity, callerNowMs) => read(context, (connection) => lookUp(connection, identity, callerNowMs)),
  }
}

/** Looks before it writes, because a look needs no turn; the insert decides all the same (rule 1). */
async function claim(context: Context, request: ClaimRequest): Promise<ClaimAnswer> {
  const { identity, owner, fingerprint, leaseMs, callerNowMs } = request
  const look = (connection: Connection) => lookUp(connection, identity, callerNowMs)
  const before = await read(context, look)
  if (before !== undefined) return { claimed: false, seen: before }
  if (isHeld(await gateName(context), identity)) return { claimed: false, seen: undefined }
  return write(context, (connection): ClaimAnswer => {
    const values = { ...nameOf(identity), owner, fingerprint, lease_ms: wholeMs(leaseMs) }
    const [row] = connection.rows(statements.claim, values)
    if (row === undefined) return { claimed: false, seen: look(connection) }
    return {
      claimed: true,
      generation: integerIn(row, 'generation'),
      attempts: integerIn(row, 'attempts'),
    }
  })
}

/** Whether the one statement has written. */
export async function wrote(context: Context, text: string, values: Values): Promise<boolean> {
  const written = await write(context, ({ rows }) => rows(text, values))
  return written.length > 0
}
