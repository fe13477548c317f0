import type { DataSource, EntityManager } from 'typeorm'
import type { Effect } from '../../../processes/own-name.js'
import { postgres } from '../../../processes/own-name.js'
import { peer } from '../peer.js'
import { connections, type ToolClient } from './client.js'

await peer('reflect-metadata')
const typeorm = await peer<typeof import('typeorm')>('typeorm')

/** Without decorators, which would need a build of their own. */
const effects = new typeorm.EntitySchema<Effect & { id: number }>({
  name: 'effect',
  columns: {
    id: { type: 'int', primary: true, generated: true },
    key: { type: 'text' },
    payload: { type: 'text' },
    generation: { type: 'bigint' },
  },
})
const uniques = new typeorm.EntitySchema<{ id: number; key: string }>({
  name: 'unique_effect',
  columns: { id: { type: 'int', primary: true, generated: true }, key: { type: 'text' } },
})

export async function typeormSource(connectionString: string): Promise<ToolClient> {
  const source: DataSource = new typeorm.DataSource({
    type: 'postgres',
    url: connectionString,
    entities: [effects, uniques],
    poolSize: connections,
    extra: { allowExitOnIdle: true },
  })
  await source.initialize()
  return {
    handle: source,
    store: (options) => postgres(source, options),
    insert: (tx, effect) => ((tx ?? source.manager) as EntityManager).save(effects, { ...effect }),
    insertUnique: (tx, key) => (tx as EntityManager).save(uniques, { key }),
    violation: 'QueryFailedError',
    build: (tx, effect) => {
      const repository = (tx as EntityManager).getRepository(effects)
      return () => repository.save({ ...effect })
    },
    nested: (tx, work) => (tx as EntityManager).transaction(work),
    transaction: (work) => source.transaction(work),
    end: () => source.destroy(),
  }
}
