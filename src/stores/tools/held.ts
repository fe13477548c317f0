/** Keeps the transaction of a tool open until it is told how to end: its `transaction` is kept waiting while the attempt runs. */
import type { Isolation, SqlTool } from './tool.js'

export interface ToolTransaction<Tx> {
  readonly tx: Tx
  /** Why it ended before it was told to. */
  lost(): unknown
  onLost(listener: (cause: unknown) => void): void
  /** Rejects when the COMMIT failed; a second end changes nothing. */
  end(how: 'commit' | 'rollback'): Promise<void>
}

/** `isolation`: for a server where it must be said before the transaction begins. */
export async function openTransaction<Tx>(
  tool: SqlTool<Tx>,
  isolation?: Isolation,
): Promise<ToolTransaction<Tx>> {
  const listeners: ((cause: unknown) => void)[] = []
  let told: 'commit' | 'rollback' | undefined
  let cause: unknown
  let settle: (how: 'commit' | 'rollback') => void = () => undefined
  let ended: Promise<unknown> = Promise.resolve()
  const tx = await new Promise<Tx>((resolve, reject) => {
    let runs = 0
    ended = tool.transaction((given) => {
      runs += 1
      if (runs > 1) return Promise.reject(new Error('transaction() has run its work twice'))
      resolve(given)
      return new Promise<void>((commit, rollBack) => {
        settle = (how) => (how === 'commit' ? commit() : rollBack(new Error('rolled back by retrysafe')))
      })
    }, isolation)
    ended.then(() => lose(new Error('transaction() has not waited for its work')), lose)
    ended.catch(reject)
  })
  return {
    tx,
    lost: () => cause,
    onLost: (listener) => {
      if (cause === undefined) listeners.push(listener)
      else listener(cause)
    },
    end,
  }

  function lose(error: unknown): void {
    if (told !== undefined) return
    cause = error
    for (const listener of listeners.splice(0)) listener(error)
  }

  async function end(how: 'commit' | 'rollback'): Promise<void> {
    told ??= how
    if (!isClosed(cause)) settle(told)
    if (how === 'commit') await ended
    // Whatever the tool makes of it: what was not committed is not there.
    else await ended.catch(() => undefined)
  }
}

/** Told of an end, postgres.js would send ROLLBACK to a socket that is gone, and that ends the process. */
function isClosed(cause: unknown): boolean {
  if (typeof cause !== 'object' || cause === null || !('code' in cause)) return false
  return cause.code === 'CONNECTION_CLOSED'
}
