/**
 * Opens transactions. The claim is insert-first: its row is written before the work, and the primary key decides. There is no lock without a row here that ends with
 * the transaction (`GET_LOCK` belongs to the session, outlives a ROLLBACK and is not known to every cluster), and a locking look-up of a key that is not
 * there locks nothing under READ COMMITTED and the gap around it under REPEATABLE READ, where two of them are a deadlock (rule 36).
 */
import type { BeginRequest, Identity, OpenTransaction, Owned, SeenRecord, Transactions } from '../../store.js'
import { type Ground, insertClaim, mayReplace, seenIn, seize } from './claim.js'
import { type Answer, type Driver, inOneGo, type Session } from './driver.js'
import { committing, giveUp, type Look, openTransaction, standing } from './ending.js'
import { explained, isConflict, isConnectionFault, isLocked } from './errors.js'
import { onConnection, together } from './once.js'
import { isTimeout } from './patience.js'
import { begin, rollback, savepointName, sessionSettings, settings } from './statements.js'
import { openWithin } from './within.js'

/** How often a claim begins anew when a rival is there at the insert and was not, or not yet, at the look. */
const claimRounds = 4

export interface Context<Tx> extends Ground {
  readonly driver: Driver<Tx>
}

export function transactions<Tx>(context: Context<Tx>): Transactions<Tx> {
  return {
    begin: (request) => beginClaim(context, request),
    within: (tx, request) => openWithin(context, tx, request),
    open: (owned, timeoutMs) => openOwned(context, owned, timeoutMs),
    readBack: (identity, callerNowMs) => readBack(context, identity, callerNowMs),
    renameOwner: (owned, owner) => renameOwner(context, owned, owner),
    isConflict,
  }
}

interface Started<Tx> {
  readonly session: Session<Tx>
  /** The answer to the statement behind the begin. */
  readonly first: Answer
}

/**
 * Begins, and sends the first statement with it. When the connection turns out to be dead, nothing has run: ONE fresh try on another one, so that sockets gone stale in
 * the pool (a restarted server) do not surface.
 */
async function start<Tx>(context: Context<Tx>, timeoutMs: number, statement: string): Promise<Started<Tx>> {
  for (let fresh = false; ; fresh = true) {
    const session = await context.driver.acquire().catch((error: unknown) => {
      throw explained(error, context.schema)
    })
    try {
      const { mariadb, plain } = await context.server(session)
      // Without autocommit a connection of the pool may come with a transaction that somebody's read has opened.
      if (!plain) await session.run(rollback)
      const opening =
        context.driver.begins === 'itself'
          ? [begin, sessionSettings(timeoutMs)]
          : [settings(timeoutMs, mariadb), begin]
      const answers = await inOneGo(session, [...opening, statement])
      return { session, first: answers[2] ?? { rows: [], affected: 0 } }
    } catch (error) {
      session.destroy()
      if (fresh || isTimeout(error) || !isConnectionFault(error)) throw explained(error, context.schema)
      // One turn of the event loop: the pool then hears of its other sockets that the same restart closed.
      await new Promise((resume) => setImmediate(resume))
    }
  }
}

async function beginClaim<Tx>(context: Context<Tx>, request: BeginRequest): Promise<OpenTransaction<Tx>> {
  for (let round = 1; ; round += 1) {
    const lookUp = context.statements.lookUp(request.identity, request.callerNowMs)
    const { session, first } = await start(context, request.timeoutMs, lookUp)
    try {
      const found = await claimIn(context, session, request, seenIn(first))
      // Another round, for which nothing of this one may stand: a refused insert leaves a lock on the rival's row.
      if (found === 'rival' && round < claimRounds) {
        await giveUp(session)
        continue
      }
      const end = found === 'rival' ? { granted: false, generation: 0, seen: undefined } : found
      return openTransaction(context, session, end, committing(context, request, 4))
    } catch (error) {
      await giveUp(session)
      // Nothing of the work has run. A deadlock among claims is ours to settle (rule 36).
      if (!isConflict(error) || round === claimRounds) throw explained(error, context.schema)
    }
  }
}

/** Takes what is free. `rival`: somebody was first between the look and the insert. */
async function claimIn<Tx>(
  context: Context<Tx>,
  session: Session<Tx>,
  request: BeginRequest,
  seen: SeenRecord | undefined,
): Promise<Look | 'rival'> {
  const { identity, owner, callerNowMs } = request
  if (seen !== undefined && !mayReplace(seen)) return standing(seen)
  const claim = { identity, owner, fingerprint: request.fingerprint(), leaseMs: undefined }
  const savepoint = `savepoint ${savepointName('work', owner)}`
  const taken =
    seen === undefined
      ? await insertClaim(context, session, claim, { probed: true, savepoint })
      : await seize(context, session, claim, seen, callerNowMs, savepoint)
  if (taken === 'rival') return 'rival'
  if (taken === 'locked' || taken === undefined) return { granted: false, generation: 0, seen }
  return { granted: true, generation: taken.generation, seen }
}

async function openOwned<Tx>(
  context: Context<Tx>,
  owned: Owned,
  timeoutMs: number,
): Promise<OpenTransaction<Tx>> {
  const savepoint = `savepoint ${savepointName('work', owned.owner)}`
  const { session } = await start(context, timeoutMs, savepoint)
  const found = { granted: true, generation: 0, seen: undefined }
  return openTransaction(context, session, found, committing(context, owned, 1))
}

/** READ WRITE in words: a replica grants the lock as well and shows no row, and refuses this (rule 10). The lock comes first: a look cannot be older then. */
function readBack<Tx>(
  context: Context<Tx>,
  identity: Identity,
  callerNowMs: number,
): Promise<{ undecided: boolean; seen?: SeenRecord }> {
  return onConnection(context, (connection) =>
    together(connection, async () => {
      const undecided = await connection.run(context.statements.probe(identity)).then(
        () => false,
        (error: unknown) => {
          if (isLocked(error)) return true
          throw error
        },
      )
      const seen = seenIn(await connection.run(context.statements.lookUp(identity, callerNowMs)))
      return { undecided, ...(seen === undefined ? {} : { seen }) }
    }),
  )
}

function renameOwner<Tx>(
  context: Context<Tx>,
  { identity, owner }: Owned,
  renamed: string,
): Promise<'renamed' | 'locked' | 'lost'> {
  const { statements } = context
  return onConnection(context, (connection) =>
    together(connection, async () => {
      const free = await connection.run(statements.lockOne(identity, owner))
      if (free.rows.length > 0) {
        await connection.run(statements.rename(identity, owner, renamed))
        return 'renamed'
      }
      const ours = await connection.run(statements.findOne(identity, owner))
      return ours.rows.length > 0 ? 'locked' : 'lost'
    }),
  )
}
