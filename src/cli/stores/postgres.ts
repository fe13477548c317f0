/** PostgreSQL by URL, over node-postgres or postgres.js, whichever the user has. */
import { type PgPool, type PostgresJs, type PostgresStore, postgres } from '../../stores/postgres.js'
import { installedDriver } from '../driver.js'
import type { OpenedStore, Target } from './target.js'

/** One for the question and one for what a question needs beside it. */
const connections = 2
const connectLimitSeconds = 10

interface Pg {
  readonly Pool: new (options: object) => PgPool & { end(): Promise<void> }
}

type MakePostgresJs = (url: string, options: object) => PostgresJs & { end(options: object): Promise<void> }

export async function openPostgres({ url, schema, cwd }: Target): Promise<OpenedStore> {
  const options = schema === undefined ? {} : { schema }
  const { name, module } = await installedDriver<Pg | MakePostgresJs>(cwd, ['pg', 'postgres'])
  if (name === 'pg') {
    const pool = new (module as Pg).Pool({
      connectionString: url,
      max: connections,
      connectionTimeoutMillis: connectLimitSeconds * 1000,
      application_name: 'retrysafe',
    })
    return { store: postgres(pool, options), close: () => pool.end() }
  }
  const sql = (module as MakePostgresJs)(url, {
    max: connections,
    connect_timeout: connectLimitSeconds,
    onnotice: () => undefined,
  })
  // Its `tx` is typed by the user's own client, which nobody has named here.
  const store = postgres(sql, options) as PostgresStore<object>
  return { store, close: () => sql.end({ timeout: 1 }) }
}
