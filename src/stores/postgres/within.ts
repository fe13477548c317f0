/**
 * A claim inside the caller's own open transaction, behind a savepoint (rule 7).
 *
 * The caller's isolation level is not known, so the claim is insert-first: the primary key decides, and what fails is rolled back to the
 * savepoint, which leaves the caller's transaction usable. No setting of it is touched. It is true when the caller commits.
 */
import type { BeginRequest, OpenTransaction } from '../../store.js'
import type { Context } from './begin.js'
import {
  claimed,
  finishing,
  type Ledger,
  type Look,
  lookOf,
  lookUp,
  lostTo,
  mayReplace,
  writeClaim,
} from './claim.js'
import { call, type Session } from './driver.js'
import { type Ending, openTransaction } from './ending.js'
import { lockNumber } from './identity.js'
import { explained } from './sql-state.js'

/** A rival that committed in between is seen by the second look, unless the caller's snapshot is too old: then it counts as held. */
const rounds = 2

export async function openWithin<Tx>(
  context: Context<Tx>,
  tx: Tx,
  request: BeginRequest,
): Promise<OpenTransaction<Tx>> {
  const { statements } = context
  const session = context.driver.adopt(tx)
  try {
    let entry = call(statements.savepointClaim)
    for (let round = 1; ; round += 1) {
      const look = await lookWithin(context, session, request, entry)
      const ending = releasing(context, request, look)
      if (!look.granted || (look.seen !== undefined && !mayReplace(look.seen)))
        return openTransaction(session, look, ending)
      const claim = writeClaim(context, request, look.seen)
      const { results, failure } = await session.flight([claim, call(statements.savepointWork)])
      if (failure === undefined) return openTransaction(session, claimed(look, results[0]), ending)
      if (!lostTo(context, failure)) throw explained(failure.error, context.schema)
      if (round === rounds) {
        await session.flight([call(statements.rollbackToClaim)])
        return openTransaction(session, { ...look, granted: false }, ending)
      }
      // Gives the lock back as well; the next look takes it again.
      entry = call(statements.rollbackToClaim)
    }
  } catch (error) {
    // Fails by itself where the savepoint could not be set: then the caller's transaction was lost before we came.
    await session.flight([call(statements.rollbackToClaim), call(statements.releaseClaim)])
    session.release()
    throw error
  }
}

async function lookWithin<Tx>(
  context: Ledger,
  session: Session<Tx>,
  { identity, callerNowMs }: BeginRequest,
  entry: ReturnType<typeof call>,
): Promise<Look> {
  const { results, failure } = await session.flight([
    entry,
    call(context.statements.lockOnly, lockNumber(context.schema, identity)),
    lookUp(context, identity, callerNowMs),
  ])
  if (failure !== undefined) throw explained(failure.error, context.schema)
  return lookOf(results[1], results[2])
}

function releasing(context: Ledger, request: BeginRequest, look: Look): Ending {
  const { statements, schema } = context
  return {
    save: finishing(context, request, look.began),
    close: call(statements.releaseClaim),
    undoWork: call(statements.rollbackToWork),
    undo: [call(statements.rollbackToClaim), call(statements.releaseClaim)],
    commits: false,
    zeroRows: 'aborted',
    schema,
  }
}
