/**
 * A claim inside the caller's own open transaction, behind a savepoint (rule 7). No setting of it is changed. It is true when the caller commits.
 *
 * The caller's snapshot may be older than a rival's record: then the look does not see it, the insert is refused by it, and only then is it read as it is now, by a
 * locking read of a row that is there (rule 36). An insert refused for a lock rolls back only itself, unless the server runs with
 * `innodb_rollback_on_timeout`, where it takes the caller's transaction along: that ends in `TRANSACTION_CONFLICT`.
 */
import { fail, isRetrysafeError } from '../../errors.js'
import type { BeginRequest, OpenTransaction, SeenRecord } from '../../store.js'
import type { Context } from './begin.js'
import { insertClaim, mayReplace, seenIn, seize } from './claim.js'
import type { Session } from './driver.js'
import { type Ending, type Look, openTransaction, standing } from './ending.js'
import { explained, isLocked, isNoSavepoint } from './errors.js'
import { savepointName } from './statements.js'

/** A rival whose row was gone again when it was looked at: then there is another try, and then it counts as held. */
const rounds = 2

export async function openWithin<Tx>(
  context: Context<Tx>,
  tx: Tx,
  request: BeginRequest,
): Promise<OpenTransaction<Tx>> {
  const session = context.driver.adopt(tx)
  const claim = savepointName('claim', request.owner)
  try {
    await openSavepoint(session, claim)
    const found = await claimWithin(context, session, request)
    // Shows that the caller's transaction still stands behind an insert that was refused.
    if (!found.granted) await session.run(`rollback to savepoint ${claim}`)
    return openTransaction(context, session, found, releasing(context, request, claim))
  } catch (error) {
    const stands = await session.run(`rollback to savepoint ${claim}`).then(
      () => true,
      (lost: unknown) => !isNoSavepoint(lost),
    )
    session.release()
    const cause = explained(error, context.schema)
    if (stands || isRetrysafeError(cause)) throw cause
    throw fail('TRANSACTION_CONFLICT', { detail: 'the server has rolled the whole transaction back', cause })
  }
}

/** Outside a transaction a savepoint is no error, and gone at once: then what follows would be committed statement by statement. */
async function openSavepoint<Tx>(session: Session<Tx>, name: string): Promise<void> {
  await session.run(`savepoint ${name}`)
  try {
    await session.run(`rollback to savepoint ${name}`)
  } catch (error) {
    if (!isNoSavepoint(error)) throw error
    throw fail('OPTION_INVALID', { detail: 'tx has no open transaction: begin one before `within`' })
  }
}

async function claimWithin<Tx>(
  context: Context<Tx>,
  session: Session<Tx>,
  request: BeginRequest,
): Promise<Look> {
  const { identity, owner, callerNowMs } = request
  const first = await lookWithin(context, session, request)
  if (first === 'locked') return { granted: false, generation: 0, seen: undefined }
  let seen = first
  for (let round = 0; round < rounds; round += 1) {
    if (seen !== undefined && !mayReplace(seen)) return standing(seen)
    const claim = { identity, owner, fingerprint: request.fingerprint(), leaseMs: undefined }
    const savepoint = `savepoint ${savepointName('work', owner)}`
    const taken =
      seen === undefined
        ? await insertClaim(context, session, claim, { probed: false, savepoint })
        : await seize(context, session, claim, seen, callerNowMs, savepoint)
    if (typeof taken === 'object') return { granted: true, generation: taken.generation, seen }
    if (taken !== 'rival') break
    const { atOnce } = await context.server(session)
    seen = seenIn(await session.run(`${atOnce}${context.statements.lookAgain(identity, callerNowMs)}`))
  }
  return { granted: false, generation: 0, seen }
}

/**
 * Under SERIALIZABLE every read is a locking one, and would wait for a rival that has not committed. MySQL has no way to keep it from that. Under READ UNCOMMITTED a
 * plain read shows what may be rolled back, and a locking one locks no gap.
 */
async function lookWithin<Tx>(
  context: Context<Tx>,
  session: Session<Tx>,
  { identity, callerNowMs }: BeginRequest,
): Promise<SeenRecord | undefined | 'locked'> {
  const { atOnce, dirty } = await context.server(session)
  const { lookUp, lookAgain } = context.statements
  const text = (dirty ? lookAgain : lookUp)(identity, callerNowMs)
  try {
    return seenIn(await session.run(`${atOnce}${text}`))
  } catch (error) {
    if (isLocked(error)) return 'locked'
    throw error
  }
}

function releasing<Tx>({ statements }: Context<Tx>, request: BeginRequest, claim: string): Ending {
  const { identity, owner } = request
  return {
    work: savepointName('work', owner),
    finish: ({ outcome, retainMs }) => statements.complete(identity, owner, outcome, retainMs, 4),
    close: `release savepoint ${claim}`,
    undo: [`rollback to savepoint ${claim}`, `release savepoint ${claim}`],
    commits: false,
    zeroRows: 'aborted',
    leave: (session) => session.release(),
  }
}
