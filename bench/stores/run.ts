/** `npm run bench -- stores`: one store after the other, each of its clients against the bare work on the same server. */
import { existsSync } from 'node:fs'
import { missingPeers } from '../../servers/peers.js'
import { finishedKeys } from '../keys.js'
import { machine } from '../machine.js'
import { unique } from '../report.js'
import { type Compared, compare, type Plan } from '../rounds.js'
import { contenderOf } from '../scenario.js'
import { memoryBench } from './memory.js'
import { mysqlBench } from './mysql.js'
import { postgresBench } from './postgres.js'
import { redisBench } from './redis.js'
import { scenariosOf } from './scenarios.js'
import { sqliteBench } from './sqlite.js'
import type { ClientBench, Server, StoreBench } from './store.js'

const stores: readonly StoreBench[] = [postgresBench, mysqlBench, sqliteBench, redisBench, memoryBench]

export interface StoresPlan extends Plan {
  readonly concurrencies: readonly number[]
  readonly finishedKeys: number
  /** Ids of stores or of clients; all of them if undefined. */
  readonly only: readonly string[] | undefined
  progress(line: string): void
}

/** One scenario of one client, compared with {@link bare} at one concurrency. */
export interface StoreCompared extends Compared {
  readonly store: string
  readonly client: string
  readonly title: string
  readonly concurrency: number
  /** Id of the bare way; its own for itself. */
  readonly bare: string
}

export interface StoresRun {
  readonly machine: string
  readonly servers: readonly string[]
  readonly rounds: number
  readonly compared: readonly StoreCompared[]
  /** What was to be compared and could not be, and why. */
  readonly leftOut: readonly string[]
}

/** @throws Error when a server or a package is missing, before anything is started. */
export async function runStores(plan: StoresPlan): Promise<StoresRun> {
  const wanted = chosen(plan.only)
  const complaints = missingFor(wanted)
  if (complaints.length > 0) throw new Error(complaints.join('\n'))
  const servers: string[] = []
  const leftOut: string[] = []
  const compared: StoreCompared[] = []
  for (const store of wanted) {
    plan.progress(`starting ${store.id}`)
    const server = await store.start()
    try {
      servers.push(server.what)
      for (const client of store.clients) {
        const reason = await client.lacking?.()
        if (reason !== undefined) leftOut.push(`${client.id}: ${reason}`)
        else compared.push(...(await compareClient(plan, store, server, client)))
      }
    } finally {
      await server.stop()
    }
  }
  return { machine: machine(), servers, rounds: plan.rounds, compared, leftOut }
}

/** The stores that are named, each with those of its clients that are. */
function chosen(only: readonly string[] | undefined): readonly StoreBench[] {
  if (only === undefined) return stores
  const known = unique(stores.flatMap(({ id, clients }) => [id, ...clients.map((client) => client.id)]))
  const unknown = only.filter((id) => !known.includes(id))
  if (unknown.length > 0) throw new Error(`no ${unknown.join(', ')}: --only takes ${known.join(', ')}`)
  return stores
    .map((store) => ({
      ...store,
      clients: only.includes(store.id) ? store.clients : store.clients.filter(({ id }) => only.includes(id)),
    }))
    .filter(({ clients }) => clients.length > 0)
}

/** What has to be installed, a line each. */
export function missingFor(wanted: readonly Pick<StoreBench, 'clients' | 'program'>[]): string[] {
  const peers = wanted.flatMap(({ clients }) => clients.flatMap((client) => client.peers))
  const packages = missingPeers(unique(peers))
  const programs = wanted.flatMap(({ program }) => program ?? []).filter(({ path }) => !existsSync(path))
  return [
    ...(packages.length === 0
      ? []
      : [`not installed: ${packages.join(', ')}; run npm ci --prefix test/peers`]),
    ...programs.map(
      ({ path, debian }) => `no ${path} was found: install it (Debian: apt-get install ${debian})`,
    ),
  ]
}

async function compareClient(
  plan: StoresPlan,
  store: StoreBench,
  server: Server,
  client: ClientBench,
): Promise<StoreCompared[]> {
  const found: StoreCompared[] = []
  for (const concurrency of plan.concurrencies) {
    plan.progress(`${client.id}, concurrency ${concurrency}`)
    const subject = await client.open(server.at, concurrency)
    try {
      const finished = await finishedKeys(plan.finishedKeys, (subject.transaction ?? subject.lease).safe)
      await subject.keep(finished)
      const scenarios = scenariosOf(subject, finished)
      for (const bare of scenarios.filter(({ against }) => against === undefined)) {
        await server.tidy?.()
        const all = [bare, ...scenarios.filter(({ against }) => against === bare.id)]
        const [first, ...others] = all.map((one) => contenderOf(one, subject, concurrency))
        if (first === undefined) continue
        const titles = new Map(all.map(({ id, title }) => [id, title]))
        for (const one of await compare(first, others, plan))
          found.push({
            ...one,
            id: `${client.id}-${one.id}`,
            bare: `${client.id}-${bare.id}`,
            store: store.id,
            client: client.id,
            title: titles.get(one.id) ?? one.id,
            concurrency,
          })
      }
    } finally {
      await subject.close()
    }
  }
  return found
}
