/** A database of its own in the shared server, so that test files cannot meet in one table. */
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'

export interface FreshDatabase {
  readonly connectionString: string
  /** Removes the database, and the connections that are still open. */
  drop(): Promise<void>
}

async function asSuperuser(text: string): Promise<void> {
  const client = new pg.Client({ connectionString: inject('connectionString') })
  await client.connect()
  await client.query(text).finally(() => client.end())
}

export async function freshDatabase(): Promise<FreshDatabase> {
  const name = `test_${randomBytes(6).toString('hex')}`
  await asSuperuser(`create database ${name}`)
  const url = new URL(inject('connectionString'))
  url.pathname = name
  return {
    connectionString: url.href,
    drop: () => asSuperuser(`drop database if exists ${name} with (force)`),
  }
}
