/**
 * `lease` mode: the claim is committed first, the work runs outside any transaction, and every write after it names the owner
 * token (rule 3). A process that dies leaves a claim that runs out; a process that was only slow finds its writes refused.
 */
import type { Answer, Call, ResolvedIntent } from './attempt.js'
import { sleep } from './clock.js'
import { type Engine, looksFirst, pauseMs, refusal, replay, shared, storedOf } from './engine.js'
import { ask } from './lease-claim.js'
import { type LeaseWork, perform, unprotected } from './lease-work.js'
import type { Decision } from './protocol.js'
import type { Lead } from './sharing.js'

/** Runs the work under a lease, or answers with what an earlier attempt stored. */
export function runLease<Tx, Value>(
  engine: Engine<Tx>,
  call: Call<Value>,
  work: LeaseWork<Tx, Value>,
): Promise<Answer<Value>> {
  return shared(engine, call, async (lead) => {
    // Polling reads; only a look that found the intent free claims (rule 6).
    let look: 'claim' | 'find' = looksFirst(engine, call) ? 'find' : 'claim'
    // Once another owner was seen alive, running unprotected would be a second run and no stopgap.
    let held = false
    for (let looks = 0; ; looks += 1) {
      const found = await ask(engine, call, lead, look, held)
      if (found === 'down') return unprotected(engine, call, work, lead)
      if ('sentAt' in found) return perform(engine, call, work, lead, found)
      if (found.do === 'replay') {
        const stored = storedOf(found.seen)
        lead.end({ kind: 'stored', stored })
        return replay(engine, call, stored)
      }
      if (found.do !== 'refuse') {
        look = 'claim'
        continue
      }
      held = true
      await waitOrThrow(engine, call, found, lead, looks)
      look = 'find'
    }
  })
}

/** Refuses for good, or waits outside the store for the owner. */
async function waitOrThrow<Tx>(
  engine: Engine<Tx>,
  call: ResolvedIntent,
  decision: Decision & { do: 'refuse' },
  lead: Lead,
  looks: number,
): Promise<void> {
  const leftMs = lead.until - engine.clock.monotonic()
  if (decision.because !== 'held' || leftMs <= 0) {
    const error = refusal(engine, call, decision.because, decision.seen)
    lead.end({ kind: 'refused', error })
    throw error
  }
  lead.waiting(decision.seen?.live ? decision.seen.fingerprint : undefined, decision.seen?.leftMs)
  await sleep(engine.clock, Math.min(leftMs, pauseMs(engine, looks)))
}
