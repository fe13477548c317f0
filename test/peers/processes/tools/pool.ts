/** A pool for the tools that take one. */
import pg from 'pg'
import { connections } from './client.js'

export function poolOf(connectionString: string): pg.Pool {
  const pool = new pg.Pool({ connectionString, max: connections, allowExitOnIdle: true })
  pool.on('error', () => undefined)
  // Neither Drizzle nor Kysely listens to a client that is checked out, and its server may go away.
  pool.on('connect', (client) => client.on('error', () => undefined))
  return pool
}
