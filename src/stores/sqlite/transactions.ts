/**
 * Opens transactions. The look goes first and takes no lock: what stands is replayed or refused beside any writer. Only who would run takes the file's one
 * write lock, looks again under it, and keeps it until the end; the finished row is written with COMMIT, and nothing before the work.
 */
import { fail } from '../../errors.js'
import type { BeginRequest, OpenTransaction, Owned, SeenRecord, Transactions } from '../../store.js'
import { type Ending, openTransaction } from './ending.js'
import { isBusy } from './faults.js'
import { hold, isHeld } from './gate.js'
import { guardTx } from './guard.js'
import type { SqliteHandle } from './handles.js'
import { wrote } from './lease-mode.js'
import { integerIn, latestMs, lookUp, nameOf, stands, wholeMs } from './rows.js'
import { statements } from './statements.js'
import { beginWriting, type Turn } from './turn-to-write.js'
import { type Context, gateName, read, undo } from './turns.js'
import { openWithin } from './within.js'

export function transactions<Tx>(context: Context): Transactions<Tx> {
  return {
    begin: (request) => begin(context, request),
    within: (tx, request) => openWithin(context, tx, request),
    open: (owned) => openOwned(context, owned),
    readBack: async (identity, callerNowMs) => {
      const gate = await gateName(context)
      const seen = await read(context, (connection) => lookUp(connection, identity, callerNowMs))
      // A transaction of ours is in this process, or it has ended: the file system has no other answer to lose.
      return { undecided: isHeld(gate, identity), ...(seen && { seen }) }
    },
    renameOwner: async ({ identity, owner }, renamed) => {
      if (isHeld(await gateName(context), identity)) return 'locked'
      const values = { ...nameOf(identity), owner, renamed }
      return (await wrote(context, statements.renameOwner, values)) ? 'renamed' : 'lost'
    },
    // A file of the user's own that is attached may be busy, and a snapshot of `within` too old.
    isConflict: isBusy,
  }
}

async function begin<Tx>(context: Context, request: BeginRequest): Promise<OpenTransaction<Tx>> {
  const { identity, callerNowMs } = request
  const gate = await gateName(context)
  const before = await read(context, (connection) => lookUp(connection, identity, callerNowMs))
  const held = isHeld(gate, identity)
  if (held || stands(before)) return onlySeen(context, before, !held)
  const free = hold(gate, identity)
  let turn: Turn | undefined
  try {
    turn = await beginWriting(context)
    const { connection } = turn
    const seen = lookUp(connection, identity, callerNowMs)
    if (stands(seen)) {
      turn.end()
      free()
      return onlySeen(context, seen, true)
    }
    const look = { seen, generation: generationFor(turn, seen) }
    const write = saving(turn, request, look)
    return openTransaction(turn, look, { write, zeroRows: 'aborted', free })
  } catch (error) {
    turn?.end()
    free()
    throw error
  }
}

function generationFor({ connection }: Turn, seen: SeenRecord | undefined): number {
  const [row] = connection.rows(statements.generations)
  if (seen === undefined) return integerIn(row, 'first')
  return Math.max(seen.generation + 1, integerIn(row, 'clock'))
}

/** The finished row: new, or in the place of exactly the dead one that was seen. */
function saving(
  { connection }: Turn,
  { identity, owner, callerNowMs }: BeginRequest,
  { seen, generation }: { readonly seen: SeenRecord | undefined; readonly generation: number },
): Ending['write'] {
  return ({ fingerprint, outcome, retainMs }) => {
    const values = {
      ...nameOf(identity),
      owner,
      generation,
      fingerprint,
      outcome,
      retain_ms: wholeMs(retainMs),
    }
    if (seen === undefined) return connection.rows(statements.insertDone, values).length > 0
    const replaced = { seen_owner: seen.owner, seen_generation: seen.generation }
    const latest = latestMs(callerNowMs)
    return connection.rows(statements.replaceDone, { ...values, ...replaced, latest }).length > 0
  }
}

/** The last writes of a lease-mode owner. */
async function openOwned<Tx>(context: Context, { identity, owner }: Owned): Promise<OpenTransaction<Tx>> {
  const free = hold(await gateName(context), identity)
  let turn: Turn | undefined
  try {
    turn = await beginWriting(context)
    const { connection } = turn
    const write: Ending['write'] = ({ outcome, retainMs }) => {
      const values = { ...nameOf(identity), owner, outcome, retain_ms: wholeMs(retainMs) }
      return connection.rows(statements.complete, values).length > 0
    }
    return openTransaction(turn, { seen: undefined, generation: 0 }, { write, zeroRows: 'refused', free })
  } catch (error) {
    turn?.end()
    free()
    throw error
  }
}

/**
 * A record that stands, or an intent that is held: no lock was taken, and nothing can be saved. What the work would write through is opened if
 * somebody asks for it all the same, and rolled back.
 */
function onlySeen<Tx>(
  { source }: Context,
  seen: SeenRecord | undefined,
  granted: boolean,
): OpenTransaction<Tx> {
  let opened: { readonly tx: Tx; used(): boolean; close(): void; end(): void } | undefined
  let over = false

  function open() {
    const connection = source.take()
    connection.exec(statements.begin)
    const guarded = guardTx<Tx>({ handle: connection.handle, check: () => undefined })
    const end = () => {
      undo(connection)
      source.give(connection)
    }
    return { ...guarded, end }
  }

  async function rollback(): Promise<void> {
    opened?.close()
    if (!over) opened?.end()
    over = true
  }

  return {
    seen,
    granted,
    generation: 0,
    get tx() {
      if (over) throw fail('ATTEMPT_SETTLED')
      opened ??= source.shared ? dead<Tx>(source.shared) : open()
      return opened.tx
    },
    used: () => opened?.used() ?? false,
    onLost: () => undefined,
    settle: async () => opened?.close(),
    pin: () => undefined,
    save: async () => {
      await rollback()
      return { kind: 'refused' }
    },
    rollback,
  }
}

/** A `tx` on a shared connection that refuses every use: outside a transaction its writes would stand. */
function dead<Tx>(handle: SqliteHandle) {
  const guarded = guardTx<Tx>({ handle, check: () => undefined })
  guarded.close()
  return { ...guarded, end: () => undefined }
}
