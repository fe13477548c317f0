/**
 * Transactions of the memory store: effects are functions that run when the record is written, in the same breath.
 */
import { fail } from '../../errors.js'
import type {
  BeginRequest,
  OpenTransaction,
  Owned,
  Save,
  SaveAnswer,
  SeenRecord,
  Transactions,
} from '../../store.js'
import { recordName } from '../../store.js'
import { isReplaceable, type Ledger } from './ledger.js'

/** What the work writes through. */
export interface MemoryTx {
  /** Runs `effect` when the transaction commits, together with the record; not at all if it does not. It must not throw. */
  defer(effect: () => void): void
}

/** Transactions of the memory store, and a way to open one as a caller of `safe.within` would. */
export interface MemoryTransactions extends Transactions<MemoryTx> {
  /** A transaction of the caller's own, for `safe.within`. */
  own(): { readonly tx: MemoryTx; commit(): void; rollback(): void }
}

/** A transaction of the caller, which claims inside it hang on. */
interface Outer {
  readonly effects: (() => void)[]
  readonly locked: Set<string>
}

export function createTransactions(ledger: Ledger): MemoryTransactions {
  const outers = new WeakMap<MemoryTx, Outer>()

  function lock(name: string, request: BeginRequest): boolean {
    if (ledger.locks.has(name)) return false
    ledger.locks.set(name, { owner: request.owner, fingerprint: request.fingerprint(), written: false })
    return true
  }

  async function begin(request: BeginRequest): Promise<OpenTransaction<MemoryTx>> {
    const name = recordName(request.identity)
    const granted = lock(name, request)
    const effects: (() => void)[] = []
    return openTransaction({
      ledger,
      request,
      granted,
      effects,
      from: 0,
      commit: () => {
        for (const effect of effects) effect()
      },
      unlock: () => {
        if (granted) ledger.locks.delete(name)
      },
    })
  }

  async function within(tx: MemoryTx, request: BeginRequest): Promise<OpenTransaction<MemoryTx>> {
    const outer = outers.get(tx)
    if (outer === undefined) throw fail('OPTION_INVALID', { detail: 'tx is not a transaction of this store' })
    const name = recordName(request.identity)
    const granted = lock(name, request)
    if (granted) outer.locked.add(name)
    return openTransaction({
      ledger,
      request,
      granted,
      effects: outer.effects,
      from: outer.effects.length,
      // Nothing is true before the outer transaction commits; its lock stays as long.
      commit: () => undefined,
      unlock: () => {
        if (granted && outer.locked.delete(name)) ledger.locks.delete(name)
      },
    })
  }

  function own() {
    const outer: Outer = { effects: [], locked: new Set() }
    const tx: MemoryTx = { defer: (effect) => void outer.effects.push(effect) }
    outers.set(tx, outer)
    function end(): void {
      outers.delete(tx)
      for (const name of outer.locked) ledger.locks.delete(name)
    }
    return {
      tx,
      commit: () => {
        for (const effect of outer.effects) effect()
        end()
      },
      rollback: end,
    }
  }

  return {
    begin,
    within,
    own,
    open: async (owned) => openOwned(ledger, owned),
    readBack: async ({ key, scope }, callerNowMs) => {
      const name = recordName({ key, scope })
      const record = ledger.records.get(name)
      return { undecided: ledger.locks.has(name), ...(record && { seen: ledger.see(record, callerNowMs) }) }
    },
    renameOwner: async ({ identity, owner }, renamed) => {
      const record = ledger.records.get(recordName(identity))
      if (record?.state !== 'running' || record.owner !== owner) return 'lost'
      record.owner = renamed
      return 'renamed'
    },
    isConflict: () => false,
  }
}

interface Parts {
  readonly ledger: Ledger
  readonly request: BeginRequest
  readonly granted: boolean
  readonly effects: (() => void)[]
  /** The savepoint: how many effects were there before the work. */
  readonly from: number
  commit(): void
  unlock(): void
}

/** What every transaction handle shares: a `tx` that dies, and whether it was used. */
function handle(effects: (() => void)[]) {
  let used = false
  let settled = false
  const tx: MemoryTx = {
    defer: (effect) => {
      if (settled) throw fail('ATTEMPT_SETTLED')
      used = true
      effects.push(effect)
    },
  }
  const settle = async () => {
    settled = true
  }
  return { tx, settle, used: () => used, onLost: () => undefined, pin: () => undefined }
}

function openTransaction(parts: Parts): OpenTransaction<MemoryTx> {
  const { ledger, request, granted, effects, from } = parts
  const record = ledger.records.get(recordName(request.identity))
  const seen = record && ledger.see(record, request.callerNowMs)
  const generation = ledger.nextGeneration(record)
  const common = handle(effects)
  let ended = false

  async function save(wish: Save): Promise<SaveAnswer> {
    if (ended || !granted || !mayWrite()) return { kind: 'refused' }
    ended = true
    if (wish.undoWork) effects.length = from
    const lock = ledger.locks.get(recordName(request.identity))
    if (lock !== undefined) lock.written = true
    effects.push(() => write(parts, seen, generation, wish))
    try {
      parts.commit()
    } catch (error) {
      // An effect must not throw; one that does has undone nothing, but it must not keep the key either.
      ended = false
      return { kind: 'rolledBack', error }
    }
    return { kind: 'committed' }
  }

  /** Only what was seen may be replaced: its owner may have renewed or completed it while the work ran (rule 5). */
  function mayWrite(): boolean {
    const now = ledger.records.get(recordName(request.identity))
    if (now === undefined || seen === undefined) return now === seen
    const same = now.owner === seen.owner && now.generation === seen.generation
    return same && isReplaceable(ledger.see(now, request.callerNowMs))
  }

  async function rollback(): Promise<void> {
    await common.settle()
    if (ended) return
    ended = true
    effects.length = from
    parts.unlock()
  }

  return { ...common, seen, granted, generation, save, rollback }
}

function write(parts: Parts, seen: SeenRecord | undefined, generation: number, wish: Save): void {
  const { ledger, request } = parts
  ledger.records.set(recordName(request.identity), {
    identity: request.identity,
    state: 'done',
    owner: request.owner,
    generation,
    attempts: seen === undefined || seen.state === 'done' ? 1 : seen.attempts + 1,
    fingerprint: wish.fingerprint,
    endsAtMs: ledger.now() + wish.retainMs,
    outcome: wish.outcome,
  })
  parts.unlock()
}

/** The last writes of a lease-mode owner: they happen only while the record is still its own. */
function openOwned(ledger: Ledger, { identity, owner }: Owned): OpenTransaction<MemoryTx> {
  const effects: (() => void)[] = []
  const common = handle(effects)

  async function save(wish: Save): Promise<SaveAnswer> {
    const record = ledger.records.get(recordName(identity))
    if (record?.state !== 'running' || record.owner !== owner) return { kind: 'refused' }
    for (const effect of effects) effect()
    record.state = 'done'
    record.outcome = wish.outcome
    record.endsAtMs = ledger.now() + wish.retainMs
    return { kind: 'committed' }
  }

  return { ...common, seen: undefined, granted: true, generation: 0, save, rollback: common.settle }
}
