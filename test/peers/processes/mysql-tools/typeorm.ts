import type { DataSource, EntityManager } from 'typeorm'
import type { Effect } from '../../../processes/own-mysql.js'
import { mysql } from '../../../processes/own-mysql.js'
import { peer } from '../peer.js'
import { connections, type MysqlToolClient } from './client.js'

await peer('reflect-metadata')
const typeorm = await peer<typeof import('typeorm')>('typeorm')

/** Without decorators, which would need a build of their own. */
const effects = new typeorm.EntitySchema<Effect & { id: number }>({
  name: 'effect',
  columns: {
    id: { type: 'int', primary: true, generated: true },
    key: { type: 'varchar', length: 1000 },
    payload: { type: 'text' },
    generation: { type: 'bigint' },
  },
})
const uniques = new typeorm.EntitySchema<{ id: number; key: string }>({
  name: 'unique_effect',
  columns: { id: { type: 'int', primary: true, generated: true }, key: { type: 'varchar', length: 200 } },
})

export async function typeormOnMysql2(url: string): Promise<MysqlToolClient> {
  const source: DataSource = new typeorm.DataSource({
    type: 'mysql',
    url,
    entities: [effects, uniques],
    poolSize: connections,
  })
  await source.initialize()
  return {
    store: (options) => mysql(source, options),
    insert: (tx, effect) => ((tx ?? source.manager) as EntityManager).save(effects, { ...effect }),
    insertUnique: (tx, key) => (tx as EntityManager).save(uniques, { key }),
    run: (tx, text) => (tx as EntityManager).query(text),
    violation: 'QueryFailedError',
    nested: (tx, work) => (tx as EntityManager).transaction(work),
    transaction: (work) => source.transaction(work),
    end: () => source.destroy(),
  }
}
