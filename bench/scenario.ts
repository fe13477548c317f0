/** What a scenario is: one way to do a piece of work, and the bare way that it is compared with. */
import type pg from 'pg'
import type postgresJs from 'postgres'
import type { Retrysafe } from 'retrysafe'
import type { PgTx, PostgresJsTx } from 'retrysafe/postgres'
import { type Contender, repeating } from './rounds.js'

/** Where a scenario runs: one pool a client, which the bare ways share, so that connections and their prepared statements are the same. */
export interface Setting {
  readonly pool: pg.Pool
  readonly safe: Retrysafe<PgTx<pg.Pool>>
  readonly sql: postgresJs.Sql
  readonly safeJs: Retrysafe<PostgresJsTx<postgresJs.Sql>>
  /** With a cache, which holds the outcomes of {@link cachedKeys}. */
  readonly cached: Retrysafe<PgTx<pg.Pool>>
  readonly cachedKeys: readonly string[]
  /** Keys whose work is done already, to be replayed. */
  readonly finished: readonly string[]
  close(): Promise<void>
}

/** `Ground` is where it runs: a {@link Setting}, or what a store brings. */
export interface Scenario<Ground = Setting> {
  /** What `--only` matches. */
  readonly id: string
  readonly title: string
  /** Id of the bare way; absent in the bare ways themselves. Those that share one are measured in the same rounds. */
  readonly against?: string
  /** Gives the source of keys. They are drawn before the clock starts: that is the caller's work, who is another process in production. */
  readonly keys?: (ground: Ground) => () => string
  /** Gives the operation that is repeated, each time with the next key. */
  operation(ground: Ground): (key: string) => Promise<unknown>
}

const noKey = () => ''

/** A scenario as one side of a comparison. */
export function contenderOf<Ground>(
  scenario: Scenario<Ground>,
  ground: Ground,
  concurrency: number,
): Contender {
  const draw = scenario.keys?.(ground) ?? noKey
  return repeating(scenario.id, concurrency, draw, scenario.operation(ground))
}

/** One key after the other, so that two attempts of one key are never under way together and share nothing. */
export function cycle(keys: readonly string[]): () => string {
  let next = 0
  return () => {
    const key = keys[next % keys.length]
    next += 1
    if (key === undefined) throw new Error('there are no finished keys')
    return key
  }
}

/** A replay that is none would measure something else. */
export async function replayed(answer: Promise<{ replayed: boolean }>): Promise<void> {
  if (!(await answer).replayed) throw new Error('the work ran where a replay was to be measured')
}
