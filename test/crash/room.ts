/** What every crash test starts from: a database of its own, the ledger in it, and services that are gone when the file is done. */
import { afterAll, beforeAll } from 'vitest'
import { type FreshDatabase, freshDatabase } from '../setup/database.js'
import { type Ledger, openLedger, type Service, startService } from './service.js'

export interface CrashRoom {
  readonly connectionString: string
  readonly ledger: Ledger
  /** Starts a service; it is killed at the end, if it still runs. */
  service(env?: Record<string, string>): Promise<Service>
}

export function crashRoom(): CrashRoom {
  let database: FreshDatabase | undefined
  let ledger: Ledger | undefined
  const services: Service[] = []

  beforeAll(async () => {
    database = await freshDatabase()
    ledger = await openLedger(database.connectionString)
  })

  afterAll(async () => {
    await Promise.all(services.map((service) => service.kill()))
    await ledger?.pool.end()
    await database?.drop()
  })

  return {
    get connectionString() {
      return opened(database).connectionString
    },
    get ledger() {
      return opened(ledger)
    },
    service: async (env = {}) => {
      const started = await startService(opened(database).connectionString, env)
      services.push(started)
      return started
    },
  }
}

function opened<Thing>(thing: Thing | undefined): Thing {
  if (thing === undefined) throw new Error('the room is open while tests run, not before')
  return thing
}
