/** Retention: an outcome stands until its end, and is as good as absent past it, swept or not (rules 5 and 19). */
import { clockToleranceMs } from '../../store.js'
import { equal, holds, present } from '../check.js'
import { type StoreCase, test } from './case.js'
import { claimOf, complete, hold, look, minuteMs, outcome, printB, standing } from './requests.js'
import { aheadMs, fresh } from './room.js'
import { takeOverOf } from './takeover.js'

export const retentionCases: readonly StoreCase[] = [
  test(5, 'an outcome stands until the end of its retention', [], async ({ store, advance }) => {
    const done = await complete(store, fresh(), 10 * minuteMs)
    await advance(9 * minuteMs)
    holds('it lives', (await look(store, done.identity)).live)
    equal('a takeover', await store.takeOver(takeOverOf(done)), undefined)
  }),
  test(
    5,
    'a record past retention that was not swept is free for any intent',
    [],
    async ({ store, advance }) => {
      const done = await complete(store, fresh(), 10 * minuteMs)
      await advance(10 * minuteMs + 1)
      const answer = await store.claim(claimOf(done.identity, { fingerprint: printB }))
      // A store may replace it in the claim, or show it as past its end, to be taken over.
      if (!answer.claimed) {
        equal(
          'what the claim shows',
          { state: answer.seen?.state, live: answer.seen?.live },
          { state: 'done', live: false },
        )
        const request = { ...takeOverOf(done), fingerprint: printB }
        const granted = present('the takeover', await store.takeOver(request))
        holds('the generation has grown', granted.generation > done.generation)
        equal('the attempts, which start anew', granted.attempts, 1)
      }
      const { state, outcome: kept, fingerprint, live } = await look(store, done.identity)
      const now = { state, kept, fingerprint: Uint8Array.from(fingerprint), live }
      equal('the record', now, {
        state: 'running',
        kept: undefined,
        fingerprint: printB,
        live: true,
      } as typeof now)
    },
  ),
  test(
    5,
    'retention lasts as long as the caller says whose clock is behind by more than 5 min',
    [],
    async (room) => {
      const { store, advance } = room
      const done = await complete(store, fresh(), minuteMs)
      await advance(2 * minuteMs)
      const { storeNowMs, live } = await look(store, done.identity)
      equal('it is past by the clock of the store', live, false)
      const behindMs = storeNowMs - clockToleranceMs - 2 * minuteMs
      holds('a caller far behind sees it alive', (await look(store, done.identity, behindMs)).live)
      const request = { ...takeOverOf(done), callerNowMs: behindMs }
      equal('its takeover', await store.takeOver(request), undefined)
      // Two minutes behind is within what clocks may differ: nothing is narrowed.
      const nearMs = storeNowMs - 2 * minuteMs
      equal('a caller a little behind sees it past', (await look(store, done.identity, nearMs)).live, false)
      holds('its takeover', (await store.takeOver({ ...request, callerNowMs: nearMs })) !== undefined)
    },
  ),
  test(5, 'a caller whose clock is ahead does not end retention early', [], async ({ store }) => {
    const done = await complete(store, fresh(), minuteMs)
    holds('it lives', (await look(store, done.identity, aheadMs)).live)
    equal('a takeover', await store.takeOver({ ...takeOverOf(done), callerNowMs: aheadMs }), undefined)
  }),
  test(5, 'retention counts from the completion, not from the claim', [], async ({ store, advance }) => {
    const held = await hold(store, fresh())
    await advance(50_000)
    await store.complete({ ...held, outcome, retainMs: minuteMs })
    await advance(50_000)
    holds('it lives', (await look(store, held.identity)).live)
  }),
  test(19, 'a retention of ten years is kept to', [], async ({ store, advance }) => {
    const tenYearsMs = 3650 * 24 * 60 * minuteMs
    const done = await complete(store, fresh(), tenYearsMs)
    await advance(60 * minuteMs)
    const { live, leftMs } = await look(store, done.identity)
    holds(
      'it lives, for about as long',
      live && leftMs > tenYearsMs - 2 * 60 * minuteMs && leftMs <= tenYearsMs,
    )
  }),
  test(
    5,
    'generations grow with every claim of a record, whatever ended the last',
    [],
    async ({ store, advance }) => {
      const identity = fresh()
      const generations = [(await hold(store, identity)).generation]
      for (const end of ['release', 'lapse', 'complete', 'lapse'] as const) {
        const seen = await look(store, identity)
        if (end === 'release') await store.release({ identity, owner: seen.owner, retainMs: minuteMs })
        if (end === 'complete')
          await store.complete({ identity, owner: seen.owner, outcome, retainMs: minuteMs })
        if (end !== 'release') await advance(minuteMs + 1)
        const granted = await store.takeOver(takeOverOf({ identity, ...seen }))
        generations.push(present('the takeover', granted).generation)
      }
      const sorted = [...new Set(generations)].sort((one, other) => one - other)
      equal('the generations', generations, sorted)
      holds('they are safe integers', generations.every(Number.isSafeInteger))
    },
  ),
  test(5, 'a look-up changes nothing, however often', [], async ({ store, advance }) => {
    const done = await complete(store, fresh(), minuteMs)
    await advance(2 * minuteMs)
    const before = await look(store, done.identity)
    for (let looks = 0; looks < 5; looks += 1) await store.find(done.identity, aheadMs)
    equal('the record', standing(await look(store, done.identity)), standing(before))
  }),
]
