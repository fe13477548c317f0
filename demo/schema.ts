/** The tables of the demo, in a schema of their own, so that DATABASE_URL may name a database that has an `orders` already. */
import type pg from 'pg'

/** Each runs once, in this order, and is frozen once it was released: a change is a new one at the end. */
const migrations: readonly string[] = [
  `create table demo.orders (
    id uuid primary key default gen_random_uuid(),
    customer_id text not null,
    total_cents bigint not null check (total_cents > 0),
    created_at timestamptz not null default clock_timestamp()
  )`,
  'create index orders_by_customer on demo.orders (customer_id, created_at desc)',
  'create index orders_by_time on demo.orders (created_at desc)',
]

/** The letters "demo". Held until commit, so that of two processes that start at once one migrates and the other waits. */
const migrationLock = 0x64656d6f

/** Brings the tables up to date. Safe to run at every start, by any number of processes. */
export async function migrate(pool: pg.Pool): Promise<void> {
  const client = await pool.connect()
  let broken: Error | undefined
  try {
    await client.query('begin isolation level read committed read write')
    await client.query('select pg_advisory_xact_lock($1)', [migrationLock])
    await client.query('create schema if not exists demo')
    await client.query('create table if not exists demo.migrations (number integer primary key)')
    const { rows } = await client.query(
      'select coalesce(max(number), 0)::integer as done from demo.migrations',
    )
    const done: number = rows[0].done
    for (const [index, statement] of migrations.entries()) {
      if (index < done) continue
      await client.query(statement)
      await client.query('insert into demo.migrations (number) values ($1)', [index + 1])
    }
    await client.query('commit')
  } catch (error) {
    broken = error instanceof Error ? error : new Error(String(error))
    throw error
  } finally {
    // A connection that failed inside the transaction is closed, which rolls it back.
    client.release(broken)
  }
}
