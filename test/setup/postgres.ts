/** One PostgreSQL for a whole test run; every test file creates a database of its own in it (`freshDatabase`). */
import type { TestProject } from 'vitest/node'
import { temporaryPostgres } from '../../servers/temporary.js'

declare module 'vitest' {
  export interface ProvidedContext {
    /** Superuser of the shared server, database `postgres`. */
    connectionString: string
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  // A run inside a run (`test/ablation`) uses the server of the outer one.
  const given = process.env.RETRYSAFE_DATABASE
  if (given !== undefined) {
    project.provide('connectionString', given)
    return async () => undefined
  }
  const server = await temporaryPostgres()
  project.provide('connectionString', server.connectionString)
  return () => server.stop()
}
