/** MikroORM 6, by the recipe of docs/orms.md. */
import type { EntityManager } from '@mikro-orm/postgresql'
import { type Effect, type PostgresTool, postgres } from '../../../processes/own-name.js'
import { peer } from '../peer.js'
import { connections, type ToolClient } from './client.js'

const { EntitySchema, MikroORM } = await peer<typeof import('@mikro-orm/postgresql')>('@mikro-orm/postgresql')

const id = { type: 'number', primary: true, autoincrement: true } as const
const text = { type: 'string', columnType: 'text' } as const
const effects = new EntitySchema<Effect & { id: number }>({
  name: 'Effect',
  tableName: 'effect',
  properties: { id, key: text, payload: text, generation: { type: 'number', columnType: 'bigint' } },
})
const uniques = new EntitySchema<{ id: number; key: string }>({
  name: 'UniqueEffect',
  tableName: 'unique_effect',
  properties: { id, key: text },
})

export async function mikroOrm(connectionString: string): Promise<ToolClient> {
  const orm = await MikroORM.init({
    clientUrl: connectionString,
    entities: [effects, uniques],
    pool: { min: 0, max: connections },
  })
  const tool: PostgresTool<EntityManager> = {
    transaction: (work) =>
      orm.em.getConnection('write').transactional((context) => {
        const em = orm.em.fork()
        em.setTransactionContext(context)
        return work(em)
      }),
    query: (tx, statement) =>
      (tx ?? orm.em).getConnection('write').execute(statement, [], 'all', tx?.getTransactionContext()),
  }
  const insert = async (em: EntityManager, effect: Effect) => {
    em.persist(em.create(effects, effect))
    await em.flush()
  }
  return {
    handle: orm,
    store: (options) => postgres(tool, options),
    insert: (tx, effect) => insert((tx ?? orm.em.fork()) as EntityManager, effect),
    insertUnique: (tx, key) => (tx as EntityManager).insert(uniques, { key }),
    violation: 'UniqueConstraintViolationException',
    build: (tx, effect) => {
      const query = (tx as EntityManager).createQueryBuilder(effects).insert(effect)
      return () => query.execute()
    },
    nested: (tx, work) => (tx as EntityManager).transactional(work),
    transaction: (work) => tool.transaction(work),
    end: () => orm.close(true),
  }
}
