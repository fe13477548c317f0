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

export interface Scenario {
  /** What `--only` matches. */
  readonly id: string
  readonly title: string
  /** Id of the bare way; absent in the bare ways themselves. Those that share one are measured in the same rounds. */
  readonly against?: string
  /** Gives the source of keys. They are drawn before the clock starts: that is the caller's work, who is another process in production. */
  readonly keys?: (setting: Setting) => () => string
  /** Gives the operation that is repeated, each time with the next key. */
  operation(setting: Setting): (key: string) => Promise<unknown>
}

const noKey = () => ''

/** A scenario as one side of a comparison. */
export function contenderOf(scenario: Scenario, setting: Setting, concurrency: number): Contender {
  const draw = scenario.keys?.(setting) ?? noKey
  return repeating(scenario.id, concurrency, draw, scenario.operation(setting))
}
