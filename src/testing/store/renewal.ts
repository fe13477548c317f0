/** Renewing: many leases in one command, each by its owner only (rules 3, 6 and 18). */
import { randomUUID } from 'node:crypto'
import { equal, holds } from '../check.js'
import { type StoreCase, test } from './case.js'
import { complete, hold, look, minuteMs } from './requests.js'
import { fresh } from './room.js'
import { takeOverOf } from './takeover.js'

export const renewalCases: readonly StoreCase[] = [
  test(
    18,
    "a renewed lease counts from the renewal, by the store's clock",
    [],
    async ({ store, advance }) => {
      const held = await hold(store, fresh())
      await advance(50_000)
      equal('the renewal', await store.renew([{ ...held, leaseMs: minuteMs }]), [true])
      await advance(50_000)
      const { live, leftMs } = await look(store, held.identity)
      holds('it lives, with 10 s left at most', live && leftMs <= 10_000)
      equal('a takeover', await store.takeOver(takeOverOf(held)), undefined)
      await advance(10_000)
      holds('past the renewed end it is taken over', (await store.takeOver(takeOverOf(held))) !== undefined)
    },
  ),
  test(
    6,
    'many leases are renewed in one command, each with its own answer, in order',
    [],
    async ({ store }) => {
      const held = await Promise.all(Array.from({ length: 30 }, () => hold(store, fresh())))
      const done = await complete(store, fresh())
      const renewals = held.map((one, index) => ({
        identity: one.identity,
        owner: index % 3 === 1 ? randomUUID() : one.owner,
        leaseMs: 2 * minuteMs,
      }))
      const absent = { identity: fresh(), owner: randomUUID(), leaseMs: minuteMs }
      const settled = { identity: done.identity, owner: done.owner, leaseMs: minuteMs }
      const answers = await store.renew([absent, settled, ...renewals])
      equal('the answers', [...answers], [false, false, ...held.map((_, index) => index % 3 !== 1)])
      const lefts = await Promise.all(held.map(async ({ identity }) => (await look(store, identity)).leftMs))
      const extended = lefts.map((leftMs) => leftMs > minuteMs)
      equal(
        'leases that were extended',
        extended,
        held.map((_, index) => index % 3 !== 1),
      )
    },
  ),
  test(6, 'each renewal has the length it asked for', [], async ({ store }) => {
    const [brief, long] = [await hold(store, fresh()), await hold(store, fresh())]
    await store.renew([
      { ...brief, leaseMs: 1000 },
      { ...long, leaseMs: 60 * minuteMs },
    ])
    holds('the brief one', (await look(store, brief.identity)).leftMs <= 1000)
    holds('the long one', (await look(store, long.identity)).leftMs > 50 * minuteMs)
  }),
  test(6, 'renewing nothing answers nothing', [], async ({ store }) => {
    equal('the answers', [...(await store.renew([]))], [])
  }),
  test(6, 'renewals of 500 leases in batches that run at once all arrive', [], async ({ store, another }) => {
    const rival = await another()
    const held = await Promise.all(Array.from({ length: 500 }, () => hold(store, fresh())))
    const batches = Array.from({ length: 10 }, (_, batch) => held.filter((_, index) => index % 10 === batch))
    const answers = await Promise.all(
      batches.map((batch, index) =>
        (index % 2 === 0 ? store : rival).renew(batch.map((one) => ({ ...one, leaseMs: minuteMs }))),
      ),
    )
    equal('leases renewed', answers.flat().filter(Boolean).length, held.length)
  }),
]
