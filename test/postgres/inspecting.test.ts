/** Looking at the server: the same findings over every client, in any schema, and under any default of the session. */
import type { Finding } from 'retrysafe'
import type { PostgresOptions } from 'retrysafe/postgres'
import { expect, test } from 'vitest'
import { type ClientName, clients } from '../processes/clients.js'
import { freshDatabase } from '../setup/database.js'

/** Names of the findings that are an error or a warning. */
function bad(findings: readonly Finding[]): readonly string[] {
  return findings.flatMap(({ level, id }) => (level === 'error' || level === 'warn' ? [id] : []))
}

/** What of a finding is the same in every way to ask. */
function compared(findings: readonly Finding[]): readonly string[] {
  return findings
    .filter(({ id }) => id !== 'pooler' && id !== 'clock')
    .map(({ level, id, found }) => `${level} ${id}: ${found}`)
}

async function inspected(
  connectionString: string,
  client: ClientName,
  options?: PostgresOptions,
): Promise<readonly Finding[]> {
  const { store, end } = clients[client](connectionString, options)
  try {
    await store.migrate()
    return await store.inspecting.inspect()
  } finally {
    await store.close()
    await end()
  }
}

test('every client finds the same', async () => {
  const database = await freshDatabase()
  const { connectionString } = database
  try {
    const first = await inspected(connectionString, 'node-postgres')
    expect(bad(first)).toEqual([])
    expect(first.length).toBeGreaterThan(20)
    for (const client of Object.keys(clients) as ClientName[])
      expect(compared(await inspected(connectionString, client)), client).toEqual(compared(first))
  } finally {
    await database.drop()
  }
})

test.each([
  ['another schema', { schema: 'Billing' }, ''],
  ['prepared statements', { prepare: true }, ''],
  [
    'a stricter isolation',
    { isolation: 'serializable' as const },
    '-c default_transaction_isolation=serializable',
  ],
  [
    'another date style and zone',
    {},
    '-c datestyle=german -c timezone=Asia/Kathmandu -c bytea_output=escape',
  ],
])('%s changes nothing about it', async (_, options, flags) => {
  const database = await freshDatabase()
  const url = new URL(database.connectionString)
  if (flags !== '') url.searchParams.set('options', flags)
  try {
    const findings = await inspected(url.href, 'node-postgres', options)
    expect(bad(findings)).toEqual([])
    expect(findings.find(({ id }) => id === 'migrations')).toMatchObject({ level: 'ok' })
  } finally {
    await database.drop()
  }
})
