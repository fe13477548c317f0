/** Looks at the server behind the store, one question after the other, on one connection of the store's own kind. */
import type { Finding, Inspecting } from '../../store.js'
import { refused } from '../findings.js'
import type { Connection } from './driver.js'
import { errno, isConnectionFault } from './errors.js'
import { inspectServer } from './inspect/server.js'
import { inspectTable } from './inspect/table.js'
import { inspectUpkeep } from './inspect/upkeep.js'
import { type Ours, onConnection } from './once.js'

export function inspecting(ours: Ours): Inspecting {
  return { inspect: () => onConnection(ours, inspectAll, 'harmless') }

  async function inspectAll(connection: Connection): Promise<readonly Finding[]> {
    const { mariadb } = await ours.server(connection)
    const server = await tried('server', () => inspectServer(connection, mariadb))
    const table = await tried('table', () => inspectTable(connection, ours.schema))
    // Where the table is missing or closed there are no rows to be asked for.
    const closed = table.some(({ id, level }) => id !== 'unique-index' && level === 'error')
    const upkeep = closed ? [] : await tried('upkeep', () => inspectUpkeep(connection, ours.schema, mariadb))
    return [...server, ...table, ...upkeep]
  }
}

/** What the server refuses to answer is told; only a broken connection ends the inspection. */
async function tried(id: string, look: () => Promise<readonly Finding[]>): Promise<readonly Finding[]> {
  try {
    return await look()
  } catch (error) {
    if (isConnectionFault(error)) throw error
    return [refused(id, String(errno(error)))]
  }
}
