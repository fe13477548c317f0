/** The store over node-redis 5 and later: what `createClient`, `createClientPool` or `createCluster` give. */
import { type Driver, type Primary, pageSize, text } from './driver.js'

interface Evaluated {
  keys: string[]
  arguments: string[]
}

/** What is used of a client of node-redis. */
export interface NodeRedis {
  evalSha(sha: string, options: Evaluated): Promise<unknown>
  eval(script: string, options: Evaluated): Promise<unknown>
  scan(
    cursor: string,
    options: { MATCH: string; COUNT: number },
  ): Promise<{ readonly cursor: unknown; readonly keys: readonly unknown[] }>
  info(): Promise<unknown>
  configGet(name: string): Promise<unknown>
}

/** What is used of a cluster client of node-redis. */
export interface NodeRedisCluster extends Pick<NodeRedis, 'evalSha' | 'eval'> {
  readonly masters: readonly object[]
  nodeClient(node: never): NodeRedis | Promise<NodeRedis>
}

export function nodeRedis(client: NodeRedis | NodeRedisCluster): Driver {
  return {
    evalSha: (sha, name, values) => client.evalSha(sha, { keys: [name], arguments: [...values] }),
    eval: (script, name, values) => client.eval(script, { keys: [name], arguments: [...values] }),
    primaries: async () => {
      if (!('masters' in client)) return [primaryOf(client)]
      const nodes = await Promise.all(client.masters.map(async (node) => client.nodeClient(node as never)))
      return nodes.map(primaryOf)
    },
  }
}

function primaryOf(node: NodeRedis): Primary {
  return {
    scan: async (from, pattern) => {
      const { cursor, keys } = await node.scan(from, { MATCH: pattern, COUNT: pageSize })
      return { cursor: text(cursor), names: keys.map(text) }
    },
    info: async () => text(await node.info()),
    setting: async (name) => {
      const found = await node.configGet(name)
      if (typeof found !== 'object' || found === null) return undefined
      const [value] = found instanceof Map ? [...found.values()] : Object.values(found)
      return value === undefined ? undefined : text(value)
    },
  }
}
