/**
 * Until when a claim is of use, by the server's clock.
 *
 * Both clients keep a command while there is no connection and send it when there is one again, long after its caller was told 503. A claim that
 * is granted then holds its key for a lease, and with `onOwnerLost: 'unknown'` for good, though nobody ever worked under it. So a claim carries the
 * last instant at which anybody waits for it. That is reckoned from the clock that an earlier answer has shown, and corrected by each answer; it narrows
 * only who may begin, never who owns.
 */

/** How far the reckoning may be off, in ms: a busy event loop fires its timers late. */
const slackMs = 2000

export interface Patience {
  /** The last instant of use for a command that is sent now, in ms since 1970 by the server's clock; undefined until an answer has shown that clock. */
  lastInstantMs(): number | undefined
  /** Takes note of the server's clock in the answer to a command that was sent at `sentAt` of our monotonic clock. */
  note(serverNowMs: number, sentAt: number): void
}

export function patienceOf(answerTimeoutMs: number): Patience {
  /** What the server's clock is ahead of our monotonic one. */
  let aheadMs: number | undefined

  function lastInstantMs(): number | undefined {
    if (aheadMs === undefined) return undefined
    return Math.ceil(performance.now() + aheadMs + answerTimeoutMs + slackMs)
  }

  function note(serverNowMs: number, sentAt: number): void {
    aheadMs = serverNowMs - sentAt
  }

  return { lastInstantMs, note }
}
