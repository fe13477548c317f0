/** The PostgreSQL that the machine has installed, where it has one, instead of the embedded one: another version, the same tests. */
import type { TestProject } from 'vitest/node'
import { temporaryPostgres } from '../../servers/temporary.js'

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await temporaryPostgres({ binaries: 'installed' })
  project.provide('connectionString', server.connectionString)
  return () => server.stop()
}
