/** The suite is itself tested: a store with one planted fault must go red where that fault is defended against (PROOF I12, J). */
import type { Store } from 'retrysafe'
import { type MemoryStore, type MemoryTx, memory } from 'retrysafe/memory'
import { movableClock, storeSuite } from 'retrysafe/testing'
import { describe, expect, test } from 'vitest'
import type { OpenTransaction, SeenRecord } from '../../dist/store.js'
import { memoryLedger } from '../suites/memory-ledger.js'

const lacks = { idleTimeout: 'a transaction in memory ends with its process' }

type Planted = Partial<Store<MemoryTx>>

/** Names of the cases that fail on a memory store with a part replaced. */
async function failing(plant: (real: MemoryStore) => Planted = () => ({})): Promise<string[]> {
  const clock = movableClock()
  const real = memory({ clock })
  const store: Store<MemoryTx> = { ...real, ...plant(real) }
  const cases = storeSuite<MemoryTx>({
    open: async () => ({ store, close: () => undefined }),
    advance: (ms) => clock.advance(ms),
    ledger: memoryLedger(),
    own: () => real.transactions.own(),
    lacks,
  })
  const failed: string[] = []
  for (const { name, skip, run } of cases) {
    if (skip === undefined) await run().catch(() => failed.push(name))
  }
  return failed
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

interface Identity {
  readonly key: string
  readonly scope: string
}

/** Every identity mapped before it reaches the store, as a column with that property would. */
function identified(real: MemoryStore, change: (identity: Identity) => Identity): Planted {
  function map<Request extends { readonly identity: Identity }>(request: Request): Request {
    return { ...request, identity: change(request.identity) }
  }
  return {
    claim: (request) => real.claim(map(request)),
    takeOver: (request) => real.takeOver(map(request)),
    abandon: (verdict) => real.abandon(map(verdict)),
    renew: (renewals) => real.renew(renewals.map(map)),
    complete: (completion) => real.complete(map(completion)),
    release: (release) => real.release(map(release)),
    find: (identity, callerNowMs) => real.find(change(identity), callerNowMs),
    transactions: {
      ...real.transactions,
      begin: (request) => real.transactions.begin(map(request)),
      within: (tx, request) => real.transactions.within(tx, map(request)),
      open: (owned, timeoutMs) => real.transactions.open(map(owned), timeoutMs),
      readBack: (identity, callerNowMs) => real.transactions.readBack(change(identity), callerNowMs),
      renameOwner: (owned, owner) => real.transactions.renameOwner(map(owned), owner),
    },
  }
}

function renamed(real: MemoryStore, change: (text: string) => string): Planted {
  return identified(real, ({ key, scope }) => ({ key: change(key), scope: change(scope) }))
}

/** What a look-up finds, changed. */
function seenAs(real: MemoryStore, change: (seen: SeenRecord) => SeenRecord): Planted {
  return {
    find: async (identity, callerNowMs) => {
      const seen = await real.find(identity, callerNowMs)
      return seen && change(seen)
    },
  }
}

/** Transactions with a handle that is changed once it is open. */
function opened(
  real: MemoryStore,
  change: (open: OpenTransaction<MemoryTx>) => Partial<OpenTransaction<MemoryTx>>,
): Planted {
  return {
    transactions: {
      ...real.transactions,
      begin: async (request) => {
        const open = await real.transactions.begin(request)
        return { ...open, ...change(open) }
      },
    },
  }
}

const plants: readonly (readonly [string, (real: MemoryStore) => Planted, string])[] = [
  [
    'a claim that reads and then writes',
    (real) => ({
      claim: async (request) => {
        const seen = await real.find(request.identity, request.callerNowMs)
        await turn()
        const answer = await real.claim(request)
        if (answer.claimed || seen !== undefined) return answer
        return { claimed: true, generation: answer.seen?.generation ?? 1, attempts: 1 }
      },
    }),
    'exactly one of 5 concurrent claims is granted to one client',
  ],
  [
    'a completion without an owner',
    (real) => ({
      complete: async (completion) => {
        const seen = await real.find(completion.identity, 0)
        return real.complete({ ...completion, owner: seen?.owner ?? '' })
      },
    }),
    'a late owner cannot overwrite, release or renew what was taken over',
  ],
  [
    'a release without an owner',
    (real) => ({
      release: async (release) => {
        const seen = await real.find(release.identity, 0)
        return real.release({ ...release, owner: seen?.owner ?? '' })
      },
    }),
    'a late release frees nothing for a third',
  ],
  [
    'a takeover of whatever is there',
    (real) => ({
      takeOver: async (request) => {
        const seen = await real.find(request.identity, request.callerNowMs)
        return real.takeOver({ ...request, seen: seen ?? request.seen })
      },
    }),
    'a takeover that names another owner or generation is refused',
  ],
  [
    'a takeover by the lease of whoever comes',
    (real) => ({
      takeOver: async (request) => {
        const seen = await real.find(request.identity, request.callerNowMs)
        if (seen?.state === 'running' && seen.leftMs < 60_000 - request.leaseMs) {
          await real.release({ ...request, owner: seen.owner, retainMs: 60_000 })
        }
        return real.takeOver(request)
      },
    }),
    'the lease end that the owner stored counts, not the lease of whoever comes',
  ],
  [
    'a generation that does not grow',
    (real) => ({
      takeOver: async (request) => {
        const granted = await real.takeOver(request)
        return granted && { ...granted, generation: request.seen.generation }
      },
    }),
    'generations grow with every claim of a record, whatever ended the last',
  ],
  [
    'renewals that always say yes',
    (real) => ({ renew: async (renewals) => (await real.renew(renewals)).map(() => true) }),
    'nobody but the owner completes, releases or renews',
  ],
  [
    'renewals answered out of order',
    (real) => ({ renew: async (renewals) => [...(await real.renew(renewals))].reverse() }),
    'many leases are renewed in one command, each with its own answer, in order',
  ],
  [
    "retention by the store's clock alone",
    (real) => ({
      find: (identity) => real.find(identity, Number.MAX_SAFE_INTEGER),
      takeOver: (request) => real.takeOver({ ...request, callerNowMs: Number.MAX_SAFE_INTEGER }),
    }),
    'retention lasts as long as the caller says whose clock is behind by more than 5 min',
  ],
  [
    'a folding collation',
    (real) => renamed(real, (text) => text.toLowerCase()),
    'keys that only look alike are different records',
  ],
  [
    'a normalising column',
    (real) => renamed(real, (text) => text.normalize('NFC')),
    'keys that only look alike are different records',
  ],
  [
    'padded keys',
    (real) => renamed(real, (text) => text.trimEnd()),
    'keys that only look alike are different records',
  ],
  [
    'an index over a prefix',
    (real) => renamed(real, (text) => text.slice(0, 128)),
    'keys that only look alike are different records',
  ],
  [
    'key and scope in one text',
    (real) => identified(real, ({ key, scope }) => ({ key: key + scope, scope: 's' })),
    'key and scope are joined so that no pair reads as another',
  ],
  [
    'outcomes kept as text',
    (real) => ({
      complete: (completion) =>
        real.complete({
          ...completion,
          outcome: Buffer.from(Buffer.from(completion.outcome).toString('utf8')),
        }),
    }),
    'an outcome comes back byte for byte, each of the 256 values',
  ],
  [
    'an empty outcome kept as none',
    (real) => seenAs(real, ({ outcome, ...seen }) => (outcome?.length ? { ...seen, outcome } : seen)),
    'an empty outcome comes back empty, and not as none',
  ],
  [
    'an outcome that loses its owner',
    (real) => seenAs(real, (seen) => (seen.state === 'done' ? { ...seen, owner: '' } : seen)),
    'a done record keeps its owner token, so a lost completion is recognised',
  ],
  [
    'a sweeper that takes unknown records',
    (real) => ({
      sweeping: {
        sweep: async (request) => {
          for (const { identity, generation, live } of await real.operating.list({
            states: ['unknown'],
            limit: 1000,
          })) {
            if (!live) await real.operating.resolveReleased({ identity, generation, retainMs: 0 })
          }
          return real.sweeping.sweep(request)
        },
      },
    }),
    'an unknown record is never swept',
  ],
  [
    'a sweeper without a limit',
    (real) => ({ sweeping: { sweep: (request) => real.sweeping.sweep({ ...request, limit: 1000 }) } }),
    'a sweep removes at most as many as it was asked for',
  ],
  [
    'effects that do not wait for the commit',
    (real) => opened(real, () => ({ tx: { defer: (effect) => effect() } })),
    'claim, effect and outcome roll back together',
  ],
  [
    'a `tx` that outlives its attempt',
    (real) => opened(real, () => ({ settle: async () => undefined })),
    '`tx` dies with the attempt: a use after it throws and nothing is sent',
  ],
  [
    'a savepoint that is ignored',
    (real) => opened(real, (open) => ({ save: (wish) => open.save({ ...wish, undoWork: false }) })),
    'a save that undoes the work stores the outcome alone, announced',
  ],
  [
    'a look-up older than the lock',
    (real) => opened(real, () => ({ seen: undefined })),
    'what is done is seen whatever the lock says',
  ],
  [
    'last writes without a fence',
    (real) => ({
      transactions: {
        ...real.transactions,
        open: async (owned, timeoutMs) => {
          const open = await real.transactions.open(owned, timeoutMs)
          return {
            ...open,
            save: async (wish) => {
              const answer = await open.save(wish)
              return answer.kind === 'refused' ? { kind: 'committed' } : answer
            },
          }
        },
      },
    }),
    'a lost lease rolls the last writes of the late owner back',
  ],
  [
    'a commit read back too early',
    (real) => ({
      transactions: {
        ...real.transactions,
        readBack: async (identity, callerNowMs) => ({
          ...(await real.transactions.readBack(identity, callerNowMs)),
          undecided: false,
        }),
      },
    }),
    'while the transaction stands its end is undecided, and decided once it is rolled back',
  ],
  [
    'a verdict without a generation',
    (real) => ({
      operating: {
        ...real.operating,
        resolveReleased: async (verdict) => {
          const seen = await real.find(verdict.identity, 0)
          return real.operating.resolveReleased({ ...verdict, generation: seen?.generation ?? 0 })
        },
      },
    }),
    'a verdict on what has moved on is not written',
  ],
]

describe('the store suite finds what is planted', () => {
  test.each(plants)('%s', async (_, plant, expected) => {
    expect(await failing(plant)).toContain(expected)
  })

  test('every case has a name of its own and a rule of the protocol', () => {
    const cases = storeSuite<MemoryTx>({
      open: async () => ({ store: memory(), close: () => undefined }),
      advance: () => undefined,
    })
    expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length)
    for (const { rule } of cases) expect(rule >= 1 && rule <= 38).toBe(true)
  })

  test('what a store lacks and a harness does not give is on record, not left out', () => {
    const harness = {
      open: async () => ({ store: memory(), close: () => undefined }),
      advance: () => undefined,
    }
    const bare = storeSuite<MemoryTx>({ ...harness, lacks: { transactions: 'no transactions here' } })
    expect(bare.length).toBe(storeSuite<MemoryTx>(harness).length)
    const reasons = new Set(bare.map(({ skip }) => skip))
    expect(reasons).toContain('no transactions here')
    expect(reasons).toContain('the store lives in one process')
    expect(reasons).toContain(undefined)
  })
})
