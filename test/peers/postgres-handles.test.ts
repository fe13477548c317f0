/** Which handle gets what, told by real tools: none is taken for another, and what cannot be right says what to pass. */
import { expect, inject, test } from 'vitest'
import { isRetrysafeError } from '../../dist/index.js'
import { postgres } from '../../dist/stores/postgres.js'
import { knownTool } from '../../dist/stores/tools/known.js'
import { peer } from './processes/peer.js'
import { everyTool } from './processes/tools/tools.js'

/** The detail of the refusal. */
function refusal(handle: unknown): string {
  try {
    postgres(handle as Parameters<typeof postgres>[0])
  } catch (error) {
    if (isRetrysafeError(error) && error.code === 'OPTION_INVALID') return error.message
    throw error
  }
  throw new Error('the handle was taken')
}

test.each(everyTool)(
  '%s is known by its shape, or told its recipe; its transaction is not taken for it',
  async (name, open) => {
    const client = await open(inject('connectionString'))
    if (name.includes('recipe')) expect(refusal(client.handle)).toContain('pass { transaction, query }')
    else expect(name.startsWith(knownTool(client.handle)?.name ?? '?')).toBe(true)
    await client.transaction(async (tx) => {
      expect(knownTool(tx)).toBeUndefined()
      expect(refusal(tx)).toMatch(
        /is a(?:n EntityManager| transaction)|pass \{ transaction, query \}|postgres\(\) takes/,
      )
    })
    await client.end()
  },
)

test('a tool for another database is refused by name', async () => {
  const overMysql = await peer<typeof import('drizzle-orm/mysql2')>('drizzle-orm/mysql2')
  const { Kysely, MysqlDialect, SqliteDialect } = await peer<typeof import('kysely')>('kysely')
  const { default: knex } = await peer<{ default: typeof import('knex').knex }>('knex')
  const { DataSource } = await peer<typeof import('typeorm')>('typeorm')
  const pool = () => Promise.reject(new Error('nobody connects'))
  const drizzled = overMysql.drizzle({ connection: 'mysql://127.0.0.1/none' })
  const handles: readonly (readonly [string, unknown])[] = [
    ['Drizzle', drizzled],
    ['Kysely', new Kysely({ dialect: new MysqlDialect({ pool }) })],
    ['Kysely', new Kysely({ dialect: new SqliteDialect({ database: pool }) })],
    ['Knex', knex({ client: 'mysql2' })],
    ['TypeORM', new DataSource({ type: 'mysql' })],
  ]
  for (const [name, handle] of handles)
    expect(refusal(handle)).toContain(`this ${name} is for another database`)
  await drizzled.$client.promise().end()
})

test('a Drizzle over one Client is refused: attempts would share its transaction', async () => {
  const { drizzle } = await peer<typeof import('drizzle-orm/node-postgres')>('drizzle-orm/node-postgres')
  const { default: pg } = await import('pg')
  expect(refusal(drizzle(new pg.Client()))).toContain('give it a Pool')
})

test('a Drizzle with replicas is used by its primary', async () => {
  const { drizzle } = await peer<typeof import('drizzle-orm/node-postgres')>('drizzle-orm/node-postgres')
  const { withReplicas } = await peer<typeof import('drizzle-orm/pg-core')>('drizzle-orm/pg-core')
  const { default: pg } = await import('pg')
  const primary = new pg.Pool({ connectionString: inject('connectionString') })
  const replica = new pg.Pool({ connectionString: 'postgres://127.0.0.1:1/none' })
  const db = withReplicas(drizzle(primary), [drizzle(replica)])
  const store = postgres(db, { schema: `replicas_${process.pid}` })
  expect(await store.migrate()).toEqual(['0001_intent'])
  await primary.query(`drop schema replicas_${process.pid} cascade`)
  await primary.end()
})

test.each([
  ['nothing', undefined],
  ['null', null],
  ['a text', 'postgres://127.0.0.1/orders'],
  ['an empty object', {}],
  ['a function', () => undefined],
  ['an array', []],
])('%s is refused, with what to pass', (_, handle) => {
  expect(refusal(handle)).toContain('postgres() takes a Pool of node-postgres')
})
