/** Runs an example of docs/frameworks.md on a database of its own, as its reader would. */
import pg from 'pg'
import { postgres } from '../../dist/stores/postgres.js'
import { allBlocks } from '../docs/blocks.js'
import { compile } from '../docs/compile.js'
import { useByDefault } from '../docs/reader.js'
import { freshDatabase } from '../setup/database.js'

/** Compiles the example, runs it, and gives what it declared to `use`; `orders` counts what it has written. */
export async function onExample<Declared>(
  name: string,
  use: (declared: Declared, orders: () => Promise<number>) => Promise<void>,
): Promise<void> {
  const compiled = await compile(allBlocks({ needPeers: true }).filter(({ run }) => run === name))
  const database = await freshDatabase()
  useByDefault(database.connectionString)
  const pool = new pg.Pool()
  pool.on('error', () => undefined)
  try {
    if (compiled.complaints !== '') throw new Error(compiled.complaints)
    await pool.query('create table orders (id serial primary key, customer_id text)')
    await postgres(pool).migrate()
    await use(await compiled.run<Declared>(name), async () => {
      const { rows } = await pool.query('select count(*)::int as orders from orders')
      return rows[0].orders
    })
  } finally {
    compiled.remove()
    await pool.end()
    await database.drop()
  }
}
