/** Looks at the server behind the store, one question after the other, through the store's own client. */
import type { Finding, Inspecting } from '../../store.js'
import { refused } from '../findings.js'
import type { Connections } from './driver.js'
import { type Ask, askerThrough } from './inspect/ask.js'
import { inspectPooler } from './inspect/pooler.js'
import { inspectServer } from './inspect/server.js'
import { judgeSettings, settingNames } from './inspect/settings.js'
import { inspectTable } from './inspect/table.js'
import { inspectUpkeep } from './inspect/upkeep.js'
import { textAt } from './rows.js'
import { sqlState } from './sql-state.js'

export function inspecting(connections: Connections, schema: string, prepare: boolean): Inspecting {
  return { inspect }

  async function inspect(): Promise<readonly Finding[]> {
    const ask = askerThrough(connections)
    const pooler = await tried('pooler', () => inspectPooler(connections, prepare))
    const server = await tried('server', () => inspectServer(ask))
    const settings = await tried('settings', () => inspectSettings(ask))
    let open = false
    const table = await tried('table', async () => {
      const place = await inspectTable(ask, schema)
      open = place.open
      return place.findings
    })
    const upkeep = open ? await tried('upkeep', () => inspectUpkeep(ask, schema)) : []
    return [...server, ...settings, ...pooler, ...table, ...upkeep]
  }
}

async function inspectSettings(ask: Ask): Promise<readonly Finding[]> {
  const wanted = settingNames.map((name) => `'${name}'`).join(', ')
  const rows = await ask(`select name, setting from pg_settings where name in (${wanted})`)
  return judgeSettings(new Map(rows.map((row) => [textAt(row, 0), row[1] ?? ''])))
}

/** What the server refuses to answer is told; only a broken connection ends the inspection. */
async function tried(id: string, look: () => Promise<readonly Finding[]>): Promise<readonly Finding[]> {
  try {
    return await look()
  } catch (error) {
    const code = sqlState(error)
    if (code === '' || code.startsWith('08') || code.startsWith('57P')) throw error
    return [refused(id, code)]
  }
}
