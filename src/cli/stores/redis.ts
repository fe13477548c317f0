/** Redis by URL, over ioredis or node-redis, whichever the user has. A cluster, or Sentinel, is named by a module. */
import { type IoRedis, type NodeRedis, redis } from '../../stores/redis.js'
import { installedDriver } from '../driver.js'
import type { OpenedStore, Target } from './target.js'

const connectLimitMs = 10_000

type MakeIoRedis = new (
  url: string,
  options: object,
) => IoRedis & {
  connect(): Promise<unknown>
  ping(): Promise<unknown>
  disconnect(): void
  on(event: 'error', listener: (error: Error) => void): unknown
}

interface NodeRedisModule {
  createClient(options: object): NodeRedis & {
    connect(): Promise<unknown>
    destroy(): void
    on(event: 'error', listener: () => void): unknown
  }
}

/** Connects at once and never again: a question to a server that is away has an answer, and it is not to wait. */
export async function openRedis({ url, prefix, cwd }: Target): Promise<OpenedStore> {
  const options = prefix === undefined ? {} : { prefix }
  const { name, module } = await installedDriver<MakeIoRedis | NodeRedisModule>(cwd, ['ioredis', 'redis'])
  if (name === 'ioredis') {
    const client = await ofIoRedis(module as MakeIoRedis, url)
    return { store: redis(client, options), close: async () => client.disconnect() }
  }
  const socket = { connectTimeout: connectLimitMs, reconnectStrategy: false }
  const client = (module as NodeRedisModule).createClient({ url, socket })
  client.on('error', () => undefined)
  await inTime(client.connect())
  return { store: redis(client, options), close: async () => client.destroy() }
}

async function ofIoRedis(Redis: MakeIoRedis, url: string) {
  const limits = { lazyConnect: true, connectTimeout: connectLimitMs, retryStrategy: () => null }
  const client = new Redis(url, { ...limits, maxRetriesPerRequest: 0 })
  // `connect` only says that it was closed; why is told here.
  let why: unknown
  client.on('error', (error) => {
    why = error
  })
  await inTime(client.connect()).catch((error: unknown) => {
    throw why ?? error
  })
  // A number of a database that is refused is told there too, and the client goes on in database 0; the answer to a later command comes behind it.
  await inTime(client.ping()).catch(() => undefined)
  if (why !== undefined) throw why
  return client
}

/** Both clients limit how long a connection may take, and neither how long the server may then be silent. */
function inTime<Answer>(asked: Promise<Answer>): Promise<Answer> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    const silent = () => reject(new Error(`the server has said nothing for ${connectLimitMs} ms`))
    timer = setTimeout(silent, connectLimitMs)
  })
  return Promise.race([asked, late]).finally(() => clearTimeout(timer))
}
