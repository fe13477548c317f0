/** The store over ioredis 5: a `Redis` (with Sentinel too), or a `Cluster`. */
import { type Driver, type Primary, pageSize, text } from './driver.js'

/** What is used of a `Redis` of ioredis 5. */
export interface IoRedis {
  evalsha(sha: string, keys: number, ...keysAndValues: string[]): Promise<unknown>
  eval(script: string, keys: number, ...keysAndValues: string[]): Promise<unknown>
  scan(
    cursor: string,
    match: 'MATCH',
    pattern: string,
    count: 'COUNT',
    size: number,
  ): Promise<[cursor: string, names: string[]]>
  info(): Promise<string>
  config(read: 'GET', name: string): Promise<unknown>
}

/** What is used of a `Cluster` of ioredis 5. */
export interface IoRedisCluster extends Pick<IoRedis, 'evalsha' | 'eval'> {
  readonly isCluster: boolean
  ping(): Promise<unknown>
  nodes(role: 'master'): IoRedis[]
}

export function ioRedis(client: IoRedis | IoRedisCluster): Driver {
  return {
    evalSha: (sha, name, values) => client.evalsha(sha, 1, name, ...values),
    eval: (script, name, values) => client.eval(script, 1, name, ...values),
    primaries: async () => {
      if (!('nodes' in client)) return [primaryOf(client)]
      // It knows its nodes once it has been answered something.
      await client.ping()
      return client.nodes('master').map(primaryOf)
    },
  }
}

function primaryOf(node: IoRedis): Primary {
  return {
    scan: async (from, pattern) => {
      const [cursor, names] = await node.scan(from, 'MATCH', pattern, 'COUNT', pageSize)
      return { cursor, names }
    },
    info: () => node.info(),
    setting: async (name) => {
      const pair = await node.config('GET', name)
      return Array.isArray(pair) && pair.length > 1 ? text(pair[1]) : undefined
    },
  }
}
